# SPDX-License-Identifier: Apache-2.0
"""Calls as C statements: VM functions call each other as C functions, and leave together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ferryvm.ir.c.context import function_name, result_type
from ferryvm.ir.c.scope import FunctionScope
from ferryvm.ir.c.side_exit import DISTANCES, FIRST_TAG, LEFT, SideExits
from ferryvm.ir.graph import Operation


class Calls:
    """Prints calls."""

    def __init__(self, scope: FunctionScope, exits: SideExits) -> None:
        self.scope, self.exits = scope, exits
        blocks = scope.body.blocks if scope.shared.catches else []
        self._catching = {
            call: following
            for block in blocks
            for call, following in itertools.pairwise(block.operations)
            if following.name == "caught"
        }
        """The `caught` behind a call."""
        self._caught: dict[Operation, str] = {}
        """The variables with the numbers of the tags that calls have thrown."""

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
        """The result of a call that returned; if it left, leave too, unless its exception is
        caught here."""
        assert operation.state is not None
        lines, caught = self.scope.lines, self._catching.get(operation)
        exited = returned if operation.type is None else f"{returned}.exited"
        if caught is not None:
            self._caught[caught] = self.scope.name("c")
            lines.add(f"{self.scope.dialect.word} {self._caught[caught]} = 0;")
        lines.open(f"if ({self.scope.helper('unlikely', exited)}) {{")
        if caught is not None:
            self._catch(caught, exited)
        self.exits.write(operation.state)
        self.exits.return_exited(exited if self.scope.shared.catches else str(LEFT))
        if caught is not None:
            lines.close()
            lines.close()
            self._read_from(exited)
        lines.close()
        return None if operation.type is None else f"{returned}.value"

    def _catch(self, caught: Operation, exited: str) -> None:
        """Begin a switch on what has been thrown, up to what is done if it is not caught."""
        lines = self.scope.lines
        lines.open(f"switch (({exited} - {FIRST_TAG}) / {DISTANCES}) {{")
        for number, tag in enumerate(caught.fact(0, tuple), 1):
            lines.add(f"case {tag}: {self._caught[caught]} = {number}; break;")
        lines.open("default: {")

    def _read_from(self, exited: str) -> None:
        """Note where the values of an exception begin; it has been kept for it to be paid."""
        scope = self.scope
        distance = f"({exited} - {FIRST_TAG}) % {DISTANCES}"
        stack = f"({scope.dialect.frames}){scope.dialect.segments['stack']}"
        scope.lines.add(f"{scope.base('thrown')} = {stack} + control->sp - {distance};")
        if scope.shared.counting:
            scope.lines.add("control->fuel -= 1;")

    def do_caught(self, operation: Operation) -> str:
        return self._caught[operation]

    def do_thrown(self, operation: Operation) -> str:
        slot = f"{self.scope.base('thrown')}[{operation.fact(0, int)}]"
        return self.scope.arithmetic.from_slot(operation.word_type, slot)

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
