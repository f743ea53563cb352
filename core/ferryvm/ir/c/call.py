# SPDX-License-Identifier: Apache-2.0
"""Calls as C statements: VM functions call each other as C functions, and leave together."""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.ir.c.context import function_name, result_type
from ferryvm.ir.c.scope import FunctionScope
from ferryvm.ir.c.side_exit import SideExits
from ferryvm.ir.graph import Operation


class Calls:
    """Prints calls."""

    def __init__(self, scope: FunctionScope, exits: SideExits) -> None:
        self.scope, self.exits = scope, exits

    def do_call(self, operation: Operation, *arguments: str) -> str | None:
        number, base = operation.fact(0, int), operation.fact(1, int)
        returned = self.scope.name("r")
        result = self.scope.shared.results[number]
        t = result_type(self.scope.dialect, result)
        self.scope.lines.add(f"const {t} {returned} = {self._call(number, base, arguments)};")
        return self._unwind(operation, returned)

    def _call(self, number: object, base: object, arguments: Sequence[str]) -> str:
        frame = self.scope.base("frame")
        own = f"{frame} + {base}" if base else frame
        assert isinstance(number, int)
        level = 0
        if (
            number in self.scope.shared.recursing
            and self.scope.number in self.scope.shared.recursing
        ):
            level = self.scope.below
        name = function_name(number, level)
        return f"{name}({', '.join([self.scope.dialect.passed, own, *arguments])})"

    def _unwind(self, operation: Operation, returned: str) -> str | None:
        """The result of a call that returned; if it left, leave too."""
        assert operation.state is not None
        has_exited = returned if operation.type is None else f"{returned}.exited"
        self.scope.lines.open(f"if ({self.scope.helper('unlikely', has_exited)}) {{")
        self.exits.write(operation.state)
        self.exits.return_exited()
        self.scope.lines.close()
        return None if operation.type is None else f"{returned}.value"

    def do_call_indirect(self, operation: Operation, function: str, *arguments: str) -> str | None:
        candidates, base = operation.static
        assert isinstance(candidates, tuple)
        if not candidates:  # the check of the signature has trapped
            return "0" if operation.type is not None else None
        returned = self.scope.name("r")
        t = result_type(self.scope.dialect, self.scope.shared.results[candidates[0]])
        self.scope.lines.add(f"{t} {returned};")
        self.scope.lines.open(f"switch ({function}) {{")
        for number in candidates:
            called = self._call(number, base, arguments)
            self.scope.lines.add(f"case {number}: {returned} = {called}; break;")
        self.scope.lines.add(f"default: {self.scope.helper('unreachable')};")
        self.scope.lines.close()
        return self._unwind(operation, returned)
