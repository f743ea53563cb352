# SPDX-License-Identifier: Apache-2.0
"""Exits with ALLOCATE are checked, and damaged objects are an error of the backend in one line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ferryvm import Engine
from ferryvm.backend import Artifact, BackendError
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine

from ..double.interpreter import Wrong
from ..double.registry import registry
from .object_program import GARBAGE, program

Change = Callable[[Machine], None]


def set_field(name: str, value: int) -> Change:
    return lambda machine: setattr(machine.control, name, value)


def damage_static(machine: Machine) -> None:
    machine.memory.statics[0] = 12


def damage_place(machine: Machine) -> None:
    assert machine.objects is not None
    words = machine.objects.space.words
    (array,) = (at for at in range(machine.control.object_top // 8) if words[at] == 10_000)
    words[array + 1] += 8


def fit(machine: Machine) -> None:
    machine.control.wanted, machine.control.wanted_type = 24, 12


WRONG: dict[str, tuple[Change, str]] = {
    "elsewhere": (set_field("pc", 0), "left "),
    "type": (set_field("wanted_type", 99), "for 80024 bytes of type 99"),
    "size": (set_field("wanted", 12), "for 12 bytes of type 9"),
    "what fits": (fit, "for 24 bytes of objects, which fit"),
    "top": (set_field("object_top", 1 << 40), "with 1099511627776 bytes of objects"),
    "odd top": (set_field("object_top", 12), "with 12 bytes of objects"),
    "no top": (set_field("object_top", 0), "with 0 bytes of objects"),
}

DAMAGED: dict[str, tuple[Change, str]] = {
    "reference": (damage_static, "the objects of the program are damaged: reference"),
    "elements": (damage_place, "the objects of the program are damaged: elements"),
}


def failing(change: Change, at: int) -> str:
    """The error after a change at an exit with ALLOCATE, by its number."""
    exits = 0

    def enter(real: Artifact, machine: Machine, counting: bool) -> Status:
        nonlocal exits
        status = real.enter(machine, counting)
        exits += status is Status.ALLOCATE
        if exits == at:
            change(machine)
        return status

    limits = Limits(stack=1 << 16, objects=1 << 17)
    engine = Engine("wrong", limits=limits, registry=registry(Wrong(enter)))
    with pytest.raises(BackendError) as caught:
        engine.start(program(GARBAGE.format(rounds=9))).run()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("change", "what"), WRONG.values(), ids=WRONG)
def test_an_allocation_that_cannot_be_is_one_line(change: Change, what: str) -> None:
    assert what in failing(change, 1)


@pytest.mark.parametrize(("change", "what"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_objects_are_found_by_the_next_collection(change: Change, what: str) -> None:
    assert what in failing(change, 2)


def test_control_block_has_the_fields_of_objects() -> None:
    names = [name for name, *_ in ControlBlock._fields_]
    assert names[-9:] == [
        *("objects", "object_top", "object_end"),
        *("prepared", "prepared_bytes", "wanted_type", "types", "ahead", "launches"),
    ]
