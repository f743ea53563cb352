# SPDX-License-Identifier: Apache-2.0
"""Words of frames that exits need not write, since memory has them.

    entry:  a word of the frame that the body has read, and that is still there
    exit, exit, … begin_group ─> stores: words that the exits from a group's parallel regions have in common

An exit from a parallel region is in frames of the launch, of the code around it and of the item's
calls. Most words of these are the same for all items, so they are stored once: where the group
begins, or at an exit in front of it that has them, too. Then exits are short, and so is the time to
compile them. (`early_store` is for other bodies with large states.)
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator

from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import Block, Body, Constant, FrameState, Operation, Value, Virtual
from ferryvm.ir.loop.natural import loops_of
from ferryvm.ir.operation import CALLS
from ferryvm.isa.launch import LAUNCH_WORDS

_FEWEST = 2
"""Exits, at least, for which a word is stored where a group begins."""

Words = dict[int, Value]
"""Words of the frame, by place."""


class GroupStores:
    """The words that memory has, in one body."""

    def __init__(self, body: Body) -> None:
        self._read: Words = {}
        self._stored: dict[int, Words] = {}
        """By group."""
        self._early: dict[Operation, Words] = {}
        """Of exits in front of a group, and of those that are in no parallel region."""
        self.stores: dict[Operation, Words] = {}
        """The words to store in front of an exit, or where a group begins."""
        if body.is_root and not any(o.name in CALLS for o in body.operations):
            self._read = {o.fact(0, int): o for o in body.operations if o.name == "word"}
        begins = [o for o in body.operations if o.name == "begin_group"]
        if begins:
            self._find(body, begins)

    def _find(self, body: Body, begins: list[Operation]) -> None:
        exits: dict[int, dict[int, Counter[Value]]] = {}
        for _, _, state in _exits(body.blocks):
            if state.phase is not None:
                own_words = exits.setdefault(state.phase.group.number, {})
                for place, word in enumerate(self.trimmed(state).words):
                    if word is not None and not isinstance(word, Virtual):
                        own_words.setdefault(place, Counter())[word] += 1
        graph = ControlFlowGraph(body)
        for number in {begin.fact(0, int): None for begin in begins}:
            own = [begin for begin in begins if begin.fact(0, int) == number]
            found = self._stored[number] = {}
            for at, counts in sorted(exits.get(number, {}).items()):
                known = [each for each in counts if all(_is_known(each, b, graph) for b in own)]
                most = max(known, key=lambda each: counts[each], default=None)
                if most is not None and counts[most] >= _FEWEST:
                    found[at] = most
            self.stores.update({begin: dict(found) for begin in own})
        if len(begins) == 1:  # else others may store into these words meanwhile
            self._advance(begins[0], graph)

    def _advance(self, begin: Operation, graph: ControlFlowGraph) -> None:
        """Store the words of a group at exits in front of it that have them, too, and spare exits
        behind these."""
        here, left = graph.definitions[begin], self.stores[begin]
        loops = loops_of(graph)
        around = [loop for loop in loops if here in loop.blocks]
        stores: list[tuple[int, Words]] = []
        blocks = [graph.blocks[place] for place in graph.preorder()]
        for block, operation, state in _exits(blocks):
            if state.phase is not None:
                continue
            place = graph.places[block]
            have: Words = {}
            for home, words in stores:
                if home == place or graph.dominates(home, place):
                    have.update(words)
            is_always = operation in block.operations and graph.dominates(place, here)
            if is_always and [loop for loop in loops if place in loop.blocks] == around:
                words = {
                    at: word
                    for at, word in left.items()
                    if at < len(state.words)
                    and state.words[at] is word
                    and _is_known(word, operation, graph)
                }
                if words:
                    self.stores[operation] = words
                    stores.append((place, words))
                    have.update(words)
                    for at in words:
                        del left[at]
            self._early[operation] = have

    def exit_state(self, operation: Operation) -> FrameState:
        """The state in which an operation leaves, without words that memory has."""
        return self.trimmed(operation.exit, self._early.get(operation))

    def trimmed(self, state: FrameState, early: Words | None = None) -> FrameState:
        """A state without words that memory has; `early`: those of its exit."""
        stored, written = early or {}, range(0)
        if state.phase is not None:
            group = state.phase.group
            stored = self._stored.get(group.number, {})
            written = range(group.record - LAUNCH_WORDS + 1, group.record + 1)
        words = [
            None
            if word is None
            or place in written
            or word in (self._read.get(place), stored.get(place))
            else word
            for place, word in enumerate(state.words)
        ]
        return dataclasses.replace(state, words=tuple(words))

    def words(self, body: Body) -> int:
        """Words that exits of the body write."""
        states = (self.exit_state(operation) for _, operation, _ in _exits(body.blocks))
        return sum(sum(word is not None for word in state.words) for state in states)


def _exits(blocks: Iterable[Block]) -> Iterator[tuple[Block, Operation, FrameState]]:
    """All exits, in an order."""
    for block in blocks:
        for operation in (*block.operations, block.end):
            if operation.state is not None:
                yield block, operation, operation.state


def _is_known(value: Value, operation: Operation, graph: ControlFlowGraph) -> bool:
    """True if a value is computed where control comes to an operation."""
    home, here = graph.definitions.get(value), graph.definitions[operation]
    if home is None:
        return isinstance(value, Constant)
    if home != here:
        return graph.dominates(home, here)
    block = graph.blocks[here]
    if value in block.parameters:
        return True
    places = [place for place, o in enumerate(block.operations) if o is value or o is operation]
    return block.operations[places[0]] is value
