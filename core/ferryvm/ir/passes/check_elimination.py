# SPDX-License-Identifier: Apache-2.0
"""Check elimination: remove checks and branches whose outcome is known.

A condition is known after a check that did not exit, and on each edge of a branch. Its negation and
its parts are known then, too, and of heap accesses the bytes that are in bounds: if an address plus
15 is below a limit, so is the same address plus 7. A branch on a known condition gets a constant;
`jump_threading` does the rest. (Dominating checks imply later ones: Gupta, Optimizing Array Bound
Checks Using Flow Analysis, 1993.)

Requires no other pass; finds most after `value_numbering`, which makes equal values one. Preserves
blocks and edges.
"""

from __future__ import annotations

from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import BOOLEAN, Body, Constant, Operation, Value
from ferryvm.ir.headroom import headroom
from ferryvm.ir.operation import CONDITIONAL_EXITS
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, Type, signed

_ORDER = {
    Condition.EQ: (Condition.EQ, False, True),
    Condition.NE: (Condition.EQ, False, False),
    Condition.LT_S: (Condition.LT_S, False, True),
    Condition.GE_S: (Condition.LT_S, False, False),
    Condition.GT_S: (Condition.LT_S, True, True),
    Condition.LE_S: (Condition.LT_S, True, False),
    Condition.LT_U: (Condition.LT_U, False, True),
    Condition.GE_U: (Condition.LT_U, False, False),
    Condition.GT_U: (Condition.LT_U, True, True),
    Condition.LE_U: (Condition.LT_U, True, False),
}
"""Integer conditions in terms of three: which, if operands are exchanged, and if it holds."""

Fact = tuple[object, ...]


def eliminate_checks(body: Body) -> None:
    """Remove checks that cannot fail, and fold branches with one possible edge."""
    _Walk(body).run()


class _Walk:
    """A walk over the dominator tree. A fact holds in the blocks that its own dominates."""

    def __init__(self, body: Body) -> None:
        self.body, self.graph = body, ControlFlowGraph(body)
        self.booleans: dict[Fact, list[tuple[int, bool]]] = {}
        self.extents: dict[tuple[Value, Value], list[tuple[int, int, int]]] = {}
        """By limit and address, each with its block: the range of offsets, both ends included, for
        which address plus offset does not wrap and is below the limit."""

    def run(self) -> None:
        """Walk over all blocks."""
        for place in self.graph.preorder():
            block = self.graph.blocks[place]
            self.place = place
            came = self.graph.only_edge(place)
            if came is not None:
                end = self.graph.blocks[came[0]].end
                if end.name == "branch":
                    self._learn(end.arguments[0], came[1] is end.edges[0])
            remaining = []
            for operation in block.operations:
                if operation.name in CONDITIONAL_EXITS:
                    p = operation.arguments[0]
                    if self._known(p) is False:
                        continue
                    self._learn(p, False)
                remaining.append(operation)
            if len(remaining) < len(block.operations):
                block.operations = remaining
            if block.end.name == "branch":
                self._decide(block.end)

    def _decide(self, end: Operation) -> None:
        known = self._known(end.arguments[0])
        if known is not None:
            end.arguments = (self.body.constant(BOOLEAN, int(known)),)

    # --- facts ------------------------------------------------------------------------------

    def _learn(self, p: Value, holds: bool) -> None:
        if not isinstance(p, Operation):
            self.booleans.setdefault((p,), []).append((self.place, holds))
        elif p.name == "none":
            self._learn(p.arguments[0], not holds)
        elif p.name == ("all" if holds else "any"):
            for part in p.arguments:
                self._learn(part, holds)
        else:
            fact, is_so = _normal(p)
            self.booleans.setdefault(fact, []).append((self.place, holds is is_so))
            if holds is is_so and fact[0] is Condition.LT_U and fact[1] is I64:
                self._learn_extent(*_extent(fact))

    def _learn_extent(self, key: tuple[Value, Value], first: int, last: int) -> None:
        for place, start, end in self.extents.get(key, ()):
            if self.graph.dominates(place, self.place) and start <= last + 1 and first <= end + 1:
                first, last = min(first, start), max(last, end)
        self.extents.setdefault(key, []).append((self.place, first, last))

    def _known(self, p: Value) -> bool | None:
        """The value of `p` at the current point of the walk; None if it is not known."""
        if isinstance(p, Constant):
            return bool(p.bits)
        fact: Fact = (p,)
        is_so = True
        if isinstance(p, Operation):
            if p.name == "none":
                opposite = self._known(p.arguments[0])
                return None if opposite is None else not opposite
            fact, is_so = _normal(p)
        for place, holds in self.booleans.get(fact, ()):
            if self.graph.dominates(place, self.place):
                return holds is is_so
        if isinstance(p, Operation) and p.name in ("all", "any"):
            return self._known_parts(p, decisive=p.name == "any")
        if fact[0] is Condition.LT_U and fact[1] is I64:
            key, first, last = _extent(fact)
            for place, start, end in self.extents.get(key, ()):
                if start <= first and last <= end and self.graph.dominates(place, self.place):
                    return is_so
        return None

    def _known_parts(self, p: Operation, decisive: bool) -> bool | None:
        parts = [self._known(part) for part in p.arguments]
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive


def _normal(p: Operation) -> tuple[Fact, bool]:
    """The normal form of `p`, and True if `p` is its negation."""
    if p.name != "compare":
        return (p,), True
    t, condition = p.static
    assert isinstance(t, Type)
    assert isinstance(condition, Condition)
    a, b = p.arguments
    if t.is_float:
        return (condition, t, a, b), True
    base, is_exchanged, is_so = _ORDER[condition]
    if is_exchanged or (base is Condition.EQ and id(b) < id(a)):
        a, b = b, a
    return (base, t, a, b), is_so


def _extent(fact: Fact) -> tuple[tuple[Value, Value], int, int]:
    """The meaning of `a < b` for addresses: limit and address, and the range of offsets."""
    _, _, a, b = fact
    assert isinstance(a, Value)
    assert isinstance(b, Value)
    limit, reach = headroom(b)
    first = 0
    if isinstance(a, Operation) and a.name == "add" and isinstance(a.arguments[1], Constant):
        a, offset = a.arguments
        assert isinstance(offset, Constant)
        first = signed(I64, offset.bits)
    return (limit, a), first, first + reach
