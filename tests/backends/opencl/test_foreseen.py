# SPDX-License-Identifier: Apache-2.0
"""Items of which the words that all share decide if they leave: their repeated ranges look at no
head, and others still do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm import TrapError
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.item import prepared, suspension

from .test_items import make_small, on

BODIES = {
    "own": ("(array-set! to i (* k (array-ref from i)))", True),
    "loop": (
        """(begin (define s 0) (define j 0)
             (while (< j k) (begin (set! s (+ s (array-ref from j))) (set! j (+ j 1))))
             (array-set! to i (+ s i)))""",
        True,
    ),
    "chosen": ("(array-set! to i (if (< (array-ref from i) 3) k i))", True),
    "divided": ("(array-set! to i (/ k (array-ref from i)))", False),
    "gathered": ("(array-set! to i (array-ref from (array-ref from i)))", False),
    "by an element": (
        "(if (= (array-ref from i) 7) (array-set! to (* i k) 1) (array-set! to i 2))",
        False,
    ),
    "as long as an element": (
        """(begin (define j 0) (while (< j (array-ref from i)) (set! j (+ j 1)))
             (array-set! to i (/ k (- 100 j))))""",
        False,
    ),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)
    monkeypatch.setattr(suspension, "SLICE", 1 << 24)
    monkeypatch.setattr(prepared, "SHORT", 1e9)


def call_of(body: str) -> Any:
    """A function that launches 80 items with this body, once the range is prepared."""
    text = f"""
(define (item (i i64) (k i64) (from (array i64)) (to (array i64))) {body})
(define (items (n i64) (k i64) (from (array i64)) (to (array i64)))
  (for-each-item n (item k from to)))
"""
    call = on(OpenClBackend(wraps=False)).instantiate(ferryvm.compile(text)).exports["items"]
    given, to = np.arange(80) % 5 + 1, np.zeros(80, np.int64)
    for _ in range(6):
        call(80, 1, given, to)
    return call, given, to


def shape_of(call: Any) -> Any:
    """Facts on the items."""
    launches = call.__ferryvm__[0].execution.launches
    (launch,) = launches._launches.values()
    return launch.ranges._shape


@pytest.mark.parametrize("name", BODIES)
def test_exits_are_foreseen_unless_an_element_decides(name: str) -> None:
    body, is_foreseen = BODIES[name]
    call, _, _ = call_of(body)
    assert shape_of(call).is_foreseen is is_foreseen


@pytest.mark.parametrize("name", ["own", "loop"])
def test_a_range_whose_words_differ_may_leave_all_the_same(name: str) -> None:
    call, given, to = call_of(BODIES[name][0])
    to[:] = -1
    with pytest.raises(TrapError, match="index 80"):
        call(81, 81, given, to)
    expected = 81 * given if name == "own" else np.full(80, -1)
    assert to.tolist() == expected.tolist()
    short = to[:40].copy()
    with pytest.raises(TrapError, match="index 40"):
        call(80, 1, given, short)


def test_a_range_of_items_that_an_element_lets_leave_is_that_of_the_loop() -> None:
    call, given, to = call_of(BODIES["gathered"][0])
    given[60], to[:] = 80, -1
    with pytest.raises(TrapError, match="index 80, and the length is 80, in item 60"):
        call(80, 1, given, to)
    assert to[:60].tolist() == given[given[:60]].tolist()


def test_items_that_leave_unforeseen_would_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: all exits count as foreseen."""
    monkeypatch.setattr(
        "ferryvm_backends.opencl.item.text.are_exits_foreseen", lambda *_given: True
    )
    call, given, to = call_of(BODIES["gathered"][0])
    given[60], to[:] = 80, -1
    call(80, 1, given, to)
    assert to[60] != given[given[60] % 80]
