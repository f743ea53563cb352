# SPDX-License-Identifier: Apache-2.0
"""If-conversion: compute both sides of a condition in a loop, and select the results.

    branch p  ├─ yes: a = …; store x ─┐                a = …; store x if p; b = …
              └─ no:  b = …  ─────────┴─> join(c)  ─>  c = select p, a, b; join

(Allen, Kennedy, Porterfield, Warren: Conversion of Control Dependence to Data Dependence, POPL
1983.) A side is one block that only computes, loads, stores and checks. Computations and loads
cannot fault on this machine, so they are speculated. A store gets a predicate. A check exits only
if control would have reached the side, so each exit has the same state as before, after the same
stores.

Inner conditions are converted first, so nested ones disappear as well. A loop without conditions is
one block, which can be pipelined. The pass is specific to the machine and runs last before `lower`.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter

from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    Edge,
    Module,
    Operation,
    Terminator,
    Value,
)
from ferryvm.ir.loop.natural import loops_of
from ferryvm.ir.operation import CONDITIONAL_EXITS, FIXED, PURE
from ferryvm.ir.use import substitute
from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.operation import work_of
from ferryvm_backends.vliw.machine.model import FileKind, Machine, Work

_STORES = frozenset({"heap_store", "element_store", "field_store", "set_static", "set_static_at"})
_LOADS = frozenset(
    {"heap_load", "element_load", "field_load", "static", "static_at", "word", "heap_pointer"}
)
_FREE = frozenset({"extend_u", "reinterpret", "to_slot", "from_slot", "canonical"})
"""Operations that take mostly nothing."""

Predicates = dict[Operation, tuple[Value, bool]]
"""Stores that are done only if a predicate is so."""


def convert_conditions(module: Module, machine: Machine) -> Predicates:
    """If-convert conditions in loops where that pays."""
    found: Predicates = {}
    if machine.units_for(Work.SELECT) and machine.units_for(Work.BOOLEAN):
        for body in module.bodies:
            _Conversion(body, machine, found).run()
    return found


@dataclasses.dataclass(frozen=True)
class _Side:
    """One of the two sides of a branch, up to the join."""

    edge: Edge
    """Of the branch."""
    holds: bool
    """The value of the predicate on the edge to it."""
    block: Block | None
    """None: it leads to the meeting directly."""

    @property
    def last(self) -> Edge:
        """The edge to the meeting."""
        return self.edge if self.block is None else self.block.end.edges[0]

    @property
    def operations(self) -> list[Operation]:
        return [] if self.block is None else self.block.operations


class _Conversion:
    def __init__(self, body: Body, machine: Machine, found: Predicates) -> None:
        self.body, self.machine, self.found = body, machine, found
        self.can_store = _can_store(machine)

    def run(self) -> None:
        """Convert all suitable branches, inner ones first."""
        while (found := self._next()) is not None:
            self._convert(*found)

    def _next(self) -> tuple[Block, _Side, _Side] | None:
        graph = ControlFlowGraph(self.body)
        inside = {place for loop in loops_of(graph) for place in loop.blocks}
        for place in sorted(inside, reverse=True):
            block = graph.blocks[place]
            if _absorb(self.body, graph, place):
                return self._next()
            if block.end.name == "branch":
                sides = self._sides(graph, block)
                if sides is not None and graph.places[sides[0].last.block] in inside:
                    return block, *sides
        return None

    def _sides(self, graph: ControlFlowGraph, block: Block) -> tuple[_Side, _Side] | None:
        """Both sides of a branch that can be converted."""
        predicate, (yes, no) = block.end.arguments[0], block.end.edges
        if not isinstance(predicate, Operation):
            return None
        for through in ((True, True), (True, False), (False, True), (False, False)):
            sides = [
                _Side(edge, holds, edge.block if is_through else None)
                for edge, holds, is_through in zip((yes, no), (True, False), through, strict=True)
            ]
            if not all(each.block is None or self._fits(graph, each.block) for each in sides):
                continue
            one, other = sides
            if one.last.block is other.last.block and one.last.is_back == other.last.is_back:
                return (one, other) if self._is_worth(one, other) else None
        return None

    def _fits(self, graph: ControlFlowGraph, block: Block) -> bool:
        """True if a block may be a side."""
        place = graph.places[block]
        if len(graph.incoming[place]) != 1 or block.end.name != "jump":
            return False
        return all(map(self._may_be_done, block.operations))

    def _may_be_done(self, operation: Operation) -> bool:
        """True if an operation can be done, or not be done, where there is no branch."""
        if operation.name in _STORES:
            return self.can_store
        if (
            operation.name in CONDITIONAL_EXITS
            or operation.name in _LOADS
            or operation.name in FIXED
        ):
            return True
        if operation.name not in PURE:
            return False
        if operation.name in _FREE:
            return True
        work = _work(operation)
        units = self.machine.units_for(work)
        # Operations that occupy their unit for long should not be executed in vain.
        return any(unit.work[work].interval == 1 for unit in units)

    def _is_worth(self, one: _Side, other: _Side) -> bool:
        """True if doing both sides takes few enough cycles."""
        works = [
            [_work(o) for o in each.operations if o.name not in _FREE] for each in (one, other)
        ]
        if max(map(len, works)) > tuning.CONVERTED_OPERATIONS:
            return False
        needed: Counter[tuple[str, ...]] = Counter()
        for work in itertools.chain(*works):
            needed[tuple(unit.name for unit in self.machine.units_for(work))] += 1
        cycles = [count / len(units) for units, count in needed.items() if units]
        cycles.append(needed.total() / self.machine.slots)
        return max(cycles) <= self.machine.delay_slots + tuning.CONVERTED_CYCLES

    # --- converting -------------------------------------------------------------------------

    def _convert(self, block: Block, *sides: _Side) -> None:
        """Merge a branch's sides into its block."""
        new = _ExtendedBlock(block, self.found)
        for side in sides:
            new.add(self.body, side)
        one, other = (side.last for side in sides)
        pairs = zip(one.arguments, other.arguments, strict=True)
        arguments = [new.choice(a, b) for a, b in pairs]
        block.terminator = Terminator("jump", edges=(Edge(one.block, arguments, one.is_back),))
        block.terminator.pc = new.pc
        gone = {side.block for side in sides}
        self.body.blocks[:] = [each for each in self.body.blocks if each not in gone]


