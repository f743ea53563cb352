# SPDX-License-Identifier: Apache-2.0
"""Loops that divide their variable become loops over rows, with the same states wherever they
leave."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.errors import FerryError
from ferryvm.ir.graph import Module
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.row_split import split_rows
from ferryvm.machine.control import Status
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import Verified, verify
from ferryvm_backends.reference import BACKEND as REFERENCE

from ..faults.compilers.planting import CompilerFault, planted
from ..tier import sample
from .change import changed
from .comparison import FUEL, SMALL, compare, run, visits

LOOP = """
entry @0 ():
  %0: i64 = word 2
  %1: i64 = word 3
  jump b1(i64:0)
b1 @1 (%2: i64):
  %3: boolean = compare i64 lt_s %2, %0
  branch %3 b2() b3()
b2 @2 ():
  {division}
  %5: boolean = compare i64 eq %4, i64:99
  trap_if UNREACHABLE %5 @2 [_ _ %2 %4]
  %6: i64 = add i64 %2, i64:1
  poll @1 [_ _ %6 %4]
  jump b1(%6)^
b3 @3 ():
  leave @3 [_ _ %2 %1]
"""

FORM = """
(define a (make-array i64 90)) (define sum 0)
(define (f i n w m s)
  (while (< i n)
    {body}
    (set! i (+ i 1))))
(f {arguments})
"""
DIVIDED = """(let ((row (/ i w)) (column (% i w)))
      (set! sum (+ sum column))
      (array-set! a (+ i 25) (+ (* 1000 row) column)))"""
SHIFTED = """(let ((row (>>> (* i m) s)))
      (let ((column (- i (* row w))))
        (set! sum (+ sum column))
        (array-set! a (+ i 25) (+ (* 1000 row) column))))"""

BY_20 = (1 << 36) // 20 + 1
"""The factor of a division by 20, with a shift of 36."""

DIVISIONS = [
    *[(0, 60, w) for w in (16, 60, 100, 1 << 62, (1 << 63) - 1)],
    *[(5, 60, w) for w in (17, 3, 0, -1, -20)],
    (0, 70, 16),  # item 65 traps
    (-20, 30, 16),
    (9, 3, 16),
]
"""First number, bound, width."""

SHIFTS = [
    (0, 60, 20, BY_20, 36),
    (7, 60, 20, BY_20, 100),
    (0, 60, 40, BY_20, 36),  # quotients change within a row
    (0, 60, 16, BY_20, 36),
    (0, 60, 17, 1 << 60, 60),  # products wrap
    (0, 60, 30, 0, 36),
    (0, 60, 20, -BY_20, 36),
    (-20, 30, 20, BY_20, 36),
    (0, 70, 20, BY_20, 36),
]
"""First number, bound, width, factor, shift."""


def _divided(first: int, bound: int, width: int) -> Verified:
    text = FORM.format(body=DIVIDED, arguments=f"{first} {bound} {width} 0 0")
    return verify(ferryvm.compile(text))


def _shifted(*arguments: int) -> Verified:
    text = FORM.format(body=SHIFTED, arguments=" ".join(map(str, arguments)))
    return verify(ferryvm.compile(text))


def _split(module: Module) -> None:
    optimise(module, rows=True)


def _compare(program: Verified) -> int:
    """Compare the states of all loops; how many of them were divided."""
    made = 0
    for found, machine in visits(program):
        modules: list[Module] = []

        def change(module: Module, modules: list[Module] = modules) -> None:
            _split(module)
            modules.append(module)

        compare(found, machine, change, polls=1000)
        labels = [block.label for body in modules[-1].bodies for block in body.blocks]
        made += any(label.startswith("row.") for label in labels)
    return made


@pytest.mark.parametrize(
    ("division", "is_split"),
    [
        ("%4: i64 = div_s i64 %2, i64:16", True),
        ("%4: i64 = rem_u i64 %2, i64:16", True),
        ("%4: i64 = div_s i64 %2, i64:15", False),
        ("%4: i64 = div_s i64 i64:99, %2", False),
    ],
)
def test_loops_that_divide_their_variable_become_two(division: str, is_split: bool) -> None:
    text = LOOP.format(division=division).replace("%4]", "i64:0]")
    found = changed(split_rows, text)
    assert ("rows.b1" in found) == is_split
    assert found.count("^") == (2 if is_split else 1)


def test_rows_of_unknown_width_have_the_loop_beside_them() -> None:
    text = LOOP.format(division="%4: i64 = rem_s i64 %2, %1").replace("%4]", "i64:0]")
    found = changed(split_rows, text)
    assert "branch" in found.partition("\nwidth.b1 ")[2].partition("\nnarrow.b1 ")[0]
    assert found.count("^") == 3
    assert found.count("rem_s") == 1


def test_a_loop_whose_poll_needs_a_quotient_stays_one() -> None:
    text = LOOP.format(division="%4: i64 = div_s i64 %2, i64:16")
    assert changed(split_rows, text) == changed(lambda body: None, text)


@pytest.mark.parametrize("case", DIVISIONS)
def test_states_of_divisions_are_the_same(case: tuple[int, int, int]) -> None:
    assert _compare(_divided(*case))


@pytest.mark.parametrize("case", SHIFTS)
def test_states_of_divisions_by_multiplication_are_the_same(case: tuple[int, ...]) -> None:
    assert _compare(_shifted(*case))


@pytest.mark.parametrize("number", sample(range(40), 2))
def test_states_of_random_programs_are_the_same(number: int) -> None:
    for found, machine in visits(verify(generate(82, number, ProgramKind.BYTECODE))):
        compare(found, machine, _split, polls=1000)


def _polls(program: Verified) -> int:
    """The number of polls of a program's loop; fails unless it ends as it should after each."""
    done = Engine("reference", limits=SMALL).start(program)
    done.run()
    expected = done.machine.snapshot()
    found, machine = next(each for each in visits(program) if "loop" in each[0].name)
    for polls in range(200):
        left = run(found, machine, _split, polls=polls, counting=False)
        if left.status is not Status.INTERRUPTED:
            return polls
        left.control.status = Status.RUNNING
        left.control.fuel = FUEL
        assert REFERENCE.prepare(program).enter(left, True) is Status.HALT
        left.control.fuel = done.machine.control.fuel
        assert left.snapshot() == expected
    raise AssertionError("it does not end")


