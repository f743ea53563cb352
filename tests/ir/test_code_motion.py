# SPDX-License-Identifier: Apache-2.0
"""Loop-invariant code is computed before the loop, unless it may do harm there."""

from __future__ import annotations

import functools

import pytest

from ferryvm.ir.graph import Body
from ferryvm.ir.passes.code_motion import hoist_invariants

from .change import changed

LOOP = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  jump b1(i64:0)
b1 @1 (%2: i64):
  %3: i64 = {operation}
  %4: i64 = add i64 %2, i64:1
  %5: boolean = compare i64 lt_s %4, %3
  branch %5 b2() b3()
b2 @2 ():
  poll @1 [_ _ %0 %1]
  jump b1(%4)^
b3 @3 ():
  return %3
"""

MOVED = [
    "mul i64 %0, %1",
    "shl i64 %0, i64:3",
    "frame",
    "stack_limit",
    "heap_capacity",
    "header_word 1 %0",
    "object_end",
]
KEPT = [
    "mul i64 %0, %2",
    "div_u i64 %0, %1",
    "rem_s i64 %0, %1",
    "shl i64 %0, %1",
    "shr_u i64 %0, i64:64",
    "heap_load 8 %0",
    "heap_pointer",
    "static_at %0",
    "table_function %0",
    "type_word %0, i64:2",
    "cast 12 %0",
    "object_top",
    "field_load 12 0 %0",
    "element_load f64 %0, %1",
]


@pytest.mark.parametrize("operation", MOVED)
def test_what_is_the_same_in_each_iteration_is_moved(operation: str) -> None:
    text = changed(hoist_invariants, LOOP.format(operation=operation))
    entry, rest = text.split("b1 @1")
    assert operation in entry
    assert operation not in rest
    assert "i64:1" in rest


@pytest.mark.parametrize("operation", KEPT)
def test_what_changes_or_may_not_be_computed_stays(operation: str) -> None:
    text = LOOP.format(operation=operation)
    assert changed(hoist_invariants, text) == text


@pytest.mark.parametrize(
    ("operation", "is_moved"),
    [
        ("div_s i64 %0, i64:3", True),
        ("rem_u i64 %0, i64:8", True),
        ("div_s i64 %0, i64:-1", False),
        ("rem_u i64 %0, i64:0", False),
        ("div_u i64 %0, %1", False),
    ],
)
def test_a_division_by_a_constant_is_moved_where_that_is_wanted(
    operation: str, is_moved: bool
) -> None:
    hoist = functools.partial(hoist_invariants, divisions=True)
    text = changed(hoist, LOOP.format(operation=operation))
    assert (operation in text.split("b1 @1")[0]) == is_moved


def test_a_count_below_the_width_may_be_shifted_by() -> None:
    text = LOOP.format(operation="shl i64 %0, %6").replace(
        "  jump b1(i64:0)", "  %6: i64 = bit_and i64 %1, i64:63\n  jump b1(i64:0)"
    )
    assert "shl" in changed(hoist_invariants, text).split("b1 @1")[0]


NEST = """
entry @0 ():
  %0: i64 = word 2
  jump b1(i64:0)
b1 @1 (%1: i64):
  jump b2(i64:0)
b2 @2 (%2: i64):
  %3: i64 = mul i64 %0, %0
  %4: i64 = mul i64 %1, %1
  %5: i64 = add i64 %3, %4
  %6: i64 = add i64 %2, %5
  %7: boolean = compare i64 lt_s %6, i64:9
  branch %7 b3() b4()
b3 @2 ():
  poll @2 [_ _ %0]
  jump b2(%6)^
b4 @4 ():
  %8: boolean = compare i64 lt_s %6, i64:99
  branch %8 b5() b6()
b5 @1 ():
  poll @1 [_ _ %0]
  jump b1(%6)^
b6 @6 ():
  return %6
"""


def test_an_operation_goes_out_of_all_loops_in_which_it_is_the_same() -> None:
    text = changed(hoist_invariants, NEST)
    entry, outer = text.split("b1 @1 (")
    outer, inner = outer.split("b2 @2 (")
    assert entry.count("mul") == 1
    assert outer.count("mul") == 1
    assert "mul" not in inner


def test_a_loop_that_is_entered_in_two_ways_gets_a_block_in_front() -> None:
    text = LOOP.format(operation="mul i64 %0, %1").replace(
        "  jump b1(i64:0)",
        "  %6: boolean = compare i64 eq %0, %1\n  branch %6 b1(%0) b1(%1)",
    )
    after = changed(hoist_invariants, text)
    assert (
        "branch %2 preheader.b1(%0) preheader.b1(%1)\npreheader.b1 @1 (%3: i64):\n  %4: i64 = mul"
        in after
    )


def with_fields(body: Body) -> None:
    hoist_invariants(body, fields=True)


def test_a_field_is_loaded_before_the_loop_and_of_null_it_is_zero() -> None:
    text = changed(with_fields, LOOP.format(operation="field_load 12 0 %0"))
    entry, rest = text.split("b1 @1")
    assert "= compare i64 eq %0, i64:0" in entry
    assert "= field_load 12 0 %0" in entry
    assert "= select %2, i64:0, %3" in entry
    assert "field_load" not in rest


@pytest.mark.parametrize(
    ("change", "is_moved"), [("field_store 12 0 %1, %4", False), ("field_store 12 1 %1, %4", True)]
)
def test_a_field_that_the_loop_changes_is_loaded_in_it(change: str, is_moved: bool) -> None:
    text = LOOP.format(operation="field_load 12 0 %0").replace("  poll", f"  {change}\n  poll")
    assert ("field_load" in changed(with_fields, text).split("b1 @1")[0]) is is_moved
