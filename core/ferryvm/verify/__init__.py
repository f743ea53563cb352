# SPDX-License-Identifier: Apache-2.0
"""The verifier, the only judge of whether a program can run.

It guarantees this for every reachable instruction, and backends rely on it:

- its opcode and immediate are legal, and its jump targets exist;
- it belongs to one function, and control cannot run past the end of the code;
- the operand stack before it has one depth and one list of types (the *stack map*) on every path,
  and the operands that it pops have its operand types;
- an exception that it throws arrives at the handlers of the clauses that cover it with their stack
  maps, the frame's operands cut to the clause's depth;
- a frame of its function never needs more than `Verified.frame_words` words.

    Program ── structure: tables, clauses, code ── type_flow: stack map, frames ──> Verified
                    │                                    │
                    └───────── refusal: VerifyError ─────┘

The first error found is raised.
"""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.clause import ClauseForest
from ferryvm.isa.declared_type import TypeHierarchy
from ferryvm.isa.type import ValueType
from ferryvm.program import Program
from ferryvm.verify.refusal import VerifyCode as VerifyCode
from ferryvm.verify.refusal import VerifyError
from ferryvm.verify.stack_map import StackMap
from ferryvm.verify.structure import check_clauses, check_immediates, check_tables
from ferryvm.verify.type_flow import TypeFlow
from ferryvm.verify.type_table import check_types

__all__ = ["Verified", "VerifyError", "verify"]


class Verified:
    """A program that passed the verifier, with its stack maps. Only `verify` creates one.

    Unpickling and deep copies verify it again, since a pickle proves nothing. A shallow copy is the
    same object.
    """

    def __init__(self, program: Program, stack_map: StackMap, clauses: ClauseForest) -> None:
        self.program = program
        self.types: TypeHierarchy = stack_map.kinds.hierarchy
        """The reference types of the program, with their ancestors and rows."""
        self.clauses = clauses
        """The clauses, indexed by the instructions that they cover."""
        self.frame_words = stack_map.frame_words
        """Words of the largest frame of each function, from its header on."""
        self._owners, self._states = stack_map.owners, stack_map.states
        self._stacks, self._kinds = stack_map.stacks, stack_map.kinds.types

    def __copy__(self) -> Verified:
        return self

    def __reduce__(self) -> tuple[Callable[[Program], Verified], tuple[Program]]:
        return verify, (self.program,)

    def is_reachable(self, pc: int) -> bool:
        """True if `pc` is reachable: unreachable instructions have no stack map."""
        return self._owners[pc] >= 0

    def owner(self, pc: int) -> int:
        """Number of the function that the instruction at `pc` belongs to, -1 if unreachable."""
        return self._owners[pc]

    def parameters(self, pc: int) -> int:
        """Parameters of the function that the instruction at `pc` belongs to."""
        return len(self.program.signature(self._owners[pc]).parameters)

    def operand_types(self, pc: int) -> tuple[ValueType, ...]:
        """Types of the operand stack before `pc`, deepest first."""
        return tuple(self._kinds[kind] for kind in self._stacks.kinds_of(self._states[pc]))

    def frame_keys(self) -> list[tuple[int, int]]:
        """For each pc the number of its function, -1 if it is unreachable, and the number of its
        operand stack: instructions with equal keys have equal types in their frames."""
        return list(zip(self._owners, self._states, strict=True))

    def depth(self, pc: int) -> int:
        """Words of the operand stack before `pc`."""
        return self._stacks.depths[self._states[pc]]


def verify(program: Program) -> Verified:
    """The verified program. Raises VerifyError for the first error found."""
    hierarchy = check_types(program)
    check_tables(program)
    clauses = check_clauses(program)
    check_immediates(program, hierarchy)
    return Verified(program, TypeFlow(program, clauses, hierarchy).run(), clauses)
