# SPDX-License-Identifier: Apache-2.0
"""Locals that no path from the head of a loop reads before it writes them are cleared there.

    head:   i64.const 0 / local.set x / …

The state of a machine has the words of all locals. Without this, compiled code would pass the last
value of each variable of a loop's body to the next iteration, for exits at the head.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Mapping, Sequence

from ferryvm.build import Function, Local
from ferryvm.flowgraph.dominance import DominatorTree
from ferryvm.flowgraph.loop import latches_by_head
from ferryvm.flowgraph.traversal import reverse_postorder
from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.type import Reference, Type, ValueType
from ferryvm.python.control_flow.graph import Block
from ferryvm.python.value.kind import Kind

Environment = tuple[tuple[str, Kind], ...]
"""The kinds of the live variables, by name."""


def environment(kinds: Mapping[str, Kind], live: Container[str]) -> Environment:
    """The kinds of the variables that are live."""
    return tuple(sorted((name, kind) for name, kind in kinds.items() if name in live))


_SET = BY_MNEMONIC["local.set"].opcode


def push_zero(f: Function, slot: ValueType) -> None:
    """Push the first value of a local."""
    if isinstance(slot, Reference):
        f.ref_null(slot)
    else:
        getattr(f, f"{slot}_const")(0)


VersionKey = Hashable
"""A version of a block: the block, the first statement, the kinds of variables."""

LocalKey = tuple[str | Type, object, int]
"""A local of a variable, by its name and kind, or of an operand, by its type; and which one of
several."""


class DeadLocals:
    """The locals that heads of loops in one function clear.

    A program is built at least twice; what one time finds is used the next time.
    """

    def __init__(self) -> None:
        self._found: dict[VersionKey, list[LocalKey]] = {}
        """The locals that each head clears."""

    def begin(self, function: Function, blocks: Sequence[Block]) -> None:
        """Begin with code of the function. `blocks`: those of the graph, the entry first."""
        self._code = function.code
        self._heads = _heads(blocks)
        self._numbers: dict[VersionKey, int] = {}
        """The number of each version, in the order of their code."""
        self._starts: list[int] = []
        """pcs of the code of versions."""
        self._edges: list[list[VersionKey]] = []
        """The versions to which each one leads."""
        self._live: dict[VersionKey, Environment] = {}
        """The variables that versions of heads may read."""

    def at(self, pc: int, key: VersionKey, block: Block, live: Environment) -> list[LocalKey]:
        """The locals that a version clears, whose code begins at a pc; `live`: the variables that
        it may read."""
        self._numbers[key] = len(self._starts)
        self._starts.append(pc)
        self._edges.append([])
        if block.number not in self._heads:
            return []
        self._live[key] = live
        return self._found.get(key, [])

    def leads_to(self, key: VersionKey) -> None:
        """State that the present version may go on at another one."""
        if self._edges:
            self._edges[-1].append(key)

    def finish(self, locals_: Mapping[LocalKey, Local]) -> None:
        """Find the locals to be cleared, all versions having been compiled."""
        self._found = {}
        if not self._live:
            return
        self._starts.append(len(self._code.opcodes))
        loops = self._loops()
        for key, live in self._live.items():
            members = loops.get(self._numbers[key], ())
            written = {word for member in members for word in self._written(member)}
            self._found[key] = [
                each
                for each, local in locals_.items()
                if local.word in written and each[:2] not in live
            ]

    def _written(self, number: int) -> Iterator[int]:
        """The words of the locals that a version writes."""
        code = self._code
        for pc in range(self._starts[number], self._starts[number + 1]):
            if code.opcodes[pc] == _SET:
                yield code.immediates[pc]

    def _loops(self) -> dict[int, set[int]]:
        """The versions of each natural loop, by its head."""
        edges = [[self._numbers[key] for key in each] for each in self._edges]
        order = reverse_postorder(0, edges.__getitem__)
        places = {number: place for place, number in enumerate(order)}
        predecessors: list[list[int]] = [[] for _ in order]
        for number in order:
            for target in edges[number]:
                predecessors[places[target]].append(places[number])
        latches, _ = latches_by_head(predecessors, DominatorTree(predecessors))
        found = {}
        for head, tails in latches.items():
            members, open_ = {head}, [*tails]
            while open_:
                place = open_.pop()
                if place not in members:
                    members.add(place)
                    open_ += predecessors[place]
            found[order[head]] = {order[place] for place in members}
        return found


def _heads(blocks: Sequence[Block]) -> frozenset[int]:
    """The numbers of the blocks to which edges lead back."""
    by_number = {block.number: block for block in blocks}

    def successors(number: int) -> list[int]:
        block = by_number[number]
        handler = [] if block.handler is None else [block.handler.block]
        return [each.number for each in (*block.successors(), *handler)]

    order = reverse_postorder(blocks[0].number, successors)
    places = {number: place for place, number in enumerate(order)}
    return frozenset(
        target for each in order for target in successors(each) if places[target] <= places[each]
    )
