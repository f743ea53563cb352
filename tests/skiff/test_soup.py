# SPDX-License-Identifier: Apache-2.0
"""Random texts: each is a program that can run, or has faults that name their places."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import ferryvm
from ferryvm import SourceError
from ferryvm.skiff.scope import FORMS
from ferryvm.verify import verify

from ..tier import examples

TEXT = (
    'a b c f g x 0 1 2 -3 1.5 2i32 2.5f32 0xff inf nan #t #f else -> array null anyref string "text" f64 i8 i32 + - / % & '
    "~ << < = sqrt min i64 f32 i64.rotl i64.load heap.alloc drop 9999999999999 1e999 12x #q"
)
ATOMS = st.sampled_from(TEXT.split())
WORDS = st.sampled_from(sorted(FORMS)) | ATOMS


SHAPES = [
    "(set! {} {})",
    "(set! a {})",
    "(if {} {} {})",
    "(if {} {})",
    "(cond ({} {}) (else {}))",
    "(while {} {})",
    "(let ((a {}) (d {})) {} d)",
    "(begin (define e {}) {} e)",
    "(and {} {})",
    "(or {} {})",
    "(not {})",
    "(+ {} {})",
    "(* {} {})",
    "(- {})",
    "(& {} {})",
    "(< {} {})",
    "(< {} {} {})",
    "(f {})",
    "(g {} {})",
    "(print! {})",
    "(enter-jit ((begin {}) (begin {})))",
    "(i64 {})",
    "(array-ref c {})",
    "(array-set! c {} {})",
    "(atomic-add! c {} {})",
    "(atomic-compare-exchange! c {} {} {})",
    "(array-length c)",
    "(array-fill! c {})",
    "(array=? c {})",
    "(make-pair {} {})",
    "(pair-first (make-pair {} null))",
    "(set-pair-rest! p {})",
    "(eq? p {})",
    "(cast pair {})",
    "(is? string {})",
    "(null? {})",
    "(f64 {})",
    "(begin {} {})",
]
PRELUDE = """
(define a 1)
(define b 2.5)
(define c (make-array i8 3))
(define-struct pair first (rest pair))
(define p (make-pair 1 null))
(define (f x) (if x (g x a) (h)))
(define (h) (f a))
"""


def _shape(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def fill(shape: str) -> st.SearchStrategy[str]:
        return st.tuples(*[inner] * shape.count("{}")).map(lambda parts: shape.format(*parts))

    return st.sampled_from(SHAPES).flatmap(fill)


def _list(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(inner, max_size=4).map(lambda items: f"({' '.join(items)})")


LIKELY = st.recursive(
    st.sampled_from(["a", "b", "(a)", "1", "0", "2", "(h)"]), _shape, max_leaves=8
)
WILD = st.recursive(WORDS, lambda inner: _list(inner) | _shape(inner), max_leaves=15)


def check(text: str) -> bool:
    """Whether the text is a program; raises for whatever is neither that nor a fault."""
    try:
        program = ferryvm.compile(text, "soup", optimize=False)
    except SourceError as error:
        assert {d.position.file for d in error.diagnostics} == {"soup"}  # noqa: PT017 - no pytest.raises: it may not raise
        return False
    verify(program)
    verify(ferryvm.compile(text, "soup"))
    return True


@examples(30)
@given(st.lists(LIKELY, max_size=3), LIKELY)
def test_likely_forms_are_programs_or_faults(forms: list[str], body: str) -> None:
    check("\n".join([PRELUDE, f"(define (g x y) {body})", *forms]))


@examples(15)
@given(st.lists(WILD, max_size=6))
def test_forms_at_random_are_programs_or_faults(forms: list[str]) -> None:
    check("\n".join([PRELUDE, "(define (g x y) x)", *forms]))


@examples(15)
@given(st.lists(WORDS | st.sampled_from(["(", ")", "((", "))", "\n", "\n(", "#|", "|#", ";", '"'])))
def test_tokens_at_random_are_programs_or_faults(tokens: list[str]) -> None:
    check(" ".join(tokens))


@examples(15)
@given(st.text(max_size=60))
def test_characters_at_random_are_programs_or_faults(text: str) -> None:
    check(text)
