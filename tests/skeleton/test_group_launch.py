# SPDX-License-Identifier: Apache-2.0
"""Launches of groups: items with their numbers in groups, and arrays that each group makes."""

from __future__ import annotations

import numpy as np
import pytest

import ferryvm
from ferryvm.backend import Forcing
from ferryvm.build import F64_ARRAY, I64, I64_ARRAY, BuildError, Program

from ..tier import nightly

TEXT = """
(define (member item local (tile (array i64)) sums (to (array i64)) (xs (array i64)))
  (array-set! tile local (array-ref xs item))
  (barrier)
  (define total (group-reduce + (array-ref xs item) local sums))
  (array-set! to item (+ (* 1000 total) (array-ref tile (- (array-length sums) 1 local)))))
(define (reversed size (to (array i64)) (xs (array i64)))
  (for-each-group ((array-length xs) size)
    (member (group-array i64 7) (group-array i64) to xs)))
(define (usual (to (array i64)) (xs (array i64)))
  (for-each-group (array-length xs) (member (group-array i64 64) (group-array i64) to xs)))
"""


def expected(xs: list[int], size: int) -> list[int]:
    groups = [xs[start : start + size] for start in range(0, len(xs), size)]
    return [1000 * sum(group) + x for group in groups for x in reversed(group)]


@pytest.mark.parametrize("backend", ["threaded", *map(nightly, ("reference", "llvm", "opencl"))])
def test_groups_have_their_own_arrays_and_the_last_one_what_is_left(backend: str) -> None:
    instance = ferryvm.Engine(backend).instantiate(ferryvm.compile(TEXT))
    for count, size in ((0, 3), (1, 3), (6, 3), (7, 3), (4, 7)):
        xs, to = np.arange(5, 5 + count), np.zeros(count, np.int64)
        instance.reversed(size, to, xs)
        assert to.tolist() == expected(xs.tolist(), size), (count, size)
    xs, to = np.arange(100), np.zeros(100, np.int64)
    instance.usual(to, xs)
    assert to.tolist() == expected(xs.tolist(), 64)


def test_items_of_groups_are_independent_and_trap_with_reasons() -> None:
    def run(call: str) -> None:
        text = f"{TEXT} (define xs (make-array i64 5)) {call}"
        execution = ferryvm.Engine("reference").start(ferryvm.compile(text, "p"))
        execution.run(forcing=frozenset({Forcing.INDEPENDENCE}))

    run("(reversed 2 (make-array i64 5) xs)")
    with pytest.raises(ferryvm.TrapError, match=r"size of a group is at least 1 in .*: 0"):
        run("(reversed 0 (make-array i64 5) xs)")
    with pytest.raises(ferryvm.TrapError, match="negative number of items: -1"):
        run("(for-each-group (- 1) (member (group-array i64) (group-array i64) xs xs))")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(for-each-group 4 (g))", "'g' gets the item, its number in the group and 0 arguments"),
        ("(for-each-group 4 (g (group-array string)))", "'group-array' is written"),
        ("(for-each-group 4 (g (group-array f64)))", "argument 3 .* of 'g' must be .*i64"),
        ("(for-each-group 4.5 (g (group-array i64)))", "the number of items must be i64"),
        ("(for-each-group 4 (h (group-array i64)))", "calls a function that the program defines"),
    ],
)
def test_launches_of_groups_that_do_not_fit_are_refused(text: str, message: str) -> None:
    define = "(define (g item local (t (array i64))) (array-set! t local item))"
    with pytest.raises(ferryvm.SourceError, match=message):
        ferryvm.compile(f"{define} {text}", "p")


def test_builder_launches_groups() -> None:
    program = Program()
    member = program.function(
        "member", {"item": I64, "local": I64, "to": I64_ARRAY, "tile": F64_ARRAY}
    )
    member.local_get("to")
    member.local_get("item")
    member.local_get("local")
    member.local_get("tile")
    member.array_length()
    member.i64_add()
    member.array_set_i64()
    main = program.function("main", {"to": I64_ARRAY})
    main.local_get("to")
    main.i64_const(10)
    main.i64_const(5)
    main.i64_const(3)
    main.launch_groups(member, arrays=["tile"])
    program.export(main)
    to = np.zeros(5, np.int64)
    ferryvm.Engine("threaded").instantiate(program.build()).main(to)
    assert to.tolist() == [10, 11, 12, 10, 11]
    with pytest.raises(BuildError, match=r"'item' is no parameter of .* for an array"):
        main.launch_groups(member, arrays=["item"])
