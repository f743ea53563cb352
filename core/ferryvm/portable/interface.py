# SPDX-License-Identifier: Apache-2.0
"""The interface of an exported function: arguments in their order, results, errors.

It has no type of ferryvm that a receiver would have to know: numbers, arrays of numbers, lengths.
"""

from __future__ import annotations

import dataclasses
import enum
import math

from ferryvm.isa.element import Element
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import Type, format_number, to_python


class Direction(enum.Enum):
    """The use of the elements of an array."""

    IN = "in"
    """They are read only."""
    OUT = "out"
    """They are written only. Elements that are not written stay as they were."""
    INOUT = "inout"


@dataclasses.dataclass(frozen=True)
class ScalarArgument:
    """A number."""

    name: str
    type: Type


@dataclasses.dataclass(frozen=True)
class ArrayArgument:
    """A pointer to elements, followed by their number. Two arrays are the same or apart."""

    name: str
    element: Element
    direction: Direction
    shape: tuple[str, ...] = ()
    """Arguments that are the lengths of its dimensions, whose product is the length; () if it has
    one."""
    is_pair: bool = False
    """True if elements are the parts of complex numbers, which are neighbours."""

    @property
    def length_name(self) -> str:
        """The name of the argument that is the length."""
        return f"{self.name}_length"


Argument = ScalarArgument | ArrayArgument


@dataclasses.dataclass(frozen=True)
class Result:
    """A number that the function stores where an argument points to, if its status is 0."""

    name: str
    type: Type


@dataclasses.dataclass(frozen=True)
class FoldedArgument:
    """A number that would be an argument, and is a constant of the code."""

    name: str
    type: Type
    bits: int

    @property
    def value(self) -> str:
        """The number as text."""
        return format_number(self.type, to_python(self.type, self.bits))


@dataclasses.dataclass(frozen=True)
class Geometry:
    """The work-items of a launch."""

    counts: tuple[str, ...]
    """The arguments that are the numbers of items along each axis, or of groups if there are some.
    Items along the last axis are neighbours."""
    group: tuple[int, ...] | None = None
    """The members of a group along axes of their own, of which the first one has the neighbours;
    None: no groups."""

    @property
    def members(self) -> int:
        """The members of a group; 1 if there are no groups."""
        return math.prod(self.group or (1,))

    @property
    def dimensions(self) -> int:
        """Dimensions of the work-items."""
        return max(len(self.counts), len(self.group or ()))

    def count(self, dimension: int) -> str | None:
        """The argument that is the number of items or groups in a dimension, of which 0 has the
        neighbours; None if there is one."""
        return self.counts[-1 - dimension] if dimension < len(self.counts) else None

    def size(self, dimension: int) -> int:
        """The members of a group in a dimension."""
        return self.group[dimension] if self.group and dimension < len(self.group) else 1


@dataclasses.dataclass(frozen=True)
class Interface:
    """The arguments, results and errors of an exported function."""

    name: str
    """A valid identifier of the target."""
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]
    errors: dict[Trap, tuple[int, ...]]
    """Lines of the source at which each error can happen; 0 for unknown ones."""
    is_item: bool = False
    """It runs one item of a launch, whose number is its first argument; vectors have the number of
    items in the place of that."""
    geometry: Geometry | None = None
    """Of a launch whose items the target runs by itself: then the arguments that are numbers of
    items are no parameters of the code."""
    status: str | None = None
    """The name of the last argument, which points to the status, or to one for each item; None: the
    function returns it."""
    folded: tuple[FoldedArgument, ...] = ()
    group: int | None = None
    """Work-items of a group, of which the last may have more of them than there are items, whose
    number is an argument then; None: there are as many as items, and it is none."""

    @property
    def launched(self) -> tuple[Argument, ...]:
        """The arguments that are no numbers of items."""
        return self.arguments[len(self.geometry.counts) if self.geometry else 0 :]

    @property
    def names(self) -> list[str]:
        """The names of arguments in the order in which a function takes them, lengths included."""
        found: list[str] = []
        for each in self.arguments:
            found.append(each.name)
            if isinstance(each, ArrayArgument):
                found.append(each.length_name)
        return found

    @property
    def arrays(self) -> tuple[ArrayArgument, ...]:
        """The arguments that are arrays."""
        return tuple(each for each in self.arguments if isinstance(each, ArrayArgument))

    @property
    def integers(self) -> tuple[ScalarArgument, ...]:
        """The arguments that are integers."""
        scalars = (each for each in self.arguments if isinstance(each, ScalarArgument))
        return tuple(each for each in scalars if not each.type.is_float)
