# SPDX-License-Identifier: Apache-2.0
"""Regions as IR against the reference backend: the same state wherever control leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ferryvm.engine import Engine, TrapError
from ferryvm.ir.graph import Module
from ferryvm.ir.lift import lift
from ferryvm.ir.region_order import UnseenEdges
from ferryvm.ir.verify import verify_module
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.region.region import Region, regions
from ferryvm.verify import Verified
from ferryvm_backends.reference import BACKEND as REFERENCE

from .evaluator import Evaluator

FUEL = 1 << 40
SMALL = Limits(stack=8 << 10, heap=36_000, first_heap=1 << 12)
"""Memory in which programs grow heaps and overflow stacks soon; it is quick to copy."""

Change = Callable[[Module], object]
"""What is done to a module before it runs."""

_AT_AN_INSTRUCTION = (Status.TRAP, Status.HALT, Status.HOST, Status.GROW)
"""Statuses of an instruction that did not complete: the reference has them one step later."""


def visits(
    verified: Verified, limits: Limits = SMALL, most: int = 3000, times: int = 2
) -> Iterator[tuple[Region, Machine]]:
    """Regions with machines that stand at their entries, as the program comes to them.

    At most `times` each, within the first `most` instructions.
    """
    by_entry: dict[int, list[Region]] = {}
    for region in regions(verified):
        by_entry.setdefault(region.entry, []).append(region)
    left = dict.fromkeys(by_entry, times)
    execution = Engine("reference", limits=limits, output=lambda _: None).start(verified)
    artifact = REFERENCE.prepare(verified)
    for _ in range(most):
        machine = execution.machine
        pc = machine.control.pc
        if left.get(pc) and machine.status in (Status.RUNNING, Status.FUEL):
            left[pc] -= 1
            for region in by_entry[pc]:
                yield region, machine
        if not any(left.values()):
            return
        machine.control.fuel = 1
        if artifact.enter(machine, True) is Status.FUEL:
            continue  # the engine takes ten times as long for an instruction
        try:
            if execution.run(1).status is Status.HALT:
                return
        except TrapError:
            return


def compare(
    region: Region,
    machine: Machine,
    change: Change,
    unseen: UnseenEdges = frozenset(),
    polls: int = 100,
) -> Status:
    """Run a region from a machine's state, counting and not; how it left.

    `polls`: after how many looks at the interrupt flag it is found set.

    Fails unless it leaves in a state that the reference backend comes to, after as many
    instructions as were paid for.
    """
    counted = run(region, machine, change, unseen, polls, counting=True)
    plain = run(region, machine, change, unseen, polls, counting=False)
    assert counted.snapshot() == plain.snapshot(), region.name
    check(region, machine, counted)
    return counted.status


def run(
    region: Region,
    machine: Machine,
    change: Change,
    unseen: UnseenEdges = frozenset(),
    polls: int = 100,
    *,
    counting: bool,
) -> Machine:
    """A copy of the machine after the region ran."""
    module = lift(region, counting, unseen, exceptions=True)
    change(module)
    verify_module(module, region.verified)
    twin = machine.copy()
    twin.control.fuel = FUEL
    Evaluator(module, twin, polls).run()
    return twin


def check(region: Region, before: Machine, after: Machine) -> None:
    """Fail unless the reference backend goes from one state to the other."""
    artifact = REFERENCE.prepare(region.verified)
    twin = before.copy()
    twin.control.fuel = FUEL - after.control.fuel
    assert artifact.enter(twin, True) is Status.FUEL, region.name
    status = after.status
    if status in _AT_AN_INSTRUCTION:
        twin.control.fuel = 1
        assert artifact.enter(twin, True) is status, region.name
        assert twin.control.exit_id == after.control.exit_id
        assert twin.control.wanted == after.control.wanted
    else:
        twin.control.status = status
    assert twin.snapshot() == after.snapshot(), region.name
