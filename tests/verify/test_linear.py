# SPDX-License-Identifier: Apache-2.0
"""Verifying takes work in proportion to the program, counted in steps and not in seconds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from ferryvm.isa import BY_MNEMONIC, I64
from ferryvm.isa.declared_type import TypeHierarchy
from ferryvm.isa.frame import return_immediate
from ferryvm.program import Clause, Code, Function, Program, Signature
from ferryvm.verify import verify
from ferryvm.verify.stack_map import Kinds, Stacks
from ferryvm.verify.structure import MAX_PARAMETERS
from ferryvm.verify.type_flow import TypeFlow


def program(lines: list[tuple[str, int]], *more: Function, **parts: object) -> Program:
    """A program of (mnemonic, immediate) lines."""
    opcodes = [BY_MNEMONIC[mnemonic].opcode for mnemonic, _ in lines]
    code = Code.of(opcodes, [immediate for _, immediate in lines])
    whole = Program(code, (Function("main", 0, 0), *more), (Signature(),))
    return dataclasses.replace(whole, **parts)  # type: ignore[arg-type]  # any field


def deep(count: int) -> Program:
    """A stack of `count` operands."""
    return program([("i64.const", 1)] * count + [("halt", 0)])


def deep_joins(count: int) -> Program:
    """Ways that part and meet again, all of them above a stack that is as deep as they are many."""
    lines = [("i64.const", 1)] * count
    for _ in range(count):
        lines += [("i32.const", 1), ("jump_if", len(lines) + 3), ("nop", 0)]
    return program([*lines, ("halt", 0)])


def table_above_deep_stack(count: int) -> Program:
    """A jump table whose every label pops one operand of a deep stack and pushes it again."""
    lines = [("i64.const", 1)] * count + [("i32.const", 0), ("jump_table", count - 1)]
    lines += [("jump", len(lines) + count + 3 * index) for index in range(count)]
    lines += [("drop", 0), ("i64.const", 2), ("halt", 0)] * count
    return program(lines)


def many_calls(count: int) -> Program:
    """Calls of a function without parameters, one after another."""
    lines = [("call", 1)] * count + [("halt", 0), ("return", 0)]
    return program(lines, Function("f", count + 1, 0))


def backward_jumps(count: int) -> Program:
    """A ladder of loops, each reached from below."""
    lines: list[tuple[str, int]] = []
    for index in range(count):
        lines += [("i32.const", 1), ("jump_if", max(0, 2 * index - 2))]
    return program([*lines, ("halt", 0)])


def clauses_above_deep_stack(count: int) -> Program:
    """Calls above a deep stack, each covered by a clause of its own that leaves one operand."""
    lines = [("i64.const", 1)] * count + [("call", 1)] * count
    lines += [("halt", 0), ("halt", 0), ("return", 0)]
    clauses = tuple(Clause(pc, pc + 1, 2 * count + 1, 1) for pc in range(count, 2 * count))
    return program(lines, Function("f", 2 * count + 2, 0), clauses=clauses)


@dataclasses.dataclass
class Steps:
    """How often the parts of the verifier that loops are made of ran."""

    pushed: int = 0
    reached: int = 0
    interned: int = 0

    @property
    def total(self) -> int:
        return self.pushed + self.reached + self.interned


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[Program], Steps]:
    """Counts the steps of verifying a program."""

    def count(program: Program) -> Steps:
        found = Steps()
        push, reach = Stacks.push, TypeFlow._reach

        def counted_push(self: Stacks, stack: int, kind: int) -> int:
            found.pushed += 1
            result = push(self, stack, kind)
            found.interned = len(self.parents)
            return result

        def counted_reach(self: TypeFlow, *arguments: object) -> None:
            found.reached += 1
            reach(self, *arguments)  # type: ignore[arg-type]  # passed on as they came

        with monkeypatch.context() as patch:
            patch.setattr(Stacks, "push", counted_push)
            patch.setattr(TypeFlow, "_reach", counted_reach)
            verify(program)
        return found

    return count


@pytest.mark.parametrize(
    "shape",
    [
        deep,
        deep_joins,
        table_above_deep_stack,
        many_calls,
        backward_jumps,
        clauses_above_deep_stack,
    ],
)
def test_twice_the_program_takes_twice_the_steps(
    shape: Callable[[int], Program], steps: Callable[[Program], Steps]
) -> None:
    small, large = steps(shape(1500)), steps(shape(3000))
    assert small.total >= len(shape(1500).code)
    assert large.total <= 2.05 * small.total
    assert large.interned <= len(shape(3000).code) + 1


def test_each_instruction_is_reached_once_by_each_way_to_it(
    steps: Callable[[Program], Steps],
) -> None:
    count = 1000
    # The entry; from pushes 1 way each; from i32.const, jump_if and nop 1, 2 and 1.
    assert steps(deep_joins(count)).reached == 1 + count + 4 * count


def test_stack_of_65_thousand_operands_has_its_map() -> None:
    verified = verify(deep(65_536))
    assert verified.depth(65_536) == 65_536
    assert verified.operand_types(65_536) == (I64,) * 65_536
    assert verified.frame_words == (2 + 65_536,)


class Reads(list[int]):
    """A list that counts how often it is read."""

    count = 0

    def __getitem__(self, index: int) -> int:  # type: ignore[override]  # no slices here
        self.count += 1
        return super().__getitem__(index)


def test_operands_of_a_deep_stack_are_cut_in_few_steps() -> None:
    stacks = Stacks(Kinds(TypeHierarchy()))
    whole = [0]
    for number in range(65_536):
        whole.append(stacks.push(whole[-1], number % 4))
    stacks.cut(whole[-1], 0)  # makes the skip pointers
    stacks._skips = reads = Reads(stacks._skips)
    for depth in (0, 1, 2, 999, 32_768, 65_535, 65_536):
        assert stacks.cut(whole[-1], depth) == whole[depth]
    assert reads.count < 7 * 100


def test_equal_stacks_are_interned_once(steps: Callable[[Program], Steps]) -> None:
    lines = [("i64.const", 1), ("drop", 0)] * 500 + [("halt", 0)]
    found = steps(program(lines))
    assert (found.pushed, found.interned) == (500, 2)


def test_parameters_have_a_limit_because_calls_share_signatures() -> None:
    # Without one, n calls of a function of n parameters take n * n steps.
    signatures = (Signature(), Signature((I64,) * MAX_PARAMETERS))
    lines = [("i64.const", 1)] * MAX_PARAMETERS + [("call", 1), ("halt", 0)]
    lines += [("return", return_immediate(MAX_PARAMETERS, 0))]
    function = Function("f", len(lines) - 1, 1)
    verified = verify(program(lines, function, signatures=signatures))
    assert verified.frame_words == (2 + MAX_PARAMETERS, 2)
