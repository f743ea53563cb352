# SPDX-License-Identifier: Apache-2.0
"""Items of a launch that run while another one is in its middle leave what they leave one after
another: statics that one of them writes, and the elements of all."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
from array import array
from collections.abc import Iterator
from unittest import mock

import pytest

from ferryvm import Engine, TrapError, skiff
from ferryvm.ir import instruction
from ferryvm.ir.graph import Module
from ferryvm.ir.lift import lift
from ferryvm.ir.passes import optimise
from ferryvm.machine.state import Machine
from ferryvm.region.region import region as find_region
from ferryvm.testing.generate import LIMITS, ProgramKind, skiff_source
from ferryvm.verify import verify

from ..tier import sample
from .evaluator import Evaluator, _Frame

SEED = 26
COUNT = 40
_FAR = 100
"""Words between frames of items in hand."""
_POLLS = 1_000_000
_NOTING = re.compile(r"for-each-item (\d+)i64 \((note\d+) ")

Left = tuple[list[int], bytes]
"""The statics and all objects behind a launch."""


class _Interrupted(Evaluator):
    """Runs an item; in front of its operation of a number all others run to their ends."""

    def __init__(self, module: Module, machine: Machine, number: int, others: list[int]) -> None:
        super().__init__(module, machine, _POLLS)
        self.number, self.others = number, others

    def begin(self) -> None:
        super().begin()
        if self.operations == self.number:
            self.run_others()

    def run_others(self) -> None:
        """Run the other items, unless they have run."""
        others, self.others = self.others, []
        for other in others:
            item(Evaluator(self.module, self.machine, _POLLS), other, _FAR)


def item(evaluator: Evaluator, number: int, distance: int = 0) -> None:
    """Run an item of a number, in a frame at a distance from that of the item at hand."""
    body, stack = evaluator.module.root, evaluator.memory.stack
    at = evaluator.control.fp - body.parameters
    for word in range(body.parameters):
        stack[at + distance + word] = stack[at + word]
    stack[at + distance] = number
    evaluator._body(_Frame(body, at + distance, {}), [])


@functools.cache
def launches() -> list[tuple[str, str, int]]:
    """Random programs with a launch of items that note something: text, function, items."""
    texts = [skiff_source(SEED, number, kind=ProgramKind.KERNEL) for number in range(COUNT)]
    found = [(text, _NOTING.search(text)) for text in texts]
    return [(text, match[2], int(match[1])) for text, match in found if match]


class Interleaving:
    """A launch of items, in the state in which the first one of them is about to begin."""

    def __init__(self, text: str, function: str, items: int) -> None:
        """Raises TrapError."""
        place = find_region(verify(skiff.compile(text)), function)
        self.items, self.module = items, lift(place)
        optimise(self.module, 2, place.verified)
        execution = Engine("reference", limits=LIMITS, output=lambda text: None)
        running = execution.start(place.verified)
        while running.machine.control.pc != place.entry:
            running.run(1)
        self.machine = running.machine
        self.before = self._content()

    def _content(self) -> Left:
        control, memory = self.machine.control, self.machine.memory
        return [*memory.statics], ctypes.string_at(control.objects, control.object_top)

    def left(self, first: int, number: int) -> tuple[Left, int]:
        """The content of memory behind the launch if all others run in front of the n-th operation
        of an item, from 1 on, or behind it, for 0; and the operations of the item."""
        machine, (statics, objects) = self.machine, self.before
        machine.memory.statics[:] = array("Q", statics)
        ctypes.memmove(machine.control.objects, objects, len(objects))
        others = [other for other in range(self.items) if other != first]
        evaluator = _Interrupted(self.module, machine, number, others)
        item(evaluator, first)
        evaluator.run_others()
        return self._content(), evaluator.operations

    def differences(self) -> Iterator[tuple[int, int]]:
        """Items, and the number of the operation in front of which all others ran, behind which
        something else is left than behind the items one after another."""
        for first in (0, self.items // 2, self.items - 1):
            expected, operations = self.left(first, 0)
            for number in range(1, operations + 1):
                if self.left(first, number)[0] != expected:
                    yield first, number


@pytest.mark.parametrize("number", sample([*range(8)], default=1))
def test_items_may_run_while_another_one_is_in_its_middle(number: int) -> None:
    with contextlib.suppress(TrapError):  # in front of the launch
        assert [*Interleaving(*launches()[number]).differences()] == []


def test_an_item_that_stores_a_static_which_it_has_not_written_is_found() -> None:
    assert any(map(_is_found, launches()[:4]))


def _is_found(launch: tuple[str, str, int]) -> bool:
    with (
        mock.patch.object(instruction, "out_of_order", return_value=frozenset()),
        contextlib.suppress(TrapError),
    ):
        return any(True for _ in Interleaving(*launch).differences())
    return False
