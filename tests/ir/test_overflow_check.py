# SPDX-License-Identifier: Apache-2.0
"""Checks of overflow: those of one value in a loop become one comparison, at the exact ends."""

from __future__ import annotations

import re

import pytest

from ferryvm.ir.passes.overflow_check import gather_overflow_checks

from .change import changed


def loop(*checks: tuple[str, str, int]) -> str:
    """A loop with a check for each operation, the operand and the number, over %1."""
    lines = ["", "entry @0 ():", "  %0: i64 = word 2", "  jump head(%0)", "head @1 (%1: i64):"]
    number = 2
    for name, operand, constant in checks:
        lines.append(f"  %{number}: boolean = {name}_overflows i64 {operand}, i64:{constant}")
        lines.append(f"  trap_if INTEGER_OVERFLOW %{number} @{number} [_ _ %1]")
        lines.append(f"  %{number + 1}: i64 = {name} i64 {operand}, i64:{constant}")
        number += 2
    lines.append(f"  %{number}: boolean = compare i64 eq %{number - 1}, i64:7")
    lines.append(f"  branch %{number} out() back()")
    lines += [
        "back @1 ():",
        f"  poll @1 [_ _ %{number - 1}]",
        f"  jump head(%{number - 1})^",
        "out @9 ():",
    ]
    return "\n".join([*lines, f"  leave @9 [_ _ %{number - 1}]", ""])


def range_of(text: str) -> tuple[int, int]:
    """The range of the one comparison: its low end, and its size."""
    found = re.findall(
        r"(%\d+): i64 = (add|sub) i64 %1, i64:(-?\d+)\n.* gt_u \1, i64:(-?\d+)", text
    )
    ((_, name, number, size),) = found
    return (-int(number) if name == "add" else int(number)), int(size) & (1 << 64) - 1


LEAST, MOST = -(1 << 63), (1 << 63) - 1


@pytest.mark.parametrize(
    ("checks", "low", "high"),
    [
        ([("mul", "%1", 3), ("add", "%3", 1)], -(1 << 63) // 3 + 1, (MOST - 1) // 3),
        ([("add", "%1", 5), ("sub", "%3", 9)], LEAST + 4, MOST - 5),
        ([("mul", "%1", -2), ("add", "%3", -1)], -(MOST // 2), (1 << 63) // 2 - 1),
    ],
)
def test_checks_of_one_value_are_one_comparison(
    checks: list[tuple[str, str, int]], low: int, high: int
) -> None:
    text = changed(gather_overflow_checks, loop(*checks))
    assert range_of(text) == (low, high - low)
    rare = text.partition("rare.head @")[2].partition("checked.head @")[0]
    assert rare.count("trap_if") == len(checks) == text.count("trap_if")


@pytest.mark.parametrize(
    "checks",
    [
        [("add", "%1", 5)],
        [("add", "%1", 5), ("add", "%0", 5)],
    ],
)
def test_a_single_check_of_a_value_stays_as_it_is(checks: list[tuple[str, str, int]]) -> None:
    text = loop(*checks)
    assert changed(gather_overflow_checks, text) == text
