# SPDX-License-Identifier: Apache-2.0
"""The code of a generated function, instruction by instruction.

It has no positions in the source: an error has that of the call, in the text of the program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.type import I64, ValueType
from ferryvm.listing import FunctionListing, Item, Label, Line
from ferryvm.listing import Operand as Immediate
from ferryvm.program import Signature

Push = Callable[[], None]
"""Generates code that pushes a value."""


class Writer:
    """A function under construction. Its parameters are the first locals."""

    def __init__(
        self,
        name: str,
        parameters: Sequence[ValueType],
        results: Sequence[ValueType] = (),
    ) -> None:
        self.name = name
        self.signature = Signature(tuple(parameters), tuple(results))
        self._locals: list[ValueType] = []
        self._items: list[Item] = []
        self._labels = 0

    def local(self, type_: ValueType) -> int:
        """The number of a new local."""
        self._locals.append(type_)
        return len(self.signature.parameters) + len(self._locals) - 1

    def locals(self, types: Sequence[ValueType]) -> tuple[int, ...]:
        """The numbers of new locals."""
        return tuple(self.local(type_) for type_ in types)

    def emit(self, mnemonic: str, immediate: Immediate = None) -> None:
        """Append an instruction."""
        self._items.append(Line(BY_MNEMONIC[mnemonic], immediate))

    def get(self, *locals_: int) -> None:
        """Push locals."""
        for local in locals_:
            self.emit("local.get", local)

    def set(self, *locals_: int) -> None:
        """Pop into locals, into the last one first."""
        for local in reversed(locals_):
            self.emit("local.set", local)

    def i64(self, value: int) -> None:
        """Push an integer."""
        self.emit("i64.const", value & I64.mask)

    def label(self) -> str:
        """The name of a new label."""
        self._labels += 1
        return f"label{self._labels}"

    def place(self, label: str) -> None:
        """Define a label here."""
        self._items.append(Label(label))

    def increment(self, local: int, by: int = 1) -> None:
        """Add to a local of type i64."""
        self.get(local)
        self.i64(by)
        self.emit("i64.add")
        self.set(local)

    def launch(self, function: str, arguments: Sequence[int], count: int) -> None:
        """Launch a function with locals as arguments, over as many items as a local says."""
        self.get(*arguments, count)
        again, over = self.label(), self.label()
        self.emit("launch.begin")
        self.place(again)
        self.emit("launch.test")
        self.emit("jump_unless", over)
        self.emit("launch.item", function)
        self.emit("call", function)
        self.emit("jump", again)
        self.place(over)
        for _ in range(LAUNCH_WORDS + len(arguments)):
            self.emit("drop")

    def listing(self) -> FunctionListing:
        """The function, which returns at the end of its code."""
        self.emit("return", len(self.signature.results))
        return self.endless()

    def endless(self) -> FunctionListing:
        """The function, the end of whose code is not reached."""
        return FunctionListing(self.name, self.signature, tuple(self._locals), self._items)
