# SPDX-License-Identifier: Apache-2.0
"""Exit threading: iterations that decide the exit condition of their loop leave it at once."""

from __future__ import annotations

import pytest

from ferryvm.ir.passes.exit_threading import thread_exits

from .change import changed

SEARCH = """
entry @0 ():
  %0: i64 = word 2
  jump b1(i64:0, i32:1)
b1 @1 (%1: i64, %2: i32):
  %3: boolean = compare i32 eq %2, i32:0
  branch %3 b5() b2()
b2 @2 ():
  %4: boolean = compare i64 eq %1, %0
  branch %4 b3({found}) b3(%2)
b3 @3 (%5: i32):
  %6: i64 = add i64 %1, i64:1
  poll @1 [_ _ %0 %6 %5]
  jump b1(%6, %5)^
b5 @5 ():
  leave @5 [_ _ %0 %1 %2]
"""
"""Counts until a number is found, which a flag tells."""


def test_an_edge_that_sets_a_flag_leaves_the_loop_with_the_values_of_the_next_test() -> None:
    assert changed(thread_exits, SEARCH.format(found="i32:0")) == (
        """
entry @0 ():
  %0: i64 = word 2
  jump b1(i64:0, i32:1)
b1 @1 (%1: i64, %2: i32):
  %3: boolean = compare i32 eq %2, i32:0
  branch %3 b5(%1, %2) b2()
b2 @2 ():
  %4: boolean = compare i64 eq %1, %0
  branch %4 last.b3() b3(%2)
b3 @3 (%5: i32):
  %6: i64 = add i64 %1, i64:1
  poll @1 [_ _ %0 %6 %5]
  jump b1(%6, %5)^
last.b3 @3 ():
  %7: i64 = add i64 %1, i64:1
  jump b5(%7, i32:0)
b5 @5 (%8: i64, %9: i32):
  leave @5 [_ _ %0 %8 %9]
"""
    )


@pytest.mark.parametrize(
    "text",
    [
        SEARCH.format(found="i32:1"),  # the loop goes on
        SEARCH.format(found="%2"),  # the flag is not known
        SEARCH.format(found="i32:0").replace("  poll", "  heap_store 8 %6, %6\n  poll"),
    ],
)
def test_an_edge_that_decides_nothing_and_a_latch_with_effects_stay(text: str) -> None:
    assert changed(thread_exits, text) == text


def test_values_behind_two_exits_stay_where_the_loop_is_left_in_two_ways() -> None:
    """Behind both exits `%1` is used: it would need a parameter there for each."""
    text = SEARCH.format(found="i32:0").replace(
        "  leave @5 [_ _ %0 %1 %2]", "  jump b6()\nb6 @6 ():\n  leave @6 [_ _ %0 %1 %2]"
    )
    two = text.replace("b3(%2)\nb3", "b4()\nb4 @4 ():\n  branch false b3(%2) b6()\nb3")
    assert changed(thread_exits, two) == two