def test_programs_go_on_from_each_poll() -> None:
    assert _polls(_divided(0, 60, 17)) == 60 + len((17, 34, 51, 60))


MODULE = "ferryvm.ir.passes.row_split"

FAULTS = [
    (
        "row-of-two-rows",
        "m.add(I64, number, self.one), quotient.width",
        "m.add(I64, self.one, self.one), quotient.width",
        _divided,
        (0, 60, 17),
    ),
    (
        "bound-passed",
        "        end = bound\n",
        "        end = m.constant(I64, 1 << 40)\n",
        _divided,
        (0, 40, 17),
    ),
    (
        "changes-in-a-row",
        "return m.all(is_exact, is_same)",
        "return is_exact",
        _shifted,
        (0, 60, 40, BY_20, 36),
    ),
    (
        "products-wrap",
        "return m.all(is_exact, is_same)",
        "return is_same",
        _shifted,
        (0, 60, 17, 1 << 60, 60),
    ),
    (
        "numbers-below-zero",
        "m.compare(I64, Condition.GE_S, first, self.zero)",
        "m.compare(I64, Condition.LE_S, first, end)",
        _divided,
        (-20, 30, 16),
    ),
    (
        "rows-without-progress",
        "m.compare(I64, Condition.GT_S, end, first)",
        "m.compare(I64, Condition.GE_S, end, end)",
        _shifted,
        (0, 60, 16, BY_20, 36),
    ),
    (
        "remainder-of-the-row",
        '"sub", (self.variable.value, base)',
        '"sub", (self.variable.value, number)',
        _divided,
        (0, 60, 17),
    ),
]
"""Name, text, what stands in its place, and the program that shows it."""


@pytest.mark.parametrize("fault", FAULTS, ids=[name for name, *_ in FAULTS])
def test_a_planted_fault_is_found(
    fault: tuple[str, str, str, Callable[..., Verified], tuple[int, ...]],
) -> None:
    name, old, new, make, arguments = fault
    program = make(*arguments)
    with planted(CompilerFault(name, name, "llvm", MODULE, old, new)):
        try:
            _compare(program)
        except (AssertionError, FerryError):
            return
    pytest.fail("it is not found")


def test_a_state_in_front_of_the_row_is_found() -> None:
    old, new = "new[value] = parameter\n", "new[value] = self.first\n"
    fault = CompilerFault("state", "state", "llvm", MODULE, old, new)
    with planted(fault), pytest.raises((AssertionError, FerryError)):
        _polls(_divided(0, 60, 17))
