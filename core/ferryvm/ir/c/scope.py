# SPDX-License-Identifier: Apache-2.0
"""One C function while a body is printed into it: the context of its parts."""

from __future__ import annotations

from ferryvm.ir.c.context import PrintingContext, spelled
from ferryvm.ir.c.expression import Arithmetic
from ferryvm.ir.c.text import Lines
from ferryvm.ir.graph import Body, Boolean, Constant, Value
from ferryvm.isa.type import I64


class FunctionScope:
    """The text to which statements are appended, and the names in it."""

    def __init__(
        self, shared: PrintingContext, body: Body, number: int | None, level: int = 0
    ) -> None:
        """`number`: the function's; None for the region's own. `level`: of a copy."""
        self.shared, self.body, self.number, self.level = shared, body, number, level
        self.dialect = shared.dialect
        self.below = level + 1
        """The level of the mutually recursive functions that it calls."""
        self.has_headroom = False
        """The condition that the stack has headroom for all copies."""
        self.arithmetic = Arithmetic(shared.dialect, shared.helpers)
        self.helper = self.arithmetic.helper
        self.lines = Lines()
        self.names: dict[Value, str] = {}
        self.types: dict[Value, str] = {}
        self.bases: set[str] = set()
        """The segments of the machine that it accesses."""
        self._made = 0

    def name(self, letter: str) -> str:
        """A name for something that is not a value of the IR."""
        self._made += 1
        return f"{letter}{self._made}"

    def value(self, value: Value) -> str:
        """The name or literal of a value."""
        if isinstance(value, Constant):
            if isinstance(value.type, Boolean):
                return "true" if value.bits else "false"
            return self.arithmetic.constant(value.type, value.bits)
        self.lines.use(value)
        return self.names[value]

    def define(self, value: Value, text: str) -> None:
        """Give a value a name, which is declared with an expression."""
        self.names[value] = f"v{len(self.names)}"
        self.types[value] = spelled(self.dialect, value.type)
        self.lines.define(value, text)

    def frame_address(self) -> str:
        """The address of the frame, as a word."""
        frame = self.base("frame")
        if "frame_address" in self.dialect.helpers:
            return self.helper("frame_address", frame)
        return self.arithmetic.cast(I64, frame)

    def base(self, name: str) -> str:
        """The name of a segment's start, which is declared at the first use."""
        self.bases.add(name)
        return name
