# SPDX-License-Identifier: Apache-2.0
"""Planted faults of launches whose items are work-items: host and kernel with one mistake each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ferryvm.ir.passes import entry_exit
from ferryvm.machine.launch import Left, finish
from ferryvm_backends.opencl.item import code, memory, range, suspension
from ferryvm_backends.opencl.item.text import item_text

from ...launching import expanded

Patch = tuple[object, str, Callable[..., object]]


class ItemFault(NamedTuple):
    """A function with a mistake."""

    name: str
    about: str
    patch: Patch


def _left(change: Callable[[list[Left]], list[Left]]) -> Patch:
    def faulty(objects: Any, limit: int, left: Sequence[Left]) -> None:
        finish(objects, limit, change(expanded(objects, left)))

    return range, "finish", faulty


def _shifted(left: list[Left]) -> list[Left]:
    """Each suspended item with the frames of the next one."""
    blocks = [what for _, what in left if not isinstance(what, int)]
    following = iter(blocks[1:] + blocks[:1])
    return [(n, what) if isinstance(what, int) else (n, next(following)) for n, what in left]


def _twice(left: list[Left]) -> list[Left]:
    return [(n - 1, what) if isinstance(what, int) and n else (n, what) for n, what in left]


def _in_text(old: str, new: str) -> Patch:
    def faulty(*given: Any) -> Any:
        text, shape = item_text(*given)
        return dataclasses.replace(text, source=text.source.replace(old, new)), shape

    return code, "item_text", faulty


def _stale() -> Patch:
    push = memory.CopiedMemory.push
    seen: dict[object, Any] = {}

    def faulty(self: memory.CopiedMemory, control: Any, *given: Any) -> Any:
        if self not in seen:
            seen[self] = push(self, control, *given)
        return seen[self]

    return memory.CopiedMemory, "push", faulty


_skipped_ranges = suspension.Suspended.skipped_ranges


def _forgotten(*given: Any) -> list[tuple[int, int]]:
    """No ranges; the marks in the buffer, which all launches share, are cleared as ever."""
    _skipped_ranges(*given)
    return []


FAULTS = (
    ItemFault("item-lost", "The last suspended item is lost.", _left(lambda left: left[:-1])),
    ItemFault("order-reversed", "Pieces are in reverse order.", _left(lambda left: left[::-1])),
    ItemFault("frame-of-another", "An item goes on with the frames of the next.", _left(_shifted)),
    ItemFault("item-twice", "The item before a range is in the range, too.", _left(_twice)),
    ItemFault(
        "skipped-lost",
        "Items that have not begun are taken as done.",
        (suspension.HostSuspended, "skipped_ranges", _forgotten),
    ),
    ItemFault(
        "rest-of-block-lost",
        "The rest of a block is not put back.",
        _in_text("put_back(control, next", "if (0) put_back(control, next"),
    ),
    ItemFault(
        "frames-cut",
        "The topmost word of a suspended item is not copied.",
        _in_text("i < slot->size; ++i", "i + 1 < slot->size; ++i"),
    ),
    ItemFault(
        "last-item-lost",
        "The last item does not run.",
        _in_text("(long)item >= (long)launch.limit", "(long)item + 1 >= (long)launch.limit"),
    ),
    ItemFault("stale-array", "The second launch sees the arrays of the first.", _stale()),
    ItemFault(
        "stores-lost",
        "Stores of items do not come back from the device.",
        (memory.CopiedMemory, "pull", lambda *given: None),
    ),
    ItemFault(
        "unmarked-stores-lost",
        "Stores without dirty marks do not come back from the device.",
        (memory.CopiedMemory, "mark", lambda *given: None),
    ),
    ItemFault(
        "changed-item-anew",
        "An item that has stored something starts anew.",
        (entry_exit, "_changed_before", lambda body: set()),
    ),
)
