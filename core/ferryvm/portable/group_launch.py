# SPDX-License-Identifier: Apache-2.0
"""Launches of groups by generated code (`ferryvm.skeleton.group_launch`), exported for groups of
one size.

    groups of f with i64[] _  ( x length count size -- )     the program's: any count and size
    f in groups               ( groups members x -- )        the exported one: whole groups
    f in groups of 64         ( groups x -- )                the same, if a constant size is asked for

The length of a group's array is that of the program's launches, if it is a constant there; else an
argument. So is the size of groups for targets that have constant sizes only.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from ferryvm.ir.graph import Constant
from ferryvm.ir.lift import lift
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.isa.element import Element
from ferryvm.isa.type import I64
from ferryvm.portable.refusal import ExportError
from ferryvm.portable.subject import Subject, launch_subject
from ferryvm.portable.wrapper import Wrapper
from ferryvm.region.call import call_graph
from ferryvm.region.code import code
from ferryvm.region.region import region
from ferryvm.verify import Verified, verify

_START, _WITH = "groups of ", " with"
_BY_REFERENCE = {element.array: element for element in Element}


class GroupLauncher(NamedTuple):
    """The function of a program that launches groups of a function."""

    number: int
    member: int
    """The function that is an item of a group."""
    function: int
    """The one that the program names."""
    arrays: tuple[Element | None, ...]
    """By its arguments: the elements of the array that each group makes, None if all share the
    argument."""


def group_launcher(verified: Verified, name: str) -> GroupLauncher | None:
    """The launcher of a name, or of groups of a function with that name; None if there is none.
    Raises ExportError if there are several."""
    program = verified.program
    numbers = {function.name: number for number, function in enumerate(program.functions)}
    found = [
        launcher
        for each, number in numbers.items()
        if each == name or each.startswith(f"{_START}{name}{_WITH}")
        if (launcher := _launcher(verified, numbers, each, number)) is not None
    ]
    if len(found) > 1:
        shown = ", ".join(repr(program.functions[each.number].name) for each in found)
        what = f"{name!r} is launched in several forms"
        position = program.source_map.position(program.functions[found[0].function].entry)
        raise ExportError(what, f"name one of {shown}", position)
    return found[0] if found else None


def _launcher(
    verified: Verified, numbers: dict[str, int], name: str, number: int
) -> GroupLauncher | None:
    program = verified.program
    function, with_, arrays = name.removeprefix(_START).rpartition(_WITH)
    member, of = numbers.get(f"{name}: member"), numbers.get(function)
    if not with_ or not name.startswith(_START) or member is None or of is None:
        return None
    given = program.signature(of).parameters[2:]
    found: list[Element | None] = []
    for word, t in zip(arrays.split(), given, strict=False):
        element = None if word == "_" else _BY_REFERENCE.get(t)  # type: ignore[arg-type]  # or none
        if word != "_" and (element is None or str(t) != word):
            return None
        found.append(element)
    if len(found) != len(given) or program.signature(member).parameters != (I64, *given, I64):
        return None
    return GroupLauncher(number, member, of, tuple(found))


def groups_subject(
    verified: Verified,
    launcher: GroupLauncher,
    members: int | None,
    origin: str,
    takes_sizes: bool,
) -> Subject:
    """The launch of whole groups as the subject. `members`: of a group, as a constant; None: an
    argument if sizes may be some (`takes_sizes`), else as the program has it. Raises ExportError if
    that is no constant."""
    program = verified.program
    of = program.functions[launcher.function]
    position = program.source_map.position(of.entry)
    arrays = sum(each is not None for each in launcher.arrays)
    *lengths, _, size = _constants(verified, launcher.number, arrays + 2)
    is_given = members is not None or not takes_sizes
    members = size if members is None else members
    if is_given and (members is None or members < 1):
        what = f"{of.name!r} is launched in groups of no constant size"
        raise ExportError(what, "say it: --group SIZE", position)
    if None in lengths and not takes_sizes:
        what = f"an array of the groups of {of.name!r} has no constant length"
        raise ExportError(what, "write a number, or leave it out", position)
    signature = program.signature(launcher.function)
    given = signature.parameters[2:]
    pairs = [*zip(given, launcher.arrays, strict=True)]
    shared = [t for t, array in pairs if array is None]
    names = of.parameters or ("",) * len(signature.parameters)
    own = [name for name, array in zip(names[2:], launcher.arrays, strict=True) if array is None]
    made_names = [name for name, array in zip(names[2:], launcher.arrays, strict=True) if array]
    size_names = [] if is_given else ["members"]
    size_names += [
        f"{name}_length" for name, n in zip(made_names, lengths, strict=True) if n is None
    ]
    types = (I64, *(I64 for _ in size_names), *shared)
    wrapper = Wrapper(program, of.name, types, ["group", *size_names, *own])
    sizes = iter(range(1, 1 + len(size_names)))
    members_at = None if is_given else next(sizes)

    def get(constant: int | None, local: int | None) -> None:
        if local is not None:
            wrapper.get(local)
        else:
            wrapper.emit("i64.const", constant or 0)

    arguments, left = [], iter(lengths)
    next_ = iter(range(1 + len(size_names), len(types)))
    for t, array in pairs:
        if array is None:
            arguments.append(next(next_))
            continue
        arguments.append(wrapper.local(t))
        length = next(left)
        if length == 0:
            get(members, members_at)
        else:
            get(length, next(sizes) if length is None else None)
        wrapper.emit(f"array.new_default_{array}")
        wrapper.set(arguments[-1])
    wrapper.get(*arguments, 0)
    get(members, members_at)
    wrapper.emit("i64.mul")
    get(members, members_at)
    wrapper.launch(launcher.member, len(arguments) + 1)
    number = len(program.functions)
    made = launch_subject(verify(wrapper.finish()), number, origin, has_groups=True)
    return dataclasses.replace(made.at(launcher.function), members=members)


def _constants(verified: Verified, number: int, count: int) -> Sequence[int | None]:
    """The last arguments of a function that are the same constant in all calls."""
    graph, names = call_graph(verified), code(verified).names
    calls: list[list[int | None]] = []
    for caller, direct in enumerate(graph.direct):
        if number not in direct:
            continue
        module = lift(region(verified, names[caller]), exceptions=True)
        body = module.root if caller == 0 else module.functions[caller]
        number_values(body)
        for operation in body.operations:
            if operation.name == "call" and operation.static[0] == number:
                last = operation.arguments[-count:]
                calls.append([each.bits if isinstance(each, Constant) else None for each in last])
    if not calls:
        return [None] * count
    return [column[0] if len({*column}) == 1 else None for column in zip(*calls, strict=True)]
