# SPDX-License-Identifier: Apache-2.0
"""`for-each-item`: what it runs, and the mistakes that are told."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.region.region import RegionKind, regions
from ferryvm.verify import verify

SQUARES = """
(define (put item to factor)
  (array-set! to item (* item factor)))
(define squares (make-array i64 10))
(for-each-item 10 (put squares 7))
(define (show item of) (print! (array-ref of item)))
(for-each-item 3 (show squares))
(array-ref squares 9)
"""


@pytest.mark.parametrize("backend", ["reference", "threaded", "llvm"])
def test_items_are_called_in_order_with_the_arguments(backend: str) -> None:
    found = ferryvm.run(ferryvm.compile(SQUARES), backend=backend)
    assert (found.value, found.output) == (63, "0\n7\n14\n")


def test_its_loop_is_a_region_of_kind_launch() -> None:
    found = regions(verify(ferryvm.compile(SQUARES)))
    assert [each.name for each in found if each.kind is RegionKind.LAUNCH] == [
        "main/launch.1",
        "main/launch.2",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(for-each-item 3 (f 1))", "calls a function that the program defines, found 'f'"),
        ("(for-each-item 3 4)", "is written (for-each-item count (function argument ...))"),
        ("(for-each-item 3)", "is written (for-each-item count (function argument ...))"),
        ("(define (f i) i) (for-each-item 3 (f))", "'f' yields i64, a function of items yields no"),
        (
            "(define (f i x) (print! x)) (for-each-item 3 (f))",
            "'f' gets the item and 0 arguments, it takes (f i x)",
        ),
        (
            "(define (f i) (print! i)) (for-each-item 3.5 (f))",
            "the number of items must be i64, found a float",
        ),
        (
            "(define (f i) (print! (+ i 1.5))) (for-each-item 3 (f))",
            "'i' of 'f' is a float, an item is i64",
        ),
        (
            "(define (f i) (print! i)) (print! (for-each-item 3 (f)))",
            "'for-each-item' yields no value",
        ),
    ],
)
def test_a_mistake_is_told(text: str, message: str) -> None:
    with pytest.raises(ferryvm.SourceError) as raised:
        ferryvm.compile(text)
    assert message in str(raised.value)
