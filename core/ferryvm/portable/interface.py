# SPDX-License-Identifier: Apache-2.0
"""The interface of an exported function: arguments in their order, results, errors.

It has no type of ferryvm that a receiver would have to know: numbers, arrays of numbers, lengths.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import NamedTuple

from ferryvm.isa.element import Element
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import Type, format_number, to_python
from ferryvm.portable.expression import Expression

MOST_MEMBERS = 1024
"""The largest number of members of a group: that of devices for work-groups."""


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
    borrowed: Expression | None = None
    """Of memory that the caller lends for an array of a group: the number of elements. No call has
    anything in it before, or needs it afterwards."""

    @property
    def length_name(self) -> str:
        """The name of the argument that is the length."""
        return length_name(self.name)


def length_name(array: str) -> str:
    """The name of the argument that is the length of an array."""
    return f"{array}_length"


Argument = ScalarArgument | ArrayArgument


class GroupArray(NamedTuple):
    """An array that each group has for itself."""

    name: str
    element: Element
    length: Expression


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
    group: tuple[Expression, ...] | None = None
    """The members of a group along axes of their own, of which the first one has the neighbours;
    None: no groups."""

    @property
    def dimensions(self) -> int:
        """Dimensions of the work-items."""
        return max(len(self.counts), len(self.group or ()))

    def count(self, dimension: int) -> str | None:
        """The argument that is the number of items or groups in a dimension, of which 0 has the
        neighbours; None if there is one."""
        return self.counts[-1 - dimension] if dimension < len(self.counts) else None

    @property
    def constants(self) -> tuple[int, ...] | None:
        """The members of a group in three dimensions, if they are constants."""
        sizes = [self.size(n) for n in range(3)]
        found = tuple(size for size in sizes if isinstance(size, int))
        return found if len(found) == len(sizes) else None

    def size(self, dimension: int) -> Expression:
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

    members: tuple[Expression, ...] = ()
    """Of a launch of groups, their members along each axis."""
    group_arrays: tuple[GroupArray, ...] = ()
    """Of a launch of groups, the arrays that each has."""

    @property
    def inputs(self) -> tuple[Argument, ...]:
        """The arguments that a caller has values for."""
        return tuple(
            each
            for each in self.arguments
            if not isinstance(each, ArrayArgument) or each.borrowed is None
        )

    @property
    def borrowed(self) -> tuple[ArrayArgument, ...]:
        """The arguments that are memory for arrays of groups."""
        return tuple(each for each in self.arrays if each.borrowed is not None)

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
