# SPDX-License-Identifier: Apache-2.0
"""Value numbering: fold constants, apply identities, and replace operations by equal earlier ones.

One preorder walk over the dominator tree. An operation is simplified (`ferryvm.ir.simplify`), or
replaced by an equal one in a dominating block; so is a load from the heap, of a field of a struct,
or of an element of an array, with no store there and no call on any path between. (Briggs, Cooper,
Simpson: Value Numbering, 1997, section 4; loads by numbering the memory between two changes of it;
elements of each kind are one memory.) Header words of objects are never changed, so loads of them
are equal wherever their object is; those of a new object are known.

Requires no other pass. Preserves blocks, edges, effects and exits, but for checks that cannot fail.
"""

from __future__ import annotations

from ferryvm.ir.build import Builder
from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import (
    BOOLEAN,
    Body,
    FrameState,
    Operation,
    Static,
    Value,
    ValueType,
)
from ferryvm.ir.operation import (
    CALLS,
    CONDITIONAL_EXITS,
    ELEMENT_CHANGES,
    FIELD_CHANGES,
    FIXED,
    HEAP_CHANGES,
    PURE,
)
from ferryvm.ir.simplify import simplify

Memory = tuple[int, int]
"""A version of the heap, of all fields, or of the elements of a kind: a block, and the number of
changes in it."""

Part = tuple[Static, ...]
"""A part of memory: the name of the loads from it; for elements with their kind."""

_CHANGES = {
    "heap_load": HEAP_CHANGES,
    "field_load": FIELD_CHANGES,
    "element_load": ELEMENT_CHANGES,
}
"""Loads, each with the operations that change the memory which it reads."""


def _part(load: Operation) -> Part:
    """The part of memory from which a load reads."""
    return (load.name, *load.static) if load.name == "element_load" else (load.name,)


def _may_change(operation: Operation, part: Part) -> bool:
    """True if an operation may change a part of memory."""
    name, *elements = part
    if operation.name not in _CHANGES[str(name)]:
        return False
    return not elements or operation.name in CALLS or operation.static[:1] == tuple(elements)


def number_values(body: Body) -> None:
    """Replace operations by simpler or equal ones."""
    _Numbering(body).run()


class _Numbering(Builder):
    """The walk over the dominator tree, and the builder of simplified operations."""

    def __init__(self, body: Body) -> None:
        super().__init__(body.constants)
        self.graph = ControlFlowGraph(body)
        self.seen: dict[object, tuple[Value, int]] = {}
        """Values by the keys of their operations, each with its block. The walk has left the block
        of one that does not dominate a lookup, so that entry is dropped."""
        self.new: dict[Value, Value] = {}
        self.states: dict[FrameState, FrameState] = {}
        parts = dict.fromkeys(_part(each) for each in body.operations if each.name in _CHANGES)
        self.memories = {part: _memories(self.graph, part) for part in parts}
        self.false = self.constant(BOOLEAN, 0)

    def run(self) -> None:
        """Walk over all blocks."""
        for place in self.graph.preorder():
            self._block(place)

    def invariant(
        self,
        name: str,
        static: tuple[Static, ...],
        arguments: tuple[Value, ...],
        type_: ValueType,
    ) -> Value:
        """An equal operation that dominates the current point of the walk, or else a new one."""
        key = (name, static, arguments)
        known = self._known_as(key)
        if known is None:
            known = self.emit(Operation(name, type_, static, arguments))
            self.seen[key] = known, self.place
        return known

    def _known_as(self, key: object) -> Value | None:
        found = self.seen.get(key)
        if found is None or not self.graph.dominates(found[1], self.place):
            return None
        return found[0]

    def _block(self, place: int) -> None:
        self.place, self.block = place, self.graph.blocks[place]
        operations, self.block.operations = self.block.operations, []
        new = self.new
        memory = {part: at_start[place] for part, at_start in self.memories.items()}
        for operation in operations:
            arguments = operation.arguments
            if not new.keys().isdisjoint(arguments):
                arguments = operation.arguments = tuple([new.get(a, a) for a in arguments])
            name = operation.name
            if name in PURE:
                self._pure(operation)
            elif name in FIXED:
                self._once(operation, (name, operation.static, arguments))
            elif name in _CHANGES:
                version = memory[_part(operation)]
                self._once(operation, (name, operation.static, arguments, version))
            else:
                if operation.state is not None:
                    operation.state = self._state(operation.state)
                if name in CONDITIONAL_EXITS and arguments[0] is self.false:
                    continue
                if name == "set_header_word":
                    key = "header_word", operation.static, arguments[:1]
                    self.seen[key] = arguments[1], place
                for part, (block, count) in [*memory.items()]:
                    if _may_change(operation, part):
                        memory[part] = place, count + 1 if block == place else 1
                self.block.operations.append(operation)
        self._end()

    def _end(self) -> None:
        end, new = self.block.end, self.new
        end.arguments = tuple([new.get(a, a) for a in end.arguments])
        if end.state is not None:
            end.state = self._state(end.state)
        for edge in end.edges:
            edge.arguments = [new.get(a, a) for a in edge.arguments]

    def _pure(self, operation: Operation) -> None:
        name, static, arguments = operation.name, operation.static, operation.arguments
        assert operation.type is not None
        simple = simplify(self, name, static, arguments, operation.type)
        if simple is None:
            self._once(operation, (name, static, arguments))
        else:
            self.new[operation] = simple

    def _once(self, operation: Operation, key: object) -> None:
        """Append an operation unless there is an equal one."""
        known = self._known_as(key)
        if known is None:
            self.seen[key] = operation, self.place
            self.block.operations.append(operation)
        else:
            self.new[operation] = known

    def _state(self, state: FrameState) -> FrameState:
        found = self.states.get(state)
        if found is None:
            found = self.states[state] = state.renamed(self.new)
        return found


def _memories(graph: ControlFlowGraph, part: Part) -> list[Memory]:
    """The version of a part of memory at the start of each block; equal versions: no change
    between."""
    changes = [
        sum(_may_change(operation, part) for operation in block.operations)
        for block in graph.blocks
    ]
    at_start: list[Memory | None] = [None] * len(graph.blocks)
    at_start[0] = 0, 0
    has_changed = True
    while has_changed:  # optimistic: a loop changes nothing until a change is found
        has_changed = False
        for place in range(1, len(graph.blocks)):
            found: set[Memory] = set()
            for source, _ in graph.incoming[place]:
                before = at_start[source]
                if changes[source]:
                    found.add((source, changes[source]))
                elif before is not None:
                    found.add(before)
            memory = found.pop() if len(found) == 1 else (place, 0)
            if at_start[place] != memory and at_start[place] != (place, 0):
                at_start[place] = memory
                has_changed = True
    return [memory or (place, 0) for place, memory in enumerate(at_start)]