class _ExtendedBlock:
    """A block that its branch's sides become part of."""

    def __init__(self, block: Block, found: Predicates) -> None:
        self.block, self.found = block, found
        self.predicate = block.end.arguments[0]
        self.pc = block.end.pc
        self._no: Value | None = None

    def add(self, body: Body, side: _Side) -> None:
        """Append the operations of a side."""
        if side.block is None:
            return
        if side.block.parameters:
            substitute(
                body.blocks, dict(zip(side.block.parameters, side.edge.arguments, strict=True))
            )
        for operation in side.operations:
            if operation.name in CONDITIONAL_EXITS:
                p, *rest = operation.arguments
                operation.arguments = (self._both(self._is_taken(side.holds), p), *rest)
            elif operation.name in _STORES:
                before = self.found.get(operation)
                self.found[operation] = self.predicate, side.holds
                if before is not None:
                    inner = before[0] if before[1] else self._pure("none", before[0])
                    both = self._both(self._is_taken(side.holds), inner)
                    self.found[operation] = both, True
            self.block.operations.append(operation)

    def choice(self, yes: Value, no: Value) -> Value:
        """One value if the predicate holds, else the other."""
        if yes is no:
            return yes
        if yes.type is not BOOLEAN:
            return self._pure("select", self.predicate, yes, no)
        one = self._both(self.predicate, yes)
        return self._pure("any", one, self._both(self._is_taken(False), no))

    def _is_taken(self, holds: bool) -> Value:
        """The predicate that a side is gone to."""
        if holds:
            return self.predicate
        if self._no is None:
            self._no = self._pure("none", self.predicate)
        return self._no

    def _both(self, p: Value, q: Value) -> Value:
        if isinstance(q, Constant):
            return p if q.bits else q
        return self._pure("all", p, q)

    def _pure(self, name: str, *arguments: Value) -> Value:
        type_ = arguments[-1].type if name == "select" else BOOLEAN
        operation = Operation(name, type_, (), arguments)
        operation.pc = self.pc
        self.block.operations.append(operation)
        return operation


def _absorb(body: Body, graph: ControlFlowGraph, place: int) -> bool:
    """Merge a block with its jump's target, if that has no other predecessor."""
    block = graph.blocks[place]
    end = block.end
    if end.name != "jump" or end.edges[0].is_back:
        return False
    (edge,) = end.edges
    if len(graph.incoming[graph.places[edge.block]]) != 1:
        return False
    if edge.block.parameters:
        substitute(body.blocks, dict(zip(edge.block.parameters, edge.arguments, strict=True)))
    block.operations += edge.block.operations
    block.terminator = edge.block.end
    body.blocks.remove(edge.block)
    return True


def _work(operation: Operation) -> Work:
    """The kind of work that occupies an operation's units most."""
    if operation.name in CONDITIONAL_EXITS:
        return Work.BRANCH
    if operation.name in _STORES:
        return Work.STORE
    if operation.name in PURE and operation.name != "boolean_to_i32":
        return work_of(operation.name, operation.static)
    return Work.SELECT if operation.name == "boolean_to_i32" else Work.LOAD


def _can_store(machine: Machine) -> bool:
    """True if stores can have predicates: all units that store read all predicates."""
    predicates = {file.name for file in machine.files if file.kind is FileKind.BOOLEAN}
    return machine.predication and all(
        predicates <= unit.reads for unit in machine.units_for(Work.STORE)
    )
