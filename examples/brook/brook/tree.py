# SPDX-License-Identifier: Apache-2.0
"""Types and syntax trees. A node has the place that faults, traps and `ferry explain` show."""

from __future__ import annotations

import dataclasses

Place = tuple[int, int]
"""Line and column, from 1."""


class BrookError(Exception):
    """A fault of the text at a place."""

    def __init__(self, place: Place, message: str, length: int = 1) -> None:
        super().__init__(message)
        self.place, self.length = place, length


@dataclasses.dataclass(frozen=True)
class Kind:
    """A type of Brook: `int`, `float`, `bool`, `str`, `[T]`, `fun(T, ...): R`."""

    name: str
    parts: tuple[Kind, ...] = ()
    """The element of an array; the parameters of a function, then its result."""

    def __str__(self) -> str:
        if self.name == "array":
            return f"[{self.parts[0]}]"
        if self.name == "fun":
            end = "" if self.parts[-1] == NOTHING else f": {self.parts[-1]}"
            return f"fun({', '.join(map(str, self.parts[:-1]))}){end}"
        return self.name


INT, FLOAT, BOOL, STR = Kind("int"), Kind("float"), Kind("bool"), Kind("str")
NOTHING = Kind("nothing")
"""The result of a function without one."""


@dataclasses.dataclass(frozen=True)
class Node:
    """A piece of the text."""

    place: Place


@dataclasses.dataclass(frozen=True)
class Literal(Node):
    """A value as it is written."""

    value: bool | int | float | str


@dataclasses.dataclass(frozen=True)
class Name(Node):
    """A variable or a function."""

    name: str


@dataclasses.dataclass(frozen=True)
class Array(Node):
    """`[a, b, ...]`"""

    elements: list[Node]


@dataclasses.dataclass(frozen=True)
class Index(Node):
    """`array[index]`"""

    array: Node
    index: Node


@dataclasses.dataclass(frozen=True)
class Call(Node):
    """`callee(argument, ...)`"""

    callee: Node
    arguments: list[Node]


@dataclasses.dataclass(frozen=True)
class Operation(Node):
    """A sign with one operand or two."""

    sign: str
    operands: list[Node]


@dataclasses.dataclass(frozen=True)
class Function(Node):
    """`fun name(parameter: type, ...): type { ... }`; without a name it is an expression."""

    name: str | None
    parameters: list[tuple[str, Kind]]
    result: Kind
    body: list[Node]

    @property
    def kind(self) -> Kind:
        """The type of the function."""
        return Kind("fun", (*(kind for _, kind in self.parameters), self.result))


@dataclasses.dataclass(frozen=True)
class Let(Node):
    """`let name = value`"""

    name: str
    value: Node


@dataclasses.dataclass(frozen=True)
class Assign(Node):
    """`target = value`, where the target is a name or an element."""

    target: Node
    value: Node


@dataclasses.dataclass(frozen=True)
class If(Node):
    """`if condition { ... } else { ... }`"""

    condition: Node
    then: list[Node]
    otherwise: list[Node]


@dataclasses.dataclass(frozen=True)
class While(Node):
    """`while condition { ... }`"""

    condition: Node
    body: list[Node]


@dataclasses.dataclass(frozen=True)
class Return(Node):
    """`return value`, or `return`"""

    value: Node | None


@dataclasses.dataclass(frozen=True)
class Print(Node):
    """`print value`"""

    value: Node
