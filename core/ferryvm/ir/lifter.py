# SPDX-License-Identifier: Apache-2.0
"""A body, block by block.

One pass over the blocks in reverse postorder. A block with one predecessor goes on with its values;
any other gets a parameter for each variable, and `passes.prune` removes those that were not needed.
"""

from __future__ import annotations

from ferryvm.ir.call import CallLifter
from ferryvm.ir.graph import Block, Body, Edge, Operation, Parameter, Terminator, Value
from ferryvm.ir.route import Node, Route
from ferryvm.ir.variable import Variables
from ferryvm.isa.control import HEADER_WORDS
from ferryvm.isa.table import Flow
from ferryvm.isa.type import I64, Type
from ferryvm.region.call import call_graph
from ferryvm.verify import Verified

_CALLS = (Flow.CALL, Flow.CALL_INDIRECT)

_UNPAID = (Flow.STOP, Flow.HOST)
"""What is paid by the engine, or never."""


class BodyLifter(CallLifter):
    """Lifts one body."""

    node: Node
    """Where on the route it is."""

    def __init__(self, verified: Verified, route: Route, is_root: bool, counting: bool) -> None:
        super().__init__(verified, route)
        self.is_root, self.counting = is_root, counting
        self.header = (Operation("return_pc", I64), Operation("distance", I64))
        """Stand for the words of the frame's header, which no value of a body is."""
        self.heads: dict[Node, Block] = {}
        self.pending: dict[Node, Variables] = {}
        """Variables at the end of the one block that leads to a node."""

    def run(self, name: str) -> Body:
        """The body."""
        function = self.route.function
        results = self.program.signature(function).results
        body = Body(name, function, self.route.entry, self.is_root, results[0] if results else None)
        body.constants = self.constants
        self.body = body
        entry = Block("entry", self.route.entry)
        body.blocks.append(entry)
        self.open(entry)
        self.pc = self.route.entry
        for number, node in enumerate(self.route.nodes):
            self.heads[node] = Block(f"b{number}", node.pc)
        self.variables = self._at_entry(entry)
        if not self.is_root:
            self._check_entry()
        entry.terminator = Terminator("jump", edges=(self._edge(None, self.route.nodes[0]),))
        for node in self.route.nodes:
            self._block(node)
        return body

    def _at_entry(self, entry: Block) -> Variables:
        words: list[Value] = [*self.header]
        parameters = len(self.program.signature(self.route.function).parameters)
        for index, t in enumerate(self._types(self.route.entry)):
            value: Value
            if t is None:
                value = self.constant(I64, 0)
            elif self.is_root:
                value = self.emit(Operation("word", t, (HEADER_WORDS + index,)))
            elif index < parameters:
                parameter = Parameter(t)
                entry.parameters.append(parameter)
                value = parameter
            else:
                value = self.constant(t, 0)
            words.append(value)
        statics: dict[int, Value] = {n: self._load_static(n) for n in self.statics}
        pointer = self._load_pointer() if self.own.reads_heap_pointer else None
        return Variables(words, statics, frozenset(), pointer, False)

    def _check_entry(self) -> None:
        calls, function = call_graph(self.verified), self.route.function
        recurs = function in calls.recursive
        if recurs or self.route.has_loop or function in calls.long:
            state = self.variables.state(self.route.entry, unpaid=0)
            self.emit(Operation("check_entry", None, (recurs,), (), state))

    def _types(self, pc: int) -> tuple[Type | None, ...]:
        """Types of the words of a frame after its header."""
        return (*self.frame_types, *self.verified.operand_types(pc))

    def _block(self, node: Node) -> None:
        block = self.heads[node]
        self.body.blocks.append(block)
        self.open(block)
        if self.route.is_join(node):
            self.variables = self._join(node, block)
        else:
            self.variables = self.pending.pop(node)
        self.node = node
        last = self.route.last(node)
        if self.counting:
            self._pay(node.pc, last)
        for pc in range(node.pc, last + 1):
            if self.counting and pc > node.pc and self.row(pc - 1).flow in _CALLS:
                self._pay(pc, last)
            if not self.instruction(pc):
                return
        self.end("jump", (), (last + 1,))

    def _join(self, node: Node, block: Block) -> Variables:
        """A parameter for every variable."""

        def parameter(t: Type) -> Parameter:
            made = Parameter(t)
            block.parameters.append(made)
            return made

        words: list[Value] = [*self.header]
        for t in self._types(node.pc):
            words.append(self.constant(I64, 0) if t is None else parameter(t))
        statics: dict[int, Value] = {
            number: parameter(self.program.statics[number].type) for number in self.statics
        }
        pointer = parameter(I64) if self.own.reads_heap_pointer else None
        return Variables(words, statics, frozenset(self.written), pointer, self.own.allocates)

    def _pay(self, pc: int, last: int) -> None:
        """Pay for the instructions from `pc` up to the next call or the end of the block."""
        end = pc
        while end < last and self.row(end).flow not in _CALLS:
            end += 1
        wanted = end + 1 - pc
        """What the last one needs too, even if it is not this code that pays for it."""
        count = wanted - (self.row(end).flow in _UNPAID)
        self.pc, self.unpaid = pc, 0
        self.emit(Operation("pay", None, (count, wanted), (), self.variables.state(pc, unpaid=0)))
        self.unpaid = count

    def end(self, name: str, arguments: tuple[Value, ...], targets: tuple[int, ...]) -> None:
        self.is_open = False
        self.unpaid = 0
        edges = tuple(self._edge(self.node, self.route.onward(self.node, pc), pc) for pc in targets)
        self.close(Terminator(name, (), arguments, None, edges))

    def _edge(self, source: Node | None, target: Node | None, pc: int = 0) -> Edge:
        """The way to a node, or out of the region at `pc`; all that was paid for has completed."""
        variables = self.variables
        if target is None:
            block = Block(f"leave{len(self.body.blocks)}", pc)
            block.terminator = Terminator("leave", (), (), variables.state(pc, unpaid=0))
            self.body.blocks.append(block)
            return Edge(block, [])
        head = self.heads[target]
        if not self.route.is_join(target):
            self.pending[target] = variables.copy()
            return Edge(head, [])
        arguments = [
            value
            for value, t in zip(variables.words[HEADER_WORDS:], self._types(target.pc), strict=True)
            if t is not None
        ]
        arguments += [variables.statics[number] for number in self.statics]
        if variables.pointer is not None:
            arguments.append(variables.pointer)
        if source is None or not self.route.is_back(source, target):
            return Edge(head, arguments)
        poll = Block(f"poll{len(self.body.blocks)}", target.pc)
        state = variables.state(target.pc, unpaid=0)
        poll.operations.append(Operation("poll", None, (), (), state))
        poll.terminator = Terminator("jump", edges=(Edge(head, arguments, is_back=True),))
        self.body.blocks.append(poll)
        return Edge(poll, [])
