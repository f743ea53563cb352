# SPDX-License-Identifier: Apache-2.0
"""Golden cases of numeric instructions, with operands that a compiler does not know.

The conformance suite has operands among a program's constants, and compilers fold them. Here
operands are statics, so that the code that a backend has for an instruction is executed. One
program has all instructions with operands of one type; a case puts its operands into the statics
and enters the program. Predicates are also used as control flow uses them, since backends have
code of its own for each form.
"""

from __future__ import annotations

import dataclasses

import pytest

import ferryvm
from ferryvm.engine import runnable
from ferryvm.isa import INSTRUCTIONS, Immediate, Instruction, Type
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.registry import Registry
from ferryvm.testing.conformance.golden import GoldenCase, cases_of
from ferryvm.testing.conformance.instruction import LIMITS
from ferryvm.verify import verify

from ..conftest import BACKENDS
from ..tier import crossed

PREDICATE_FORMS = (
    "{}; jump_if yes; i32.const 0; halt; :yes; i32.const 1",
    "{}; jump_unless no; i32.const 1; halt; :no; i32.const 0",
    "{}; i32.eqz; jump_if no; i32.const 1; halt; :no; i32.const 0",
    "{}; i32.eqz; jump_unless yes; i32.const 0; halt; :yes; i32.const 1",
    "{}; i32.eqz; i32.eqz",
    "i32.const 1; i32.const 0; {}; select",
)
"""Uses of a predicate that give its own value."""

STATICS = {t: 1 + 3 * number for number, t in enumerate(Type)}
"""The number of the first of three statics of each type; static 0 is the number of a piece."""

BOOLEANS = (((Type.I32, 0),), ((Type.I32, 1),))

SLOW = ("opencl", "vliw")
"""Backends that take a second to build a program; the default tier has one type of each, of
integers: vliw takes five seconds of a processor for all functions of f64."""

TYPES = (Type.I32, Type.F32, Type.F64, Type.I64)
QUICK_FIRST = sorted(BACKENDS, key=SLOW.__contains__)


@dataclasses.dataclass(frozen=True)
class Piece:
    """An instruction in one form."""

    row: Instruction
    form: str = "{}"

    @property
    def cases(self) -> list[GoldenCase]:
        """The table lines of the instruction."""
        return [case for case in cases_of(self.row.mnemonic) if case.code is None]

    @property
    def code(self) -> str:
        """Its operands from statics, the instruction in its form, and `halt`."""
        loads = [f"static.get {STATICS[t] + n}" for n, t in enumerate(operand_types(self.row))]
        return self.form.format("; ".join([*loads, self.row.mnemonic])) + "; halt"


def operand_types(row: Instruction) -> tuple[Type, ...]:
    return tuple(t for t in row.pops if isinstance(t, Type))


def pieces(t: Type) -> list[Piece]:
    """All numeric instructions with operands of a type, predicates in every form."""
    found = []
    for row in INSTRUCTIONS:
        is_numeric = row.mnemonic.split(".")[0] in {str(each) for each in Type}
        plain = Piece(row)
        if is_numeric and row.immediate is Immediate.NONE and operand_types(row)[0] is t:
            found.append(plain)
            if all(case.outcome.stack in BOOLEANS for case in plain.cases):
                found += [Piece(row, form) for form in PREDICATE_FORMS]
    return found


def program(members: list[Piece]) -> str:
    """Assembly of a program that executes the piece whose number is in the first static."""
    lines = [".static which i64"]
    lines += [f".static {t}_{name} {t}" for t in Type for name in "abc"]
    labels = " ".join(f"piece{number}" for number in range(len(members)))
    lines += [".function main", "static.get which", "i32.wrap_i64", f"jump_table {labels}"]
    for number in range(len(members)):
        lines += [f":piece{number}", f"call piece{number}", "halt"]
    for number, piece in enumerate(members):
        lines += [f".function piece{number}", *piece.code.split("; ")]
    return "\n".join(lines)


@pytest.mark.all_backends
@pytest.mark.parametrize(
    ("t", "backend"), crossed(TYPES, QUICK_FIRST, always=len(BACKENDS) - len(SLOW))
)
def test_golden_results_do_not_need_constant_operands(t: Type, backend: str) -> None:
    members = pieces(t)
    verified = verify(ferryvm.assemble(program(members)))
    artifact = runnable(Registry(), backend).prepare(verified)
    machine = Machine(verified, LIMITS)
    control = machine.control
    start = control.pc, control.sp, control.fp
    for number, piece in enumerate(members):
        for case in piece.cases:
            control.pc, control.sp, control.fp = start
            machine.memory.statics[0] = number
            for place, word in enumerate(case.operands):
                machine.memory.statics[STATICS[t] + place] = word
            status = artifact.enter(machine, False)
            if case.outcome.trap is None:
                assert status is Status.HALT, f"{case}: {piece.code}"
                assert machine.result() == case.outcome.stack[0], f"{case}: {piece.code}"
            else:
                assert status is Status.TRAP, f"{case}: {piece.code}"
                assert control.trap == case.outcome.trap, f"{case}: {piece.code}"
