# SPDX-License-Identifier: Apache-2.0
"""Plain form: a function of the region IR without a machine, for targets that know no ferryvm.

    Subject ─ lift, inline ─> region IR ─ known facts of parameters ─> passes ─> plain form ─> a target

Its operations are the pure ones of the region IR, and:

| operation | attributes | operands | yields |
|---|---|---|---|
| `array_load` | elements | pointer, index | the element: a float, or zero-extended to i64 |
| `array_store` | elements | pointer, index, value | stores a float, or the low bytes of an i64 |
| `array_canonical` | float elements | in groups: pointer, index, float | if one of the floats is a NaN, makes those elements that are NaN canonical |
| `array_fill` | elements | pointer, index, count, i64 | stores the low bytes into so many elements |
| `array_move` | elements | pointer, index, pointer, index, count | copies elements to the first from the second; they may overlap |
| `array_update` | elements, update | pointer, index, i64 | the former element: an atomic update |
| `array_exchange` | elements | pointer, index, expected, i64 | the former element: the last operand replaces the expected one |
| `local_get` | number | | the value of a local variable |
| `local_set` | number | a value | |
| `error_if` | trap, line | boolean | returns with the error if it holds |
| `fail_if` | trap, line | boolean | notes the error of a member, which goes on, if it holds |
| `member`, `member_index`, `barrier`, `has_failed` | | | as of `ferryvm.ir.member` |

Terminators are `jump`, `branch`, `switch`, `return`, and `error` with a trap and a line. Pointers
are parameters of the entry block, or arrays that the function has for itself; only operations on
arrays use them, and comparisons of two. There are no states. `ferryvm.portable.verifier` checks all
of it,
`ferryvm.portable.plain_form` makes it.
"""

from __future__ import annotations

import dataclasses

from ferryvm.ir.graph import (
    Body,
    Operation,
    Parameter,
)
from ferryvm.isa.element import Element
from ferryvm.isa.type import I64, Type
from ferryvm.portable.expression import Expression, expression_text
from ferryvm.portable.identifier import identifiers
from ferryvm.portable.interface import (
    ArrayArgument,
    Direction,
    Geometry,
    GroupArray,
    Interface,
    ScalarArgument,
)
from ferryvm.portable.subject import Subject


@dataclasses.dataclass
class PlainFunction:
    """A function in plain form."""

    subject: Subject
    body: Body
    interface: Interface
    pointers: dict[Parameter, ArrayArgument]
    """Parameters of the entry that are pointers. Each is followed by the length."""
    locals: dict[int, Type]
    """Local variables, which are the statics that the function changes."""
    arrays: dict[Parameter, LocalArray] = dataclasses.field(default_factory=dict)
    """Arrays that the function has for itself, or a group."""
    member: PlainMember | None = None
    """Of the code of a member of a group, what the target has to know."""
    launch: Interface | None = None
    """Of an item, the interface of its launch."""
    counts_items: bool = False
    """True for an item that takes the numbers of items behind its indices."""
    sizes: dict[Parameter, Expression] = dataclasses.field(default_factory=dict)
    """Of the code of a member: the parameters that are sizes of groups, with names of arguments. The
    last parameters of the entry are those that stand for an expression, and are no arguments."""

    def of_launch(self, launch: Subject) -> PlainFunction:
        """The same, for a target that launches items by itself: with the interface of a launch."""
        names = [*self.interface.names, *(result.name for result in self.interface.results)]
        own = self.interface.arguments[launch.axes * (1 + launch.counts_items) :]
        given = [name for name, _ in launch.parameters[: launch.axes]]
        counts = identifiers(given, self.interface.name, names)
        group: tuple[Expression, ...] | None = None
        if self.member is not None:
            size = self.member.size
            group = self.member.axes or (self.member.members,)
            group = group if size is None else (self.sizes[size],)
        arrays = tuple(
            GroupArray(each.name, each.element, self.length(each)) for each in self.arrays.values()
        )
        borrowed = [
            ArrayArgument(
                name, element, Direction.INOUT, (expression_text(length),), borrowed=length
            )
            for name, element, length in arrays
            if not isinstance(length, int)
        ]
        made = dataclasses.replace(
            self.interface,
            arguments=(*(ScalarArgument(name, I64) for name in counts), *own, *borrowed),
            geometry=Geometry(tuple(counts), group),
            members=group or (),
            group_arrays=arrays,
        )
        return dataclasses.replace(self, launch=made, counts_items=launch.counts_items)

    def length(self, array: LocalArray) -> Expression:
        """The length of an array of a group."""
        return array.length if array.size is None else self.sizes[array.size]


@dataclasses.dataclass(frozen=True)
class LocalArray:
    """An array that a group or a call has for itself."""

    name: str
    element: Element
    length: int
    is_zero: bool = False
    """True if it is to be zero when a group begins."""
    size: Parameter | None = None
    """The parameter that is its length, if that is no constant: then the caller lends the memory."""


@dataclasses.dataclass(frozen=True)
class PlainMember:
    """The code of a member of a group."""

    number: Operation
    """The operation that yields its number."""
    members: int
    axes: tuple[int, ...]
    """Members along the axes of `member_index`; none if there is no such operation."""
    guarded: frozenset[Operation]
    """Operations that do nothing, or yield 0, in a member that has failed."""
    orders_all: bool
    """True if members may read behind a barrier what others stored into arguments before it."""
    size: Parameter | None = None
    """The parameter that is the number of members, if that is no constant."""
