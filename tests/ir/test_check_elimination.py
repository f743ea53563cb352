# SPDX-License-Identifier: Apache-2.0
"""Checks: one that an earlier one implies is gone, and no other."""

from __future__ import annotations

import pytest

from ferryvm.ir.passes.check_elimination import eliminate_checks

from .change import changed


def traps(*conditions: str) -> str:
    """Code with one check for each condition over %0, %1 and %2."""
    lines = ["", "entry @0 ():"]
    lines += [f"  %{n}: i64 = word {n + 2}" for n in range(3)]
    lines.append("  %3: i64 = heap_pointer")
    for number, condition in enumerate(conditions, 4):
        lines.append(f"  %{number}: boolean = {condition}")
    for number in range(4, 4 + len(conditions)):
        lines.append(f"  trap_if UNREACHABLE %{number} @{number} [_ _ %0 %1 %2]")
    return "\n".join([*lines, "  leave @0 [_ _ %0 %1 %2]", ""])


def left(*conditions: str) -> list[int]:
    """Which of the checks remain, by their numbers from 0."""
    text = changed(eliminate_checks, traps(*conditions))
    lines = [line.split("@")[1] for line in text.splitlines() if "trap_if" in line]
    return [int(line.split()[0]) - 4 for line in lines]


SAME = [
    ("compare i64 lt_s %0, %1", "compare i64 gt_s %1, %0"),
    ("compare i64 lt_u %0, %1", "compare i64 gt_u %1, %0"),
    ("compare i64 ge_s %0, %1", "compare i64 le_s %1, %0"),
    ("compare i64 ge_u %0, %1", "compare i64 le_u %1, %0"),
    ("compare i64 eq %0, %1", "compare i64 eq %1, %0"),
    ("compare i64 ne %0, %1", "compare i64 ne %1, %0"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_a_condition_is_known_however_it_is_said(first: str, second: str) -> None:
    assert left(first, first) == [0]
    assert left(first, second) == [0]


OTHER = [
    ("compare i64 lt_s %0, %1", "compare i64 lt_u %0, %1"),
    ("compare i64 lt_s %0, %1", "compare i64 lt_s %1, %0"),
    ("compare i64 lt_s %0, %1", "compare i64 ge_s %0, %1"),
    ("compare i64 ge_u %0, %1", "compare i64 ge_u %0, %2"),
    ("compare i64 eq %0, %1", "compare i64 ne %0, %1"),
]


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_another_condition_is_not_known(first: str, second: str) -> None:
    assert left(first, second) == [0, 1]


def test_float_conditions_have_no_opposite() -> None:
    text = """
entry @0 ():
  %0: f64 = word 2
  %1: f64 = word 3
  %2: boolean = compare f64 lt %0, %1
  %3: boolean = compare f64 ge %0, %1
  trap_if UNREACHABLE %2 @0 [_ _ %0 %1]
  trap_if UNREACHABLE %3 @1 [_ _ %0 %1]
  trap_if UNREACHABLE %2 @2 [_ _ %0 %1]
  leave @0 [_ _ %0 %1]
"""
    assert changed(eliminate_checks, text).count("trap_if") == 2


def test_parts_of_conditions_are_known() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  %1: boolean = compare i64 eq %0, i64:1
  %2: boolean = compare i64 eq %0, i64:2
  %3: boolean = any %1, %2
  %4: boolean = all %1, %2
  %5: boolean = none %4
  trap_if UNREACHABLE %3 @0 [_ _ %0]
  trap_if UNREACHABLE %1 @1 [_ _ %0]
  trap_if UNREACHABLE %4 @2 [_ _ %0]
  trap_if UNREACHABLE %5 @3 [_ _ %0]
  leave @0 [_ _ %0]
"""
    after = changed(eliminate_checks, text)
    assert [line.split()[3] for line in after.splitlines() if "trap_if" in line] == ["@0", "@3"]


def test_grow_and_guard_are_checks_too() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  %1: boolean = compare i64 eq %0, i64:1
  guard 0 %1 @0 [_ _ %0]
  grow_if %1, i64:8 @1 [_ _ %0]
  trap_if UNREACHABLE %1 @2 [_ _ %0]
  guard 3 %1 @3 [_ _ %0]
  leave @0 [_ _ %0]
"""
    after = changed(eliminate_checks, text)
    assert "guard 0 %1" in after
    assert after.count("%1") == 2


def bounds(*accesses: tuple[int, int]) -> str:
    """Bounds checks of %0 plus an offset, for that many bytes, as heap accesses make them."""
    lines = ["", "entry @0 ():", "  %0: i64 = word 2", "  %1: i64 = heap_pointer"]
    for number, (offset, size) in enumerate(accesses):
        a = f"%{100 + 10 * number}"[:-1]
        reach = size - 1
        lines += [
            f"  {a}0: i64 = add i64 %0, i64:{offset}",
            f"  {a}1: boolean = compare i64 gt_u %1, i64:{reach}",
            f"  {a}2: i64 = add i64 %1, i64:{-reach}",
            f"  {a}3: i64 = select {a}1, {a}2, i64:0",
            f"  {a}4: boolean = compare i64 ge_u {a}0, {a}3",
            f"  trap_if MEMORY_OUT_OF_BOUNDS {a}4 @{number} [_ _ %0]",
        ]
    return "\n".join([*lines, "  leave @0 [_ _ %0]", ""])


def left_of(*accesses: tuple[int, int]) -> list[int]:
    from ferryvm.ir.passes.value_numbering import number_values

    def change(body: object) -> None:
        number_values(body)  # type: ignore[arg-type]  # a Body
        eliminate_checks(body)  # type: ignore[arg-type]  # a Body

    text = changed(change, bounds(*accesses))
    return [int(line.split("@")[1].split()[0]) for line in text.splitlines() if "trap_if" in line]


@pytest.mark.parametrize(
    ("accesses", "kept"),
    [
        ([(0, 8), (0, 8)], [0]),
        ([(0, 8), (0, 4)], [0]),
        ([(0, 4), (0, 8)], [0, 1]),
        ([(0, 16), (8, 8)], [0]),
        ([(0, 16), (9, 8)], [0, 1]),
        ([(8, 8), (0, 8)], [0, 1]),
        ([(0, 8), (8, 8), (0, 16)], [0, 1]),
        ([(0, 8), (9, 8), (0, 16)], [0, 1, 2]),
        ([(8, 8), (0, 8), (4, 8)], [0, 1]),
        ([(-8, 8), (0, 8), (-8, 16)], [0, 1]),
        ([(0, 1), (0, 1)], [0]),
    ],
)
def test_bytes_known_to_be_in_bounds_are_not_checked_again(
    accesses: list[tuple[int, int]], kept: list[int]
) -> None:
    assert left_of(*accesses) == kept


def test_a_check_against_another_heap_pointer_stays() -> None:
    text = bounds((0, 8), (0, 8)).replace(
        "compare i64 gt_u %1, i64:7\n  %112: i64 = add i64 %1",
        "compare i64 gt_u %0, i64:7\n  %112: i64 = add i64 %0",
    )
    assert changed(eliminate_checks, text).count("trap_if") == 2


def test_what_a_branch_said_is_known_behind_it() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  %2: boolean = compare i64 lt_s %0, %1
  %3: boolean = compare i64 ge_s %0, %1
  branch %2 b1() b2()
b1 @1 ():
  trap_if UNREACHABLE %3 @1 [_ _ %0 %1]
  branch %3 b3() b4()
b2 @2 ():
  trap_if UNREACHABLE %3 @2 [_ _ %0 %1]
  jump b3()
b3 @3 ():
  trap_if UNREACHABLE %3 @3 [_ _ %0 %1]
  leave @3 [_ _ %0 %1]
b4 @4 ():
  leave @4 [_ _ %0 %1]
"""
    after = changed(eliminate_checks, text)
    assert "b1 @1 ():\n  branch false b3() b4()\n" in after
    assert "@2 [" in after  # it will fail, and fails there
    assert "@3 [_ _ %0 %1]\n  leave" in after  # b3 is reached in two ways


def test_what_is_known_in_one_block_is_not_known_beside_it() -> None:
    text = """
entry @0 ():
  %0: i64 = word 2
  %1: boolean = compare i64 lt_s %0, i64:5
  %2: boolean = compare i64 lt_s %0, i64:7
  branch %1 b1() b2()
b1 @1 ():
  trap_if UNREACHABLE %2 @1 [_ _ %0]
  jump b3()
b2 @2 ():
  trap_if UNREACHABLE %2 @2 [_ _ %0]
  jump b3()
b3 @3 ():
  trap_if UNREACHABLE %2 @3 [_ _ %0]
  leave @3 [_ _ %0]
"""
    assert changed(eliminate_checks, text) == text


def test_a_combination_is_known_as_a_whole() -> None:
    lines = traps("compare i64 lt_s %0, %1", "compare i64 lt_s %1, %2").splitlines()
    checks = [line for line in lines if "trap_if" in line]
    both = ["  %6: boolean = all %4, %5", *(line.replace("%4 @4", "%6 @4") for line in checks)]
    both[2] = both[1]
    text = "\n".join([*lines[: lines.index(checks[0])], *both, lines[-1], ""])
    assert changed(eliminate_checks, text).count("trap_if") == 1
