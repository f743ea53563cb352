# SPDX-License-Identifier: Apache-2.0
"""Loop-invariant code motion: compute in the preheader what each iteration would compute again.

Operations are moved speculatively, so only those that have no effect for any operands are: no
division, no conversion to an integer, no shift by a count that is not known to be small, no load,
no exit. Inner loops come first, so an operation leaves as many loops as it can. (Aho, Lam, Sethi,
Ullman: Compilers, 2nd edition, section 9.5.)

Requires no other pass; gives a loop that several edges enter a preheader. Preserves effects, exits
and back edges.
"""

from __future__ import annotations

from ferryvm.ir.flow import Flow, Loop
from ferryvm.ir.graph import Block, Body, Constant, Edge, Operation, Parameter, Terminator
from ferryvm.ir.operation import PURE
from ferryvm.isa.type import Type

_PARTIAL = frozenset({"div_s", "div_u", "rem_s", "rem_u", "to_int_s", "to_int_u"})
"""Operations that are not for all operands."""

_SHIFTS = frozenset({"shl", "shr_s", "shr_u"})
_FIXED = frozenset({"frame", "stack_limit", "heap_capacity"})
_MOVABLE = (PURE | _FIXED) - _PARTIAL - _SHIFTS


def hoist_invariants(body: Body) -> None:
    """Move invariant operations out of loops."""
    if any(edge.is_back for block in body.blocks for edge in block.end.edges):
        add_preheaders(body)
        _Hoisting(body).run()


def _entries(flow: Flow, loop: Loop) -> list[tuple[int, Edge]]:
    """Edges into a loop, each with the place that it comes from."""
    return [(place, edge) for place, edge in flow.incoming[loop.head] if place not in loop.blocks]


def add_preheaders(body: Body, *, of_branches: bool = False) -> None:
    """Give each loop that is entered in several ways a block in front.

    `of_branches`: also each that is entered by a branch, so that what stands in front of it is
    done only if it is entered.
    """
    flow = Flow(body)
    labels = {block.label for block in body.blocks}
    fronts: dict[Block, Block] = {}
    for loop in flow.loops():
        entries = _entries(flow, loop)
        edges = [edge for _, edge in entries]
        is_branch = any(len(flow.blocks[place].end.edges) > 1 for place, _ in entries)
        if len(edges) < 2 and not (of_branches and is_branch):
            continue
        head = flow.blocks[loop.head]
        label = f"front.{head.label}"
        while label in labels:
            label += "."
        labels.add(label)
        front = fronts[head] = Block(label, head.pc)
        front.parameters = [Parameter(p.type) for p in head.parameters]
        front.terminator = Terminator("jump", edges=(Edge(head, [*front.parameters]),))
        for edge in edges:
            edge.block = front
    body.blocks[:] = [
        each for block in body.blocks for each in (fronts.get(block), block) if each is not None
    ]


class _Hoisting:
    def __init__(self, body: Body) -> None:
        self.body, self.flow = body, Flow(body)
        self.home = self.flow.homes()

    def run(self) -> None:
        """Go through all loops."""
        for loop in self.flow.loops():
            entries = _entries(self.flow, loop)
            if len(entries) == 1:
                self._loop(loop, entries[0][0])

    def _loop(self, loop: Loop, before: int) -> None:
        home, inside = self.home, loop.blocks
        moved = self.flow.blocks[before].operations
        for place in sorted(inside):
            block = self.flow.blocks[place]
            kept = []
            for operation in block.operations:
                if (operation.name in _MOVABLE or _is_small_shift(operation)) and all(
                    home.get(a) not in inside for a in operation.arguments
                ):
                    home[operation] = before
                    moved.append(operation)
                else:
                    kept.append(operation)
            if len(kept) < len(block.operations):
                block.operations = kept


def _is_small_shift(operation: Operation) -> bool:
    if operation.name not in _SHIFTS:
        return False
    t, count = operation.static[0], operation.arguments[1]
    assert isinstance(t, Type)
    if isinstance(count, Operation) and count.name == "bit_and":
        count = count.arguments[1]
    return isinstance(count, Constant) and count.bits < t.bits
