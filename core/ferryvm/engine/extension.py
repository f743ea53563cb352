# SPDX-License-Identifier: Apache-2.0
"""A program that goes on with more functions: those that Python needs beside the exported ones.

    functions of the program, entry stubs │ new functions, the entry stub of one of them

All numbers and pcs of the program are unchanged, so frames, saved states and compiled positions
stay right. The alternative, adding for each export all that Python might want, would make every
program larger; there is an adapter for each combination of arrays.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

from ferryvm import record
from ferryvm.engine.entry_stub import stub_name, with_entry_stubs
from ferryvm.engine.interrupt import interruptible
from ferryvm.engine.marshal import CallError
from ferryvm.engine.runner import Runner
from ferryvm.engine.target import Target, target_of
from ferryvm.listing import FunctionListing
from ferryvm.listing.decode import decode
from ferryvm.listing.encode import encode
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.state import Machine
from ferryvm.program import Program
from ferryvm.verify import verify

Make = Callable[[], Sequence[FunctionListing]]
"""Generates functions, the first of which is the one that is wanted."""


class Calls(Protocol):
    """The parts of `ferryvm.engine.call.Calls` that this needs, as that module imports this one."""

    machine: Machine
    execution: Runner

    def alone(self, action: Callable[[bool], None]) -> None:
        """Run an action while other threads are excluded; it is told if a host function calls."""

    def disarm(self) -> None:
        """Forget the direct entry: the next call prepares the program."""


class Extension:
    """The functions that were added to the program of an instance."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._targets: dict[str, Target] = {}
        self.plans: dict[Hashable, Any] = {}
        """Memoised by `ferryvm.engine.array_map`."""

    def target(self, function: str, make: Make, name: str, parameters: tuple[str, ...]) -> Target:
        """The function of that name, which is added to the program at its first use, with those
        that it needs; for messages it has a `name` and `parameters`.

        Raises CallError in a host function, where the program cannot change."""
        found = self._targets.get(function)
        if found is None:
            self._calls.alone(lambda is_nested: self._add(function, make, name, is_nested))
            machine = self._calls.machine
            numbers = {each.name: n for n, each in enumerate(machine.program.functions)}
            found = target_of(machine, name, numbers[function], numbers[stub_name(function)])
            found = record.replace(found, parameters=parameters)
            self._targets[function] = found
        return found

    def _add(self, function: str, make: Make, name: str, is_nested: bool) -> None:
        calls = self._calls
        program = extended(calls.machine.program, make, function)
        if program is calls.machine.program:
            return
        if is_nested:
            raise CallError(
                f"{name}: its first use is inside a host function, where code cannot be added to "
                "the program; use it once before"
            )
        verified = verify(program)

        def extend() -> None:
            calls.execution.extend(verified)
            calls.disarm()

        # A signal during these steps is raised after them: half of them would tear the machine.
        interruptible(ControlBlock(status=Status.HALT), extend)


def extended(program: Program, make: Make, entry: str) -> Program:
    """The program with new functions and an entry stub of the one whose name is `entry`; the same
    program if it has that already."""
    names = {function.name for function in program.functions}
    if stub_name(entry) in names:
        return program
    listing = decode(program)
    listing.functions += [function for function in make() if function.name not in names]
    listing.exports = {**listing.exports, entry: entry}
    return dataclasses.replace(with_entry_stubs(encode(listing)), exports=program.exports)
