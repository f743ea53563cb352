# SPDX-License-Identifier: Apache-2.0
"""Barriers and arrays of groups, as OpenCL C statements (The OpenCL Specification 1.2, 6.12.8).

Members that fail go on, see `ferryvm.ir.member.failure`. A variable, `failed`, says so, and is
returned at the end. In a member that has failed guarded operations with a value yield 0, divisions
have the divisor 1, and others do nothing.
"""

from __future__ import annotations

from ferryvm.ir.c.context import FORCED_IN
from ferryvm.ir.c.scope import FunctionScope
from ferryvm.ir.graph import Operation
from ferryvm.ir.member.failure import NOTES
from ferryvm.ir.operation import DIVISIONS
from ferryvm.isa.type import Type

MOST_ITERATIONS = 1 << 22
"""Iterations of loops with barriers, which nothing interrupts, at most."""


class Groups:
    """Prints operations of groups."""

    def __init__(self, scope: FunctionScope) -> None:
        self.scope = scope
        self.can_fail = any(o.name in NOTES for o in scope.body.operations)

    def do_member(self, operation: Operation) -> str:
        return "member"

    def do_member_index(self, operation: Operation) -> str:
        return f"get_local_id({operation.fact(0, int)})"

    def do_group_array(self, operation: Operation) -> str:
        """No value: accesses name the array."""
        return "0"

    def do_barrier(self, operation: Operation) -> None:
        text = self.scope.helper("group_barrier", self.scope.shared.choices.fence)
        self.scope.lines.add(f"{text};")

    # --- failures ---------------------------------------------------------------------------

    def do_fail_if(self, operation: Operation, p: str) -> None:
        self._fail_if(p)

    def do_fail_if_interrupted(self, operation: Operation) -> None:
        budget = self.scope.base("budget")
        is_spent = self.scope.helper("unlikely", f"--{budget} == 0")
        self.scope.lines.open(f"if ({is_spent}) {{")
        self.scope.lines.add(f"{budget} = {self.scope.shared.choices.poll_budget};")
        self._fail_if(self.scope.helper("interrupted", "control"))
        self.scope.lines.close()

    def _fail_if(self, p: str) -> None:
        if self.scope.shared.choices.forced:
            p = f"--{FORCED_IN} == 0 || {p}"
        self.scope.lines.add(f"failed |= {p};")

    def do_iterations_spent(self, operation: Operation) -> str:
        return f"++{self.scope.base('iterations')} > {MOST_ITERATIONS}u"

    def do_has_failed(self, operation: Operation) -> str:
        return "failed"

    def is_guarded(self, operation: Operation) -> bool:
        """True if an operation has to be guarded."""
        return operation in self.scope.shared.choices.guarded

    def operands(self, operation: Operation, operands: list[str]) -> list[str]:
        """The operands of an operation that is guarded."""
        if operation.name in DIVISIONS:
            t = operation.fact(0, Type)
            one = self.scope.arithmetic.constant(t, 1)
            operands[1] = f"(failed ? {one} : {operands[1]})"
        return operands

    def open(self) -> None:
        """Begin the statements of a guarded operation that yields nothing."""
        self.scope.lines.open(f"if ({self._does_not_fail()}) {{")

    def result(self, operation: Operation, result: str) -> str:
        """The value of a guarded operation."""
        if operation.name in DIVISIONS:
            return result
        assert isinstance(operation.type, Type)
        zero = self.scope.arithmetic.constant(operation.type, 0)
        return f"{self._does_not_fail()} ? {result} : {zero}"

    def _does_not_fail(self) -> str:
        return "!failed"
