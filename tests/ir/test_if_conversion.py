# SPDX-License-Identifier: Apache-2.0
"""Short branches of loops become selections, checks of their sides included; checks of overflow are
made together."""

from __future__ import annotations

import pytest

from ferryvm.ir.passes.if_conversion import convert_branches
from ferryvm.ir.passes.overflow_check import gather_overflow_checks

from .change import changed

LOOP = """
entry @0 ():
  %0: i64 = word 2
  jump b1(%0)
b1 @1 (%1: i64):
  %2: boolean = compare i64 ne %1, i64:1
  branch %2 b2() b7()
b2 @2 ():
  %3: boolean = compare i64 lt_s %1, i64:9
  branch %3 b3() b4()
b3 @3 ():
  {yes}
  jump b5(%4)
b4 @4 ():
  {no}
  jump b5(%6)
b5 @5 (%8: i64):
  poll @1 [_ _ %8]
  jump b1(%8)^
b7 @7 ():
  return %1
"""
SHIFT = "%4: i64 = shr_s i64 %1, i64:1"
CHECKED = (
    "%5: boolean = mul_overflows i64 %1, i64:3\n  trap_if INTEGER_OVERFLOW %5 @4 [_ _ %1]\n"
    "  %6: i64 = mul i64 %1, i64:3"
)


def test_a_check_of_a_side_fails_only_where_control_would_have_come_to_it() -> None:
    text = changed(convert_branches, LOOP.format(yes=SHIFT, no=CHECKED))
    assert "b3" not in text
    assert "b4" not in text
    assert "%5: boolean = none %3" in text
    assert "= all %6, %5\n  trap_if INTEGER_OVERFLOW %7 @4" in text
    assert "= select %3, %4, %8" in text


@pytest.mark.parametrize(
    ("divisor", "is_converted"), [(2, True), (-3, True), (0, False), (-1, False)]
)
def test_a_division_is_converted_if_it_is_defined_for_all_operands(
    divisor: int, is_converted: bool
) -> None:
    text = LOOP.format(yes=SHIFT, no=f"%6: i64 = div_s i64 %1, i64:{divisor}")
    assert ("select" in changed(convert_branches, text)) is is_converted


LONG = (
    "%5: i64 = mul i64 %1, %1\n  %9: i64 = mul i64 %5, %5\n  %10: i64 = mul i64 %9, %5\n"
    "  %11: i64 = mul i64 %10, %5\n  %6: i64 = mul i64 %11, %5"
)


@pytest.mark.parametrize(
    "no",
    [
        "%6: i64 = div_s i64 %1, %0",
        "heap_store 8 %1, %0\n  %6: i64 = add i64 %1, i64:1",
        "%6: i64 = heap_load 8 %1",
        LONG,
    ],
)
def test_a_side_that_is_long_or_does_more_remains_a_branch(no: str) -> None:
    text = LOOP.format(yes=SHIFT, no=no)
    assert changed(convert_branches, text).count("branch") == text.count("branch")


TOGETHER = """
entry @0 ():
  %0: i64 = word 2
  jump b1(%0)
b1 @1 (%1: i64):
  %2: boolean = mul_overflows i64 %1, i64:{factor}
  trap_if INTEGER_OVERFLOW %2 @2 [_ _ %1]
  %3: i64 = mul i64 %1, i64:{factor}
  {between}
  %4: boolean = add_overflows i64 %3, i64:1
  trap_if INTEGER_OVERFLOW %4 @3 [_ _ %3]
  %5: i64 = add i64 %3, i64:1
  poll @1 [_ _ %5]
  jump b1(%5)^
"""
M = 1 << 63


@pytest.mark.parametrize("factor", [3, -3, 31, -1, 1 << 40])
def test_one_comparison_excludes_exactly_the_values_that_overflow(factor: int) -> None:
    text = changed(gather_overflow_checks, TOGETHER.format(factor=factor, between=""))
    assert "rare.b1 @1 ():\n  trap_if INTEGER_OVERFLOW" in text
    number = int(text.split("add i64 %1, i64:")[1].split("\n")[0])
    size = int(text.split("compare i64 gt_u ")[1].split("i64:")[1].split("\n")[0]) % (2 * M)
    low, high = -number, size - number
    for x in (low - 1, low, 0, high, high + 1):
        fits = all(-M <= y < M for y in (x, x * factor, x * factor + 1))
        assert (low <= x <= high) is fits


@pytest.mark.parametrize(
    "between", ["heap_store 8 %1, %0", "%9: i64 = heap_load 8 %3", "set_static 0 %1"]
)
def test_checks_are_not_delayed_behind_anything_else(between: str) -> None:
    text = changed(gather_overflow_checks, TOGETHER.format(factor=3, between=between))
    assert "rare" not in text
