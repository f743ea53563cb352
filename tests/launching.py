# SPDX-License-Identifier: Apache-2.0
"""Launches in assembly, the loop that the builder and Skiff write, too; ranges that run out of
order."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from ferryvm.engine.execution import Execution
from ferryvm.engine.result import ProgramInterrupted
from ferryvm.item_range import RangeOutcome, RangeRunner
from ferryvm.machine.item_batch import ItemBatch
from ferryvm.machine.launch import Left
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.state import Machine


def launch(function: str, drops: int) -> str:
    """The code that launches a function, with the arguments and the number of items on the stack;
    `drops`: operands that it drops at the end, of the launch's three and the arguments."""
    return "\n".join(
        (
            "    launch.begin",
            ":again",
            "    launch.test",
            "    jump_unless over",
            f"    launch.item {function}",
            f"    call {function}",
            "    jump again",
            ":over",
            *["    drop"] * drops,
        )
    )


def ranges_of(runner: type[RangeRunner], monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Receives the ranges that runners of a kind run."""
    found: list[tuple[int, int]] = []

    def note(name: str) -> None:
        run = getattr(runner, name)

        def noted(self: RangeRunner, machine: Machine, first: int, limit: int) -> RangeOutcome:
            found.append((first, limit))
            outcome: RangeOutcome = run(self, machine, first, limit)
            return outcome

        monkeypatch.setattr(runner, name, noted)

    for name in ("run", "run_deferred"):
        if getattr(runner, name) is not getattr(RangeRunner, name):
            note(name)
    return found


def run_interrupted(
    execution: Execution, launched: list[tuple[int, int]], awaited: tuple[int, int] | None = None
) -> None:
    """Run a program that is interrupted a moment after a range of items has begun: `awaited`, or
    any."""
    control = execution.machine.control

    def stop() -> None:
        while not launched or (awaited is not None and awaited not in launched):
            time.sleep(0.001)
        time.sleep(0.05)
        control.interrupt = 1

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(ProgramInterrupted):
        execution.run()
    thread.join()


def expanded(objects: ObjectMemory, left: Sequence[Left]) -> list[Left]:
    """The rest of a range, with batches as their items and ranges."""
    found: list[Left] = []
    for first, what in left:
        found += what.blocks(objects) if isinstance(what, ItemBatch) else [(first, what)]
    return found
