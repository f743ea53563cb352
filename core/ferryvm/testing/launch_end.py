# SPDX-License-Identifier: Apache-2.0
"""Comparison of two runs that ended in an item of a launch, of which one ran items out of order.

Status, trap, position, item, output and host calls have to be equal, and no lower item may be left.
Whether higher items are done may differ. So both runs are completed on copies: the item that ended
the run is dropped, the others run to their end, those that trap or call the host as far as that.
After the outermost launch all of memory has to be equal: then each item has done what it does, in
both, and no item twice.
"""

from __future__ import annotations

from ferryvm.backend import Artifact
from ferryvm.isa.type import I64, signed
from ferryvm.machine.active_item import innermost, running_item
from ferryvm.machine.control import Status
from ferryvm.machine.difference import Difference, byte_difference, register_difference
from ferryvm.machine.launch import abandon, continue_launch
from ferryvm.machine.launch_operands import launch_operands, operands_below
from ferryvm.machine.memory_difference import memory_difference
from ferryvm.machine.piece import pieces
from ferryvm.machine.state import Machine
from ferryvm.machine.unwind import unwind
from ferryvm.region.launch import CALL_DISTANCE, item_call
from ferryvm.testing.state import StoppedState
from ferryvm.testing.watchdog import watched

_MOST_ITEMS = 10_000
"""Items that are dropped before a completion is given up."""


def launch_difference(
    left: StoppedState, right: StoppedState, machines: tuple[Machine, Machine], artifact: Artifact
) -> Difference | None:
    """The first difference of two runs that ended in an item of a launch; None if they are equal,
    but for higher items.

    `machines`: those of the states; they do not change. `artifact`: of an interpreter with cells.
    Raises ValueError if a run does not stand in an item, or cannot be completed.
    """
    a, b = left.machine, right.machine
    for name in ("status", "trap"):
        if getattr(a, name) is not getattr(b, name):
            return Difference(name, getattr(a, name).name, getattr(b, name).name)
    found = register_difference(a, b) or byte_difference("output", left.output, right.output)
    if found is not None:
        return found
    items = [running_item(machine) for machine in machines]
    if items[0] != items[1]:
        return Difference("item", str(items[0]), str(items[1]))
    lower = [_lower_item(machine) for machine in machines]
    if lower[0] != lower[1]:
        return Difference("lower item that is not done", str(lower[0]), str(lower[1]))
    clones = [machine.copy() for machine in machines]
    for clone in clones:
        _complete(clone, artifact)
    return memory_difference(clones[0], clones[0].snapshot(), clones[1].snapshot())


def _launch_frames(machine: Machine) -> list[tuple[int, int]]:
    """For each launch whose item runs, innermost first: the word of its frame's header, and the pc
    of its `launch.test`."""
    stack, fp, program = machine.memory.stack, machine.control.fp, machine.program
    found = []
    while stack[fp + 1]:
        call, fp = stack[fp] - 1, fp - stack[fp + 1]
        if call >= CALL_DISTANCE and item_call(program, call - CALL_DISTANCE) == call:
            found.append((fp, call - CALL_DISTANCE))
    return found


def _operands(machine: Machine, fp: int, pc: int) -> int:
    """The word after the three operands of a launch in a frame."""
    program, verified = machine.program, machine.verified
    locals_ = len(program.functions[verified.owner(pc)].locals)
    return fp + 2 + locals_ + verified.depth(pc)


def _lower_item(machine: Machine) -> int | None:
    """An item below the running one that is not done, of a launch; None if all are."""
    assert machine.objects is not None  # the program has launches
    for fp, pc in _launch_frames(machine):
        end = _operands(machine, fp, pc)
        operands = operands_below(machine.control, end)
        item = operands.next - 1
        for piece in pieces(machine.objects, operands.record):
            if signed(I64, piece.first) <= item:
                return signed(I64, piece.first)
    return None


def _complete(machine: Machine, artifact: Artifact) -> None:
    """Run the outermost launch to its end, without the items that cannot end."""
    frames = _launch_frames(machine)
    if not frames:
        raise ValueError("no item of a launch runs")
    outermost, test = frames[-1]
    end = machine.program.code.immediates[test + 1]
    control = machine.control
    with watched(control, 10.0):
        for _ in range(_MOST_ITEMS):
            launch = innermost(machine)
            if launch is None:
                raise ValueError("an item has called a host function that has called the program")
            abandon(machine, launch)
            control.status = Status.RUNNING
            if _run(machine, artifact, outermost, end):
                launch_end = launch_operands(control)
                launch_end.limit = launch_end.next = 0  # where the last range began and ended
                return
            if not _launch_frames(machine):
                raise ValueError("an item has left its launch")
    raise ValueError(f"more than {_MOST_ITEMS} items trap or call the host")


def _run(machine: Machine, artifact: Artifact, outermost: int, end: int) -> bool:
    """Run until the instruction after the outermost launch, or to where an item cannot go on."""
    control, objects = machine.control, machine.objects
    assert objects is not None
    artifact.count(end, 1, False)
    while True:
        status = artifact.enter(machine, False)
        is_further = False
        if status is Status.HOT:
            if control.fp == outermost:
                return True
            artifact.count(end, 1, False)
            is_further = True
        elif status is Status.LAUNCH:
            is_further = continue_launch(machine) is Status.RUNNING
        elif status is Status.ALLOCATE:
            is_further = objects.allocate(lambda: False)
        elif status is Status.GROW:
            is_further = machine.grow(control.wanted)
        elif status is Status.THROW:
            is_further = unwind(machine, False) is Status.RUNNING
        elif status is Status.INTERRUPTED:
            raise ValueError("the rest of the launch takes too long")
        if not is_further:
            artifact.remove(end, False)
            return False
