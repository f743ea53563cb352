# SPDX-License-Identifier: Apache-2.0
"""Streaming stores of launches that fill large arrays: each element, no other one, and only there."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm.architecture import IS_X86
from ferryvm.backend import Options
from ferryvm.ir.graph import Module
from ferryvm.policy import Choice, Policy, Profile, Rule
from ferryvm.policy import Options as Chosen
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When
from ferryvm.region.region import RegionKind, regions
from ferryvm.verify import verify
from ferryvm_backends.llvm import streaming
from ferryvm_backends.llvm.build import improved, optimised

pytestmark = pytest.mark.skipif(not IS_X86, reason="streams are for x86-64")

SIZE = 5000
"""Elements of arrays that are large here: two strips, and a part of one."""

MARGIN = 64
"""Elements around an array, into which faults may store."""

ITEMS = """
(define (item i (x (array f64)) (y (array f64)) (z (array f64))) {item})
(define x (make-array f64 9)) (define y (make-array f64 9)) (define z (make-array f64 9))
(for-each-item {count} (item x y z))
"""


def scaled(x: Any, a: Any) -> Any:
    return a * x + 1.0


def row(number: Any, width: Any, to: Any) -> Any:
    for column in range(width):
        to[number * width + column] = 1.0 / (number + column + 1)
    return number


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of 4 KiB are large."""
    monkeypatch.setattr(streaming, "LARGE", 4096)


def compiled(function: Any, threads: int = 1) -> Any:
    """A function whose maps run on llvm at once, without the cache: that does not know `LARGE`."""
    options = Chosen(background=False, required=True, cache=False, threads=threads)
    when = When((Test("kind", (Like("launch"),)),))
    rules = (Rule(when=when, backends=(Choice("llvm", options),)),)
    policy = Policy(rules=rules, profile=Profile(loop_threshold=1))
    return ferryvm.function(policy=policy)(function)


def differs(offset: int, threads: int = 1) -> bool:
    """True if a map into a part of an array, from an offset on, gives something else than NumPy, or
    changes the rest."""
    x, room = np.arange(float(SIZE)), np.full(SIZE + 3 * MARGIN, -1.0)
    own = slice(MARGIN + offset, MARGIN + offset + SIZE)
    function, out = compiled(scaled, threads), room[own]
    for _ in range(2):  # the second one in native code throughout
        ferryvm.map(function, x, a=2.5, out=out)
    expected = np.full(len(room), -1.0)
    expected[own] = 2.5 * x + 1.0
    return room.tobytes() != expected.tobytes()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("offset", "threads"), [(0, 1), (1, 2), (6, 1), (7, 2)])
def test_an_array_at_any_address_is_filled(offset: int, threads: int) -> None:
    assert not differs(offset, threads)


@pytest.mark.usefixtures("small")
def test_each_row_of_a_matrix_begins_at_a_line_of_its_own() -> None:
    width = 601
    to = np.full(7 * width + 9, -1.0)
    for _ in range(2):
        ferryvm.map(compiled(row), range(7), width=width, to=to)
    numbers = np.arange(7)[:, None] + np.arange(width) + 1
    assert to.tolist() == [*(1.0 / numbers).ravel().tolist(), *[-1.0] * 9]


@pytest.mark.usefixtures("small")
def test_a_stream_that_does_not_begin_at_a_line_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "LINE", 8)  # the fault: any element is the first of a line
    assert differs(1)


def module_of(item: str, count: int = 1000) -> Module:
    program = verify(ferryvm.compile(ITEMS.format(item=item, count=count)))
    launch = next(one for one in regions(program) if one.kind is RegionKind.LAUNCH)
    options = Options(optimize=2, cache=False, launches=frozenset({(launch.entry, 0)}), check=True)
    return improved(launch, options)[0]


@pytest.mark.parametrize(
    ("item", "count"),
    [
        ("(array-set! y i (array-ref x i))", 1),
        ("(array-set! y i (+ (array-ref y i) 1.0))", 0),
        ("(begin (array-set! y i 1.0) (array-set! z i 2.0))", 0),
        ("(array-set! y (* 2 i) 1.0)", 0),
    ],
    ids=["filled", "loaded-too", "two-arrays", "not-consecutive"],
)
def test_only_arrays_that_are_filled_are_streamed_to(item: str, count: int) -> None:
    assert len(module_of(item).streams) == count


def test_streaming_stores_are_marked_and_nothing_else_is() -> None:
    options = Options(optimize=2, cache=False)
    text = str(optimised(module_of("(array-set! y i (array-ref x i))"), options, 2))
    stores = re.findall(r"^ *store (.*)$", text, re.MULTILINE)
    streaming_ones = [each for each in stores if "!nontemporal" in each]
    assert 0 < len(streaming_ones) < len(stores)
    assert any(each.startswith("<") and "align 64" in each for each in streaming_ones)
    assert "llvm.x86.sse.sfence()" in text


def test_code_without_streams_is_as_it_was() -> None:
    text = '  store i64 1, ptr %p, !tbaa !0\n!0 = !{!1, !1, i64 0}\n!1 = !{!"elements f64", !1}\n'
    assert streaming.marked(text) == text
