# SPDX-License-Identifier: Apache-2.0
"""Lines of a function while it is printed: the places of declarations are known at its end.

A value is declared where it is computed, unless it is used outside of the enclosing braces.
"""

from __future__ import annotations

import dataclasses
import re

from ferryvm.ir.graph import Block, Value

INDENT = "    "


@dataclasses.dataclass
class _Line:
    depth: int
    text: str
    label: Block | None = None
    """The block that the label marks."""
    defined: Value | None = None
    """The value that it computes; the text is the right-hand side."""


class Lines:
    """The statements of a function."""

    def __init__(self) -> None:
        self._lines: list[_Line] = []
        self._braces: list[int] = []
        """Numbers of the braces open at the end of the text."""
        self._opened = 0
        self._homes: dict[Value, tuple[int, ...]] = {}
        self._outside: dict[Value, None] = {}
        self._targets: set[Block] = set()
        self._labels: dict[Block, str] = {}
        self._taken: set[str] = set()

    def add(self, text: str) -> None:
        """Append a line."""
        self._lines.append(_Line(len(self._braces), text))

    def open(self, text: str) -> None:
        """Append a line that ends with a brace; the following lines are inside."""
        self.add(text)
        self._opened += 1
        self._braces.append(self._opened)

    def close(self) -> None:
        """Close the innermost braces."""
        self._braces.pop()
        self.add("}")

    def again(self, text: str) -> None:
        """Close the innermost braces and open others: `} else {`."""
        self._braces.pop()
        self.open(text)

    def define(self, value: Value, text: str) -> None:
        """Append the line that computes a value."""
        self._homes[value] = tuple(self._braces)
        self._lines.append(_Line(len(self._braces), text, defined=value))

    def use(self, value: Value) -> None:
        """Record a use of a value at the end of the text."""
        home = self._homes.get(value)
        if home is not None and tuple(self._braces[: len(home)]) != home:
            self._outside[value] = None

    def label(self, block: Block) -> None:
        """Append the label of a block."""
        self._lines.append(_Line(len(self._braces), f"{self._label(block)}:;", label=block))

    def _label(self, block: Block) -> str:
        """A name for a block: its own if that is valid in C and unique."""
        if block not in self._labels:
            name = re.sub(r"\W", "_", block.label, flags=re.ASCII)
            while name in self._taken:
                name = f"{name}_{len(self._taken)}"
            self._taken.add(name)
            self._labels[block] = name
        return self._labels[block]

    def jump(self, block: Block) -> None:
        """Append a jump to a label."""
        self._targets.add(block)
        self.add(f"goto {self._label(block)};")

    @property
    def outside(self) -> list[Value]:
        """Values that must be declared at the top."""
        return list(self._outside)

    def text(self, names: dict[Value, str], types: dict[Value, str]) -> list[str]:
        """The lines, in the braces of a function."""
        found = []
        for line in self._lines:
            depth, text = line.depth + 1, line.text
            if line.label is not None:
                if line.label not in self._targets:
                    continue
                depth -= 1
            if line.defined is not None:
                value = line.defined
                declared = "" if value in self._outside else f"const {types[value]} "
                text = f"{declared}{names[value]} = {text};"
            found.append(f"{INDENT * depth}{text}")
        return found
