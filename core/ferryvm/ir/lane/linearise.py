# SPDX-License-Identifier: Apache-2.0
"""Control flow in lanes: partial linearisation.

    branch p ─┬─> a ─┐                       a (lanes with p) ─> b (the others) ─> join
              └─> b ─┴─> join     ─>         parameters of the join are blended by the masks

After a varying branch control goes to the first of its targets in the order, and the others are
*deferred*: they come later, whatever way control takes. Where a uniform branch has nothing
deferred before its targets it stays a branch. A loop is *divergent* if lanes leave it in different
iterations: then it runs while a lane is in it, and what is used behind it is blended as lanes
leave. (Moll, Hack: Partial Control-Flow Linearization, PLDI 2018; loops: Karrenberg, Hack:
Whole-Function Vectorization, CGO 2011, section 4.3.)

Shapes of parameters of loops, and which loops are divergent, are assumed first. Where they turn out
to be wrong, it begins again with weaker assumptions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Edge,
    FrameState,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.lane.assignment import Assignments, Assumptions
from ferryvm.ir.lane.emission import Emission
from ferryvm.ir.lane.item import UnvectorisedError
from ferryvm.ir.lane.order import Nest
from ferryvm.ir.lane.shape import UNIFORM, VARYING
from ferryvm.ir.lane.speculation import Speculation
from ferryvm.ir.lane.variable import LaneValue
from ferryvm.ir.lane.widen import Widening
from ferryvm.ir.loop.natural import Loop
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64

_END = Block("end", 0)
"""The target of returns."""

Target = Block | Loop
"""A block to go to; or a loop, for the end of its iteration."""

_LEAVING = {"leave": False, "halt": False, "host": False, "trap": True, "throw": True}
"""Ends of blocks that leave; True: no later item needs to begin."""


class WeakerError(Exception):
    """An assumption was wrong; it has been weakened."""


class Linearisation:
    """The body of lanes of an item's code."""

    def __init__(
        self,
        item: Body,
        nest: Nest,
        assumed: Assumptions,
        shared: frozenset[Operation] = frozenset(),
        before: FrameState | None = None,
    ) -> None:
        """`shared`: operations that yield the same in each lane, as in the first one; `before`: the
        state in front of a vector's first item, where lanes give up instead of leaving alone."""
        self.item, self.nest, self.assumed = item, nest, assumed
        old = item
        self.body = dataclasses.replace(old, blocks=[], varying=set())
        self.emission = Emission(self.body)
        self.variables = self.emission.variables
        self.passing = Assignments(item, nest, assumed, self.emission)
        self._labels: set[str] = set()
        self.speculation = (
            None if before is None else Speculation(self.emission, before, self._new_block)
        )
        self.widening = Widening(self.emission, shared, self.speculation)
        self.widening.resolve = self.passing.value
        self._place: dict[Target, int] = {_END: 1 << 30}
        self._blocks: dict[Target, Block] = {}
        """The block where control arrives on its way to a target."""
        self._after: dict[Loop, Block] = {}
        """The block behind a divergent loop."""
        self._number(None)
        self._deferred: dict[Target, set[Target]] = {target: set() for target in self._place}
        self._pending: dict[Loop, set[Target]] = {}
        """The targets that are deferred until a loop is left."""
        self._exits: dict[Loop, set[Target]] = {loop: set() for loop in nest.loops}
        """The targets of lanes that have left a divergent loop."""
        self._loop: Loop | None = None

    def run(self) -> Body:
        """The body. Raises WeakerError to be run again, or UnvectorisedError."""
        entry = self.item.blocks[0]
        first = self._new_block("items", entry.pc)
        self.body.blocks.append(first)
        for number, parameter in enumerate(entry.parameters):
            new = Parameter(parameter.type)
            first.parameters.append(new)
            shape = UNIFORM if number else 1
            self.variables.write(first, self.passing.variable(parameter), LaneValue(new, shape))
        self.emission.start(first, self.emission.true, True)
        self.variables.write(first, self.passing.mask(entry), LaneValue(self.emission.true))
        self._proceed(first, None, {entry})
        self._level(None)
        end = self._blocks[_END]
        if self.variables.incoming.get(end):
            end.terminator = Terminator("return")
            self.body.blocks.append(end)
        if self.speculation is not None and self.speculation.is_possible:
            self.speculation.end.terminator = Terminator("return")
            self.body.blocks.append(self.speculation.end)
        self.variables.finish()
        return self.body

    def _number(self, loop: Loop | None) -> None:
        """Number the targets of a loop in the order, and make their blocks."""
        for node in self.nest.members[loop]:
            if loop is not None and node is loop.header:
                continue  # it has been numbered, with the block before the loop
            if isinstance(node, Block):
                self._place[node] = len(self._place)
                self._blocks[node] = self._new_block(node.label, node.pc)
            else:
                header = node.header
                self._place[header] = len(self._place)
                self._number(node)
                self._blocks[header] = self._new_block(f"enter.{header.label}", header.pc)
                self._place[node] = len(self._place)
                self._blocks[node] = self._new_block(f"again.{header.label}", header.pc)
                self._after[node] = self._new_block(f"after.{header.label}", header.pc)
        if loop is None:
            self._blocks[_END] = self._new_block("done", 0)

    # --- blocks -----------------------------------------------------------------------------

    def _level(self, loop: Loop | None) -> None:
        for node in self.nest.members[loop]:
            if isinstance(node, Loop):
                self._run_loop(node)
            elif loop is None or node is not loop.header:
                self._run_block(node, self._blocks[node], self._deferred[node])

    def _run_block(self, old: Block, new: Block, deferred: set[Target]) -> None:
        if new is self._blocks[old]:
            if not self.variables.incoming.get(new):
                return
            self.body.blocks.append(new)
        self._loop = self.nest.around[old]
        self.passing.start(old)
        self.emission.pc = old.pc
        self.emission.start(new, self.emission.true, not deferred and self._is_full(self._loop))
        if new is self._blocks[old]:
            self.emission.mask = self.passing.read(self.passing.mask(old)).value
        else:
            self.emission.mask = new.parameters[0]
        for operation in old.operations:
            found = self.widening.run(operation)
            if found is not None and operation.type is not None:
                self.variables.write(self.emission.block, self.passing.variable(operation), found)
        self._end(old.end, deferred)

    def _is_full(self, loop: Loop | None) -> bool:
        """True if no lane waits outside a loop while it runs."""
        while loop is not None:
            if loop in self.assumed.divergent or self._pending[loop]:
                return False
            loop = loop.parent
        return True

    def _end(self, end: Terminator, deferred: set[Target]) -> None:
        emission = self.emission
        emission.pc = end.pc
        match end.name:
            case "jump":
                self.passing.take(end.edges[0], emission.mask)
                self._proceed(emission.block, self._loop, deferred | {self._target(end.edges[0])})
            case "branch" | "switch":
                self._branch(end, deferred)
            case "return":
                if end.arguments:
                    raise UnvectorisedError("its items have results")
                self._proceed(emission.block, self._loop, deferred | {_END})
            case _:
                self.widening.suspend(end, emission.true, stops=_LEAVING[end.name])
                self._proceed(emission.block, self._loop, deferred)

    def _branch(self, end: Terminator, deferred: set[Target]) -> None:
        emission = self.emission
        found = self.passing.value(end.arguments[0])
        if found.shape == UNIFORM:
            first, mask = emission.block, emission.mask
            full, pc = emission.is_full, emission.pc
            paths = [self._path(first, edge) for edge in end.edges]
            edges = tuple(Edge(path, []) for path in paths)
            first.terminator = Terminator(end.name, end.static, (found.value,), edges=edges)
            first.terminator.pc = pc
            for path, edge, taken in zip(paths, end.edges, edges, strict=True):
                self.variables.incoming[path] = [(first, taken)]
                self.body.blocks.append(path)
                emission.start(path, mask, full)
                self.passing.take(edge, mask)
                self._proceed(path, self._loop, deferred | {self._target(edge)})
            return
        masks = self._masks(end, emission.materialise(found))
        out: list[tuple[Edge, Value]] = []
        for edge, mask in zip(end.edges, masks, strict=True):
            is_out = not self._is_inside(self._target(edge), self._loop)
            if is_out and self._loop in self.assumed.divergent:
                out.append((edge, mask))
            else:
                self.passing.take(edge, mask)
        targets = deferred | {self._target(edge) for edge in end.edges}
        if len(out) == 1:  # in most iterations no lane leaves
            self._leave_loop(*out[0], targets)
        else:
            for edge, mask in out:
                self.passing.take(edge, mask)
            self._proceed(emission.block, self._loop, targets)

    def _leave_loop(self, edge: Edge, mask: Value, targets: set[Target]) -> None:
        """End a block: assign what an edge passes out of a loop, if a lane takes it."""
        emission, first = self.emission, self.emission.block
        paths = [self._path(first, edge), self._path(first, edge)]
        edges = tuple(Edge(path, []) for path in paths)
        is_any = emission.emit("any_lane", BOOLEAN, (), (mask,))
        first.terminator = Terminator("branch", (), (is_any,), edges=edges)
        for path, taken in zip(paths, edges, strict=True):
            self.variables.incoming[path] = [(first, taken)]
            self.body.blocks.append(path)
        emission.block = paths[0]
        self.passing.take(edge, mask)
        for path in paths:
            self._proceed(path, self._loop, targets)

    def _path(self, source: Block, edge: Edge) -> Block:
        """A block for an edge alone."""
        return self._new_block(f"{source.label}.to.{edge.block.label}", edge.block.pc)

    def _new_block(self, label: str, pc: int) -> Block:
        """A block of the body of lanes, with a label of its own."""
        while label in self._labels:
            label += "."
        self._labels.add(label)
        return Block(label, pc)

    def _masks(self, end: Terminator, value: Value) -> list[Value]:
        """The lanes that take each edge of a varying branch."""
        emission = self.emission
        mask = emission.mask
        if end.name == "branch":
            yes = emission.both(mask, value)
            return [yes, emission.both(mask, emission.none(yes))]
        masks, others = [], mask
        for number in range(len(end.edges) - 1):
            static = (I64, Condition.EQ)
            operands = value, emission.constant(I64, number)
            p = emission.emit("compare", BOOLEAN, static, operands)
            masks.append(emission.both(mask, p))
            others = emission.both(others, emission.none(p))
        return [*masks, others]

    def _target(self, edge: Edge) -> Target:
        return self.nest.headed(edge.block) if edge.is_back else edge.block

    # --- control ----------------------------------------------------------------------------

    def _is_inside(self, target: Target, loop: Loop | None) -> bool:
        if loop is None or target is _END:
            return loop is None
        return (
            loop.contains(target) if isinstance(target, Loop) else self.nest.contains(loop, target)
        )

    def _proceed(self, block: Block, loop: Loop | None, targets: Iterable[Target]) -> None:
        """End a block: go to the first of some targets, and defer the others."""
        inside = {target for target in targets if self._is_inside(target, loop)}
        outside = {*targets} - inside
        if loop is not None and outside and inside and loop not in self.assumed.divergent:
            self.assumed.divergent.add(loop)
            raise WeakerError
        if loop is not None and loop in self.assumed.divergent:
            self._exits[loop] |= outside
        if inside:
            first = min(inside, key=self._place.__getitem__)
            self._deferred[first] |= inside - {first}
            self._jump(block, self._blocks[first])
        elif loop is None:
            self._jump(block, self._blocks[_END])
        elif loop in self.assumed.divergent:
            self._jump(block, self._after[loop])
        else:
            self._proceed(block, loop.parent, outside | self._pending[loop])

    def _jump(self, block: Block, target: Block) -> None:
        edge = Edge(target, [])
        block.terminator = Terminator("jump", edges=(edge,))
        self.variables.incoming.setdefault(target, []).append((block, edge))

    # --- loops ------------------------------------------------------------------------------

    def _run_loop(self, loop: Loop) -> None:
        emission, variables = self.emission, self.variables
        old = loop.header
        before = self._blocks[old]
        if not variables.incoming.get(before):
            return
        self.body.blocks.append(before)
        deferred = self._deferred[old]
        self._pending[loop] = deferred
        is_full = not deferred and self._is_full(loop.parent)
        emission.start(before, emission.true, is_full)
        mask = self.passing.read(self.passing.mask(old))
        emission.mask = mask.value
        if not is_full:
            before = self._guarded(before, old, loop.parent, deferred)
        header = self._new_block(old.label, old.pc)
        entering = Edge(header, [])
        before.terminator = Terminator("jump", edges=(entering,))
        variables.incoming[header] = [(before, entering)]
        variables.headers[header] = loop, loop in self.assumed.divergent
        self.body.blocks.append(header)
        emission.block = before
        taken = variables.parameter(header, BOOLEAN, VARYING)
        variables.bind(entering, taken, emission.materialise(mask, before))
        shapes = []
        for parameter in old.parameters:
            value = self.passing.read(self.passing.passed(parameter, old))
            shape = VARYING if parameter in self.assumed.varying else value.shape
            new = variables.parameter(header, parameter.type, shape)
            passed = emission.materialise(value, before) if shape is VARYING else value.value
            variables.bind(entering, new, passed)
            variables.write(header, self.passing.variable(parameter), LaneValue(new, shape))
            shapes.append(shape)
        self._run_block(old, header, set())
        self._level(loop)
        self._again(loop, header, shapes)
        after = self._after[loop]
        if loop in self.assumed.divergent and variables.incoming.get(after):
            self.body.blocks.append(after)
            self._proceed(after, loop.parent, self._exits[loop] | deferred)

    def _guarded(
        self, before: Block, old: Block, loop: Loop | None, deferred: set[Target]
    ) -> Block:
        """The block from which a loop is entered, if a lane enters it at all."""
        emission = self.emission
        enter = self._new_block(f"some.{old.label}", old.pc)
        skip = self._new_block(f"skip.{old.label}", old.pc)
        edges = Edge(enter, []), Edge(skip, [])
        p = emission.some()
        before.terminator = Terminator("branch", (), (p,), edges=edges)
        for block, edge in zip((enter, skip), edges, strict=True):
            self.variables.incoming[block] = [(before, edge)]
            self.body.blocks.append(block)
        self._proceed(skip, loop, deferred)
        return enter

    def _again(self, loop: Loop, header: Block, shapes: list[int | None]) -> None:
        """The end of an iteration."""
        emission, variables = self.emission, self.variables
        old, block = loop.header, self._blocks[loop]
        assert variables.incoming.get(block)
        self.body.blocks.append(block)
        emission.start(block, emission.true, self._is_full(loop))
        mask = self.passing.read(self.passing.mask(old, is_back=True)).value
        emission.mask = mask
        edge = Edge(header, [], True)
        taken, *own = header.parameters
        variables.bind(edge, taken, mask)
        for parameter, new, shape in zip(old.parameters, own, shapes, strict=False):
            value = self.passing.read(self.passing.passed(parameter, old, is_back=True))
            if shape is not VARYING and value.shape != shape:
                self.assumed.varying.add(parameter)
                raise WeakerError
            passed = emission.materialise(value) if shape is VARYING else value.value
            variables.bind(edge, new, passed)
        if self._is_full(loop):
            block.terminator = Terminator("jump", edges=(edge,))
        else:
            out = self._new_block(f"out.{old.label}", old.pc)
            leaving = Edge(out, [])
            block.terminator = Terminator("branch", (), (emission.some(),), edges=(edge, leaving))
            variables.incoming[out] = [(block, leaving)]
            self.body.blocks.append(out)
            self._proceed(out, loop, set())
        variables.seal(header, block, edge)


def linearised(
    item: Body,
    shared: frozenset[Operation] = frozenset(),
    before: FrameState | None = None,
) -> Body:
    """The body of lanes of an item's code; `shared`, `before`: as for `Linearisation`. Raises
    UnvectorisedError."""
    nest, assumed = Nest(item), Assumptions()
    while True:
        try:
            return Linearisation(item, nest, assumed, shared, before).run()
        except WeakerError:
            continue
