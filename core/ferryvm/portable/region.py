# SPDX-License-Identifier: Apache-2.0
"""The subject that a region of a program is: a function, a loop, a launch of items or of groups."""

from __future__ import annotations

from ferryvm.portable.group_launch import group_launcher, groups_subject
from ferryvm.portable.refusal import ExportError
from ferryvm.portable.subject import Subject, function_subject, launch_subject, loop_subject
from ferryvm.region.barrier import waiting
from ferryvm.region.call import call_graph
from ferryvm.region.launch import item_call
from ferryvm.region.region import RegionKind, region
from ferryvm.verify import Verified


def region_subject(
    verified: Verified, name: str, group: int | None = None, takes_sizes: bool = False
) -> Subject:
    """A region of a program as the subject. `group`: the members of its groups, if they are to be a
    constant; None: they are an argument if the target `takes_sizes`, else as the program has them.
    Raises UnknownNameError, or ExportError."""
    found = region(verified, name)
    program = verified.program
    functions = waiting(verified)
    if found.kind is RegionKind.LAUNCH:
        call = item_call(program, found.entry)
        assert call is not None
        number = program.code.immediates[call]
        around = program.functions[found.function].name
        launcher = group_launcher(verified, around)
        if launcher is not None and program.functions[number].name == f"{around}: group":
            return groups_subject(verified, launcher, group, name, takes_sizes)
        _refuse_size(group, name)
        if number in functions:
            _refuse_waiting(verified, number, "its items wait for each other")
        reached = call_graph(verified).reached([number])
        return launch_subject(verified, number, name, not functions.keys().isdisjoint(reached))
    if found.kind is RegionKind.FUNCTION:
        launcher = group_launcher(verified, name)
        if launcher is not None and (
            found.function in functions or launcher.number == found.function
        ):
            return groups_subject(verified, launcher, group, name, takes_sizes)
        _refuse_size(group, name)
        if found.function in functions:
            _refuse_waiting(verified, found.function, f"{name!r} waits for other items")
        return function_subject(verified, found.function)
    _refuse_size(group, name)
    if found.loop is not None:
        return loop_subject(found)
    what = f"region {name!r} is a {found.kind.value}"
    position = program.source_map.position(found.entry)
    raise ExportError(what, "name a function, a loop or a launch", position)


def _refuse_size(group: int | None, name: str) -> None:
    if group is not None:
        what = f"region {name!r} launches no groups whose size can be chosen"
        raise ExportError(what, "leave the size of groups out")


def _refuse_waiting(verified: Verified, function: int, what: str) -> None:
    position = verified.program.source_map.position(waiting(verified)[function])
    instead = "launch it in groups (for-each-group), and export that launch"
    raise ExportError(what, instead, position)
