# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C in each phase of a launch on a device leaves a state from which the program goes on."""

from __future__ import annotations

from typing import Any

import pytest

from ferryvm import Engine, ProgramInterrupted
from ferryvm_backends.opencl import OpenClBackend
from ferryvm_backends.opencl.item.kernel import ItemKernel
from ferryvm_backends.opencl.item.memory import CopiedMemory
from ferryvm_backends.opencl.item.range import ItemRanges

from .test_items import CASES, make_small, outcome, program, started

PHASES: dict[str, tuple[type, str]] = {
    "compiling": (OpenClBackend, "compile"),
    "copying to the device": (CopiedMemory, "push"),
    "running": (ItemKernel, "enqueue"),
    "copying back": (CopiedMemory, "pull"),
    "writing the record": (ItemRanges, "_commit"),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


@pytest.mark.rotate("phase", most=3)
@pytest.mark.parametrize("phase", [*PHASES, "finishing suspended items"])
def test_a_launch_goes_on_after_an_interrupt(phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = program(CASES["items that print"])
    execution = started(OpenClBackend(wraps=False), CASES["items that print"])
    control, comes, lines = execution.machine.control, [0], list[str]()
    if phase in PHASES:
        owner, name = PHASES[phase]
        right = getattr(owner, name)

        def interrupted(*given: Any, **more: Any) -> object:
            comes[0] += 1
            control.interrupt |= comes[0] in (1, 4)
            return right(*given, **more)

        monkeypatch.setattr(owner, name, interrupted)

    def printed(text: str) -> None:
        comes[0] += phase not in PHASES
        control.interrupt |= phase not in PHASES
        lines.append(text)

    interrupts = 0
    execution.output = printed
    while True:
        try:
            value = execution.run().value
            break
        except ProgramInterrupted:
            interrupts += 1
    assert comes[0]
    assert interrupts
    expected = outcome(Engine("threaded").start(source))
    assert (value, lines, execution.machine.snapshot()) == expected
