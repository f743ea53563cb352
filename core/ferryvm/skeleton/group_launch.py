# SPDX-License-Identifier: Apache-2.0
"""Launches of groups: a number of items, so many of which are a group with arrays of its own.

    group g: makes its arrays, and launches its members ──> member l: f(g * size + l, l, arguments …)

The last group has fewer members if the items are no multiple of the size. (OpenCL 3.0 calls such
groups non-uniform.)
"""

from __future__ import annotations

from ferryvm.isa.type import I64, Type, ValueType
from ferryvm.listing import FunctionListing
from ferryvm.named_tuple import NamedTuple
from ferryvm.program import Signature
from ferryvm.skeleton.array_type import ArrayType
from ferryvm.skeleton.stated_trap import NO_SIZE, stated_trap
from ferryvm.skeleton.writer import Writer

USUAL_SIZE = 64
"""The items of a group for which a program states no size. It is no choice of a backend, since the
results may depend on it."""


class GroupLaunch(NamedTuple):
    """A launch of a function that takes an item, its number in the group, then arguments; `arrays`
    has for each of these the type of the array that a group makes, or None if all items share one
    argument."""

    function: str
    signature: Signature
    arrays: tuple[ArrayType | None, ...]

    @property
    def name(self) -> str:
        """The name of the function that launches."""
        made = " ".join("_" if array is None else str(array) for array in self.arrays)
        return f"groups of {self.function} with {made}".rstrip()

    @property
    def shared(self) -> tuple[ValueType, ...]:
        """The types of the arguments that all items share."""
        pairs = zip(self.signature.parameters[2:], self.arrays, strict=True)
        return tuple(type_ for type_, array in pairs if array is None)

    @property
    def lengths(self) -> int:
        """The number of arrays that a group makes."""
        return len(self.arrays) - len(self.shared)


def group_launch(of: GroupLaunch) -> list[FunctionListing]:
    """The function that launches groups, ( shared lengths count size -- ), and those that it needs.
    An array of length 0 has an element for each item of its group. It traps for a negative number
    of items, and for a size below 1."""
    numbers: list[Type] = [I64] * (of.lengths + 2)
    writer = Writer(of.name, [*of.shared, *numbers])
    arguments = range(len(of.shared) + len(numbers))
    count, size = arguments[-2:]
    groups, sized, none = writer.local(I64), writer.label(), writer.label()
    no_size = f"{NO_SIZE}{of.function}"
    writer.get(size)
    writer.i64(0)
    writer.emit("i64.gt_s")
    writer.emit("jump_if", sized)
    writer.get(size)
    writer.emit("call", no_size)
    writer.place(sized)
    writer.get(count)
    writer.set(groups)
    writer.get(count)
    writer.i64(0)
    writer.emit("i64.le_s")
    writer.emit("jump_if", none)
    writer.get(count)
    writer.i64(1)
    writer.emit("i64.sub")
    writer.get(size)
    writer.emit("i64.div_s")
    writer.i64(1)
    writer.emit("i64.add")
    writer.set(groups)
    writer.place(none)  # a negative number of items is that of groups, which traps
    group = f"{of.name}: group"
    writer.launch(group, arguments, groups)
    return [writer.listing(), _group(group, of), _member(of), stated_trap(no_size, 1)]


def _group(name: str, of: GroupLaunch) -> FunctionListing:
    """The item function that is a group: ( group shared lengths count size -- )."""
    numbers: list[Type] = [I64] * (of.lengths + 2)
    writer = Writer(name, [I64, *of.shared, *numbers])
    length = 1 + len(of.shared)
    count, size = length + of.lengths, length + of.lengths + 1
    first, members, whole = writer.local(I64), writer.local(I64), writer.label()
    writer.get(0, size)
    writer.emit("i64.mul")
    writer.set(first)
    writer.get(count, first)
    writer.emit("i64.sub")
    writer.set(members)
    writer.get(members, size)
    writer.emit("i64.le_s")
    writer.emit("jump_if", whole)
    writer.get(size)
    writer.set(members)
    writer.place(whole)
    arguments, shared = [], 1
    for array in of.arrays:
        if array is None:
            arguments.append(shared)
            shared += 1
            continue
        given, made = writer.label(), writer.local(array.reference)
        writer.get(length)
        writer.emit("i64.eqz")
        writer.emit("jump_unless", given)
        writer.get(members)
        writer.set(length)
        writer.place(given)
        writer.get(length)
        array.make(writer)
        writer.set(made)
        arguments.append(made)
        length += 1
    writer.launch(_member_name(of), [*arguments, first], members)
    return writer.listing()


def _member_name(of: GroupLaunch) -> str:
    return f"{of.name}: member"


def _member(of: GroupLaunch) -> FunctionListing:
    """The item function: ( item arguments first -- )."""
    given = of.signature.parameters[2:]
    writer = Writer(_member_name(of), [I64, *given, I64])
    arguments = range(1, 1 + len(given))
    writer.get(1 + len(given), 0)
    writer.emit("i64.add")
    writer.get(0, *arguments)
    writer.emit("call", of.function)
    return writer.listing()
