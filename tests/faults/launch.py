# SPDX-License-Identifier: Apache-2.0
"""Planted faults of suspended items: each is the record of a launch made with one mistake.

Random programs with launches look for them under the schedule `suspend`, which suspends the running
item at every boundary.
"""

from __future__ import annotations

import contextlib
import dataclasses
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from ferryvm.machine import launch, piece
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.piece import Block, add_item, add_range, read, reserve
from ferryvm.testing import Differ, Schedule, Verdict
from ferryvm.testing.generate import LIMITS, Weights, generate
from ferryvm.verify import verify

WEIGHTS = Path(__file__).parent.parent / "fuzz" / "launches.toml"
SEED = 1
MOST = 60
"""Programs within which each fault is to be found."""

_LONGEST = 800
"""Instructions of the longest program that is moved at every boundary."""


class LaunchFault(NamedTuple):
    """A function of `ferryvm.machine.launch` with a mistake."""

    name: str
    about: str
    function: str
    faulty: Callable[..., object]


def _in_block(name: str, about: str, change: Callable[[Block], Block]) -> LaunchFault:
    def faulty(objects: ObjectMemory, item: int, block: Block, following: int) -> int:
        return add_item(objects, item, change(block), following)

    return LaunchFault(name, about, "add_item", faulty)


def _item_after(block: Block) -> Block:
    return block._replace(words=array("Q", (block.words[0] + 1, *block.words[1:])))


def _without_top(block: Block) -> Block:
    return block._replace(words=array("Q", (*block.words[:-1], 0)))


def _without_references(block: Block) -> Block:
    return block._replace(references=array("Q", bytes(8 * len(block.references))))


def _rest_first(objects: ObjectMemory, item: int, block: Block, following: int) -> int:
    if not following:
        return add_item(objects, item, block, following)
    rest = read(objects, following)
    last = add_item(objects, item, block, rest.next)
    return add_range(objects, rest.first, rest.end, last)


FAULTS = (
    LaunchFault(
        "rest-lost",
        "The items that have not begun are not in the record.",
        "add_range",
        lambda objects, first, end, following: following,
    ),
    LaunchFault(
        "item-lost",
        "The item after the suspended one is not in the record.",
        "add_range",
        lambda objects, first, end, following: add_range(objects, first + 1, end, following),
    ),
    LaunchFault(
        "item-done-twice",
        "The suspended item is in the range after it, too.",
        "add_range",
        lambda objects, first, end, following: add_range(objects, first - 1, end, following),
    ),
    LaunchFault(
        "item-begun-again",
        "A suspended item begins anew.",
        "add_item",
        lambda objects, item, block, following: add_range(objects, item, item + 1, following),
    ),
    LaunchFault(
        "rest-first",
        "The items that have not begun run before the suspended one goes on.",
        "add_item",
        _rest_first,
    ),
    _in_block(
        "resumed-one-further",
        "A suspended item goes on after the instruction that it stood at.",
        lambda block: block._replace(pc=block.pc + 1),
    ),
    _in_block(
        "arguments-of-another-item", "A suspended item goes on as the next one.", _item_after
    ),
    _in_block("topmost-word-lost", "The topmost word of a suspended item is zero.", _without_top),
    _in_block(
        "references-lost", "All references of a suspended item are null.", _without_references
    ),
    _in_block(
        "references-in-reverse",
        "The references of a suspended item go back to other words.",
        lambda block: block._replace(references=block.references[::-1]),
    ),
    LaunchFault(
        "references-not-reserved",
        "There is not enough memory reserved for a suspended item.",
        "reserve",
        lambda objects, blocks, words: reserve(objects, blocks, words // 2),
    ),
)


@contextlib.contextmanager
def planted(fault: LaunchFault | None) -> Iterator[None]:
    """Context in which items are suspended with the fault."""
    if fault is None:
        yield
        return
    assert getattr(launch, fault.function) is getattr(piece, fault.function)
    with mock.patch.object(launch, fault.function, fault.faulty):
        yield


def search(fault: LaunchFault | None, programs: int = MOST) -> int | None:
    """The number of the first program that shows the fault, counted from 1; None if none does."""
    weights = Weights.load(WEIGHTS)
    limits = [dataclasses.replace(LIMITS, objects=objects) for objects in (LIMITS.objects, 900)]
    for number in range(programs):
        program = verify(generate(SEED, number, weights=weights))
        differ = Differ(["switch"], limits=limits[number % 2], most=2 * _LONGEST)
        expected = differ.finish(differ.start(program))
        if expected.instructions > _LONGEST:
            continue
        with planted(fault):
            try:
                found = differ.compare(program, Schedule.SUSPEND, number, expected=expected)
            except (ValueError, IndexError):  # damaged objects or frames
                return number + 1
        if any(one.verdict is Verdict.DISAGREE for one in found):
            return number + 1
    return None
