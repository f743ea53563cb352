# SPDX-License-Identifier: Apache-2.0
"""Random texts: each is a program that can run, or has faults that name their places."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import ferryvm
from ferryvm import SourceError
from ferryvm.skiff.scope import FORMS

ATOMS = st.sampled_from(
    """
    a b c f g x 0 1 2 -3 1.5 2i32 2.5f32 0xff inf nan #t #f else -> vector f64 i8 i32 + - / % & ~ <<
    < = sqrt min i64 f32 i64.rotl i64.load heap.alloc drop select 9999999999999 1e999 12x #q
    """.split()
)
WORDS = st.sampled_from(sorted(FORMS)) | ATOMS


def _lists(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    anything = st.lists(inner, max_size=4).map(lambda items: "(" + " ".join(items) + ")")
    shapes = [
        "(define {} {})",
        "(define (f {}) {})",
        "(define (g a b) {} {})",
        "(set! {} {})",
        "(if {} {} {})",
        "(if {} {})",
        "(cond ({} {}) (else {}))",
        "(while {} {})",
        "(let ((a {}) (b {})) {})",
        "(and {} {})",
        "(not {})",
        "(+ {} {})",
        "(< {} {} {})",
        "(f {})",
        "(g {} {})",
        "(print! {})",
        "(enter-jit ({} {}))",
        "(make-vector f64 {})",
        "(vector-ref {} {})",
        "(vector-set! {} {} {})",
        "(f64 {})",
        "(begin {} {})",
    ]
    shaped = st.sampled_from(shapes).flatmap(
        lambda shape: st.tuples(*[inner] * shape.count("{}")).map(
            lambda items: shape.format(*items)
        )
    )
    return anything | shaped


FORM = st.recursive(WORDS, _lists, max_leaves=15)
DEFINITIONS = st.sampled_from(
    ["", "(define a 1)", "(define (f x) x)", "(define (g a b) (if a b 2))", "(define b 2.5)",
     "(define c (make-vector i8 3))"]
)  # fmt: skip


def check(text: str) -> bool:
    """Whether the text is a program; raises for whatever is neither that nor a fault."""
    try:
        program = ferryvm.compile(text, "soup", optimize=False)
    except SourceError as error:
        assert all(d.message and d.position.file == "soup" for d in error.diagnostics)
        return False
    ferryvm.verify(program)
    ferryvm.verify(ferryvm.compile(text, "soup"))
    return True


@settings(max_examples=200, deadline=None)
@given(st.lists(DEFINITIONS | FORM, max_size=6).map("\n".join))
def test_forms_at_random_are_programs_or_faults(text: str) -> None:
    check(text)


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS | st.sampled_from(["(", ")", "((", "))", "\n", "\n(", "#|", "|#", ";", '"'])))
def test_tokens_at_random_are_programs_or_faults(tokens: list[str]) -> None:
    check(" ".join(tokens))


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_characters_at_random_are_programs_or_faults(text: str) -> None:
    check(text)
