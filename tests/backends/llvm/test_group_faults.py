# SPDX-License-Identifier: Apache-2.0
"""Planted faults of parallel regions: a wrong element of a context array, a stale value, a phase
left out, a record that lacks something. Each is found by a program that is left at every safepoint,
against the reference."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from ferryvm.ir.build import Builder
from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import BOOLEAN, Edge, FrameState, Operation, Parameter, Value
from ferryvm.ir.group import early_check, number_split, restored
from ferryvm.ir.group.copy import Node, RegionCopy
from ferryvm.ir.group.entry_value import EntryValues
from ferryvm.ir.group.home import Homes
from ferryvm.ir.group.item_loop import ItemLoop
from ferryvm.ir.group.writer import _Writer
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64
from ferryvm_backends.llvm.group_store import GroupStores, Words

from ...faults.kernel import present
from ..forced_exit import differences
from .test_groups import ENDED, FIRST, NESTED
from .test_item_loops import TILES
from .test_number_split import TREE

_put, _load, _edge, _entry = ItemLoop._put, ItemLoop._load, ItemLoop._edge, EntryValues.__call__
_passed = RegionCopy._passed


def _shared_slot(self: ItemLoop, slot: int, value: Value) -> None:
    """All items store into one element."""
    index, self.index = self.index, self.formation.constant(self.index.word_type, 0)  # type: ignore[assignment]
    _put(self, slot, value)
    self.index = index


def _shared_array(self: ItemLoop, slot: int, value: Value) -> None:
    """Two values have one array."""
    _put(self, min(slot, 1), value)


def _stale(self: ItemLoop, slot: int, value: Value) -> None:
    """A value that a region has loaded is not stored when it has changed."""
    old = {self.formation.homes.slots.get(each) for each in self._values.found}
    if slot not in old:
        _put(self, slot, value)


def _first_item(self: EntryValues, value: Value) -> Value:
    """The item's number is that of the first item."""
    if value is not self._homes.launch.number:
        return _entry(self, value)
    zero = Operation("sub", value.type, (value.word_type,), (self._index, self._index))
    self._block.operations.append(zero)
    return zero


def _present(self: RegionCopy, node: Node, edge: Edge) -> tuple[Value, ...]:
    """Behind a barrier in a loop the next iteration begins with variables of the present one."""
    return present(_passed, self, node, edge)


def _dropped(self: ItemLoop, end: int, *others: Any) -> Any:
    """The region from barrier 2 on is left out."""
    return _edge(self, 0 if end == 2 else end, *others)


def _agree(self: ItemLoop) -> None:
    """Items that come to different ends are not noticed."""
    _loop(self)
    if self.has_choice and self.may_differ:
        self.latch.end.edges[0].arguments[2] = self.formation.constant(BOOLEAN, 0)


def _unstored(self: GroupStores, begin: Operation, _graph: ControlFlowGraph) -> None:
    """A word that the exits of a group have in common is not stored."""
    words = self.stores[begin]
    del words[max(words)]


def _any_value(self: GroupStores, state: FrameState, early: Words | None = None) -> FrameState:
    """A word that is stored where a group begins counts as stored when it has changed."""
    trimmed = _trimmed(self, state, early)
    stored = {} if state.phase is None else self._stored.get(state.phase.group.number, {})
    words = [None if place in stored else word for place, word in enumerate(trimmed.words)]
    return dataclasses.replace(trimmed, words=tuple(words))


def _one_less(m: Builder, branch: Any, start: Value, end: Value) -> Value:
    """An item does what the items behind it do."""
    middle, one = _middle(m, branch, start, end), m.constant(I64, 1)
    is_some = m.compare(I64, Condition.LT_S, start, middle)
    return m.select(is_some, m.sub(I64, middle, one), middle)


def _loaded(store: Operation, *_: Any) -> bool:
    """What was loaded from another context array is not stored."""
    if store.name != "context_store":
        return False
    value = store.arguments[2]
    return isinstance(value, Operation) and value.name == "context_load"


_loop, _trimmed, _middle = ItemLoop._loop, GroupStores.trimmed, number_split._middle


FAULTS: dict[str, tuple[object, str, Callable[..., Any]]] = {
    "context-slot-shared": (ItemLoop, "_put", _shared_slot),
    "context-array-shared": (ItemLoop, "_put", _shared_array),
    "context-stale": (ItemLoop, "_put", _stale),
    "item-stale": (EntryValues, "__call__", _first_item),
    "iteration-begun-again": (RegionCopy, "_passed", _present),
    "phase-dropped": (ItemLoop, "_edge", _dropped),
    "divergence-unnoticed": (ItemLoop, "_loop", _agree),
    "common-word-unstored": (GroupStores, "_advance", _unstored),
    "common-word-stale": (GroupStores, "trimmed", _any_value),
    "variables-common": (Homes, "is_uniform", lambda _, value: isinstance(value, Parameter)),
    "row-not-counted": (early_check, "_at_entry", lambda _loop, _value, m: m.constant(I64, 0)),
    "waiting-lost": (_Writer, "_reached", lambda self, item: self._word(0)),
    "item-on-other-side": (number_split, "_middle", _one_less),
    "exchanged-unstored": (restored, "_restores", _loaded),
    "barrier-lost": (_Writer, "_reached", lambda self, item: self._word(1)),
}


def is_found(name: str | None) -> bool:
    """True if a program shows the fault of a name, or something without one."""
    if name is None:
        return _differs()
    target, attribute, planted = FAULTS[name]
    with mock.patch.object(target, attribute, planted):
        return _differs()


def _differs() -> bool:
    tree = TREE.format(offset=5) + "(go 5)"
    for text, step in (
        (FIRST, 3),
        (ENDED, 3),
        (NESTED, 3),
        (TILES.format(first=1), 999),
        (tree, 61),
    ):
        try:
            if any(True for _ in differences(text, step)):
                return True
        except (AttributeError, NameError, TypeError):  # no fault was planted
            raise
        except Exception:  # noqa: BLE001 - whatever a fault leads to
            return True
    return False


@pytest.mark.nightly
def test_nothing_is_found_without_a_fault() -> None:
    assert not is_found(None)


@pytest.mark.nightly
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    assert is_found(name)
