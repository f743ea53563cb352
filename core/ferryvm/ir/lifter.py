# SPDX-License-Identifier: Apache-2.0
"""Lifting of a body, block by block.

One pass over the blocks in reverse postorder. A block with one predecessor continues with its
values; any other gets a parameter for each variable, and `passes.dead_code` removes unnecessary
ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ferryvm.ir.exception import ExceptionLifter
from ferryvm.ir.graph import Block, Body, Edge, FrameState, Operation, Parameter, Terminator, Value
from ferryvm.ir.region_order import Dispatch, OrderedBlock, RegionOrder, Stop
from ferryvm.ir.taken_word import NO_WORDS, TakenWords
from ferryvm.ir.variable import HEADER, Variables
from ferryvm.isa.emitter import Condition
from ferryvm.isa.frame import HEADER_WORDS, number_of
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.table import Flow
from ferryvm.isa.type import I64, Type, as_number
from ferryvm.region.barrier import BARRIER
from ferryvm.region.call import call_graph
from ferryvm.region.code import caught_locally
from ferryvm.verify import Verified

_CALLS = (Flow.CALL, Flow.CALL_INDIRECT)

_CONSTANTS = frozenset({"i32.const", "i64.const", "f32.const", "f64.const"})

_NO_LAUNCHES: Mapping[int, int] = MappingProxyType({})

Slot = tuple[int, Type]
"""A word of the frame except its header, by number and type."""


class BodyLifter(ExceptionLifter):
    """Lifts one body."""

    node: OrderedBlock
    """The node that is being lifted."""

    def __init__(
        self,
        verified: Verified,
        order: RegionOrder,
        is_root: bool,
        counting: bool,
        exceptions: bool = False,
        launches: Mapping[int, int] = _NO_LAUNCHES,
        taken: TakenWords = NO_WORDS,
    ) -> None:
        """`exceptions`: those that cross calls are thrown and caught here, too; `launches`: as for
        `lift`; `taken`: words that are constants here."""
        super().__init__(verified, order)
        self._launches, self._taken = launches, taken
        self.exceptions = exceptions
        self.is_root, self.counting = is_root, counting
        self.heads: dict[Stop, Block] = {}
        self._reached: set[Stop] = set()
        """Nodes with an incoming edge: not the handlers of exceptions that interpreters catch."""
        self.pending: dict[OrderedBlock, Variables] = {}
        """Variables at the end of the only predecessor of a node."""
        self.slots: dict[Dispatch, list[Slot]] = {}
        """The values that dispatch blocks pass on."""

    def run(self, name: str) -> Body:
        """The body."""
        function = self.order.function
        results = tuple(map(as_number, self.program.signature(function).results))
        body = Body(name, function, self.order.entry, self.is_root, results)
        body.parameters = self.parameters
        body.constants = self.constants
        self.body = body
        entry = Block("entry", self.order.entry)
        body.blocks.append(entry)
        self.open(entry)
        self.pc = self.order.entry
        for number, stop in enumerate(self.order.stops):
            pc = stop.targets[0].pc if isinstance(stop, Dispatch) else stop.pc
            self.heads[stop] = Block(f"b{number}", pc)
        self.variables = self._at_entry(entry)
        if self.is_root and self._taken.checks:
            self._check_taken()
        if not self.is_root:
            self._check_entry()
        entry.terminator = Terminator("jump", edges=(self._edge(None, self.order.first),))
        for stop in self.order.stops:
            if stop not in self._reached:
                continue
            if isinstance(stop, Dispatch):
                self._dispatch(stop)
            else:
                self._block(stop)
        return body

    def _at_entry(self, entry: Block) -> Variables:
        words: list[Value] = []
        for index, t in enumerate(self._types(self.order.entry)):
            value: Value
            if self.is_root:
                place = index if index < self.parameters else index + HEADER_WORDS
                value = self.emit(Operation("word", t, (place,)))
            elif index < self.parameters:
                parameter = Parameter(t)
                entry.parameters.append(parameter)
                value = self._taken_argument(index, t) or parameter
            else:
                value = self.constant(t, 0)
            words.append(value)
        statics: dict[int, Value] = {n: self._static_at_entry(n) for n in self.statics}
        pointer = self._load_pointer() if self.own.reads_heap_pointer else None
        return Variables(self._framed(words), statics, frozenset(), pointer, False)

    def _framed(self, words: list[Value]) -> list[Value]:
        """Words of the frame, with its header in its place."""
        return [*words[: self.parameters], *HEADER, *words[self.parameters :]]

    def _taken_argument(self, index: int, t: Type) -> Value | None:
        """The constant that a parameter is taken for; None if it is not."""
        bits = self._taken.arguments.get(index - 1)
        if self.order.function != self._taken.item or bits is None:
            return None
        return self.constant(t, bits)

    def _static_at_entry(self, number: int) -> Value:
        if self.is_root or number not in self._taken.statics:
            return self._load_static(number)
        return self.constant(*self._taken.statics[number])

    def _check_taken(self) -> None:
        """Leave with PARALLEL in front of a launch's loop if a word that its items take for
        constant has another value."""
        words, taken = self.variables.words, self._taken
        first = len(words) - LAUNCH_WORDS - len(self.program.signature(taken.item).parameters) + 1
        pairs = [(words[first + k], bits) for k, bits in taken.arguments.items()]
        pairs += [(self._load_static(n), bits) for n, (_, bits) in taken.statics.items()]
        state = self.variables.state(self.order.entry, unpaid=0)
        for value, bits in pairs:
            t = value.word_type
            if t.is_float:  # a NaN is itself, and -0 is not 0
                t, value = t.integer, self.reinterpret(t.integer, t, value)
            differs = self.compare(t, Condition.NE, value, self.constant(t, bits))
            self.emit(Operation("parallel_if", None, (), (differs,), state))

    def _check_entry(self) -> None:
        calls, function = call_graph(self.verified), self.order.function
        recurs = function in calls.recursive
        if recurs or self.order.has_loop or function in calls.long:
            state = self.variables.state(self.order.entry, unpaid=0)
            self.emit(Operation("check_entry", None, (recurs,), (), state))

    def _types(self, pc: int) -> tuple[Type, ...]:
        """Types of the words of a frame except its header."""
        return tuple(map(as_number, (*self.frame_types, *self.verified.operand_types(pc))))

    def _block(self, node: OrderedBlock) -> None:
        block = self.heads[node]
        self.body.blocks.append(block)
        self.open(block)
        if self.order.is_join(node):
            self.variables = self._join(node)
        else:
            self.variables = self.pending.pop(node)
        self.node, self.caught = node, None
        last = self.order.last(node)
        if self.counting:
            self._pay(node.pc, last)
        for pc in range(node.pc, last + 1):
            if self.counting and pc > node.pc and self._pays_anew(pc):
                self._pay(pc, last)
            if not self.instruction(pc):
                return
        if self.caught is None:
            self.end("jump", (), (last + 1,))
        else:
            self._end_caught(self.caught)

    def _join(self, node: OrderedBlock) -> Variables:
        """A parameter for every variable."""
        return self._joined(self._framed([self._parameter(t) for t in self._types(node.pc)]))

    def _joined(self, words: list[Value]) -> Variables:
        """These words, and parameters for the variables outside the frame."""
        statics: dict[int, Value] = {
            number: self._parameter(self._static_type(number)) for number in self.statics
        }
        pointer = self._parameter(I64) if self.own.reads_heap_pointer else None
        return Variables(words, statics, frozenset(self.written), pointer, self.own.allocates)

    def _parameter(self, t: Type) -> Parameter:
        """A new parameter of the current block."""
        made = Parameter(t)
        self.block.parameters.append(made)
        return made

    def _pay(self, pc: int, last: int) -> None:
        """Pay for the instructions from `pc` up to the next call, to a barrier, or to the end of the
        block."""
        end = pc
        while end < last and not self._pays_anew(end + 1):
            end += 1
        wanted = end + 1 - pc
        """The required fuel, including the last instruction even if other code pays for it."""
        count = wanted - self._is_unpaid(end)
        self.pc, self.unpaid = pc, 0
        self.emit(Operation("pay", None, (count, wanted), (), self.variables.state(pc, unpaid=0)))
        self.unpaid = count

    def _pays_anew(self, pc: int) -> bool:
        """True behind a call, and at a barrier: other items run before it completes."""
        is_barrier = self.program.code.opcodes[pc] == BARRIER
        return is_barrier or self.row(pc - 1).flow in _CALLS

    def _is_unpaid(self, pc: int) -> bool:
        flow = self.row(pc).flow
        if flow is Flow.THROW:  # at an exit the code that continues pays
            return caught_locally(self.verified, pc) is None
        if flow is Flow.HOST:
            return self.order.leaves_for_host(pc)
        return flow is Flow.STOP

    def end(self, name: str, arguments: tuple[Value, ...], targets: tuple[int, ...]) -> None:
        self.is_open = False
        self.unpaid = 0
        self.close(Terminator(name, (), arguments, None, tuple(map(self.edge_to, targets))))

    def edge_to(self, pc: int) -> Edge:
        return self._edge(self.node, self.order.onward(self.node, pc), pc)

    def _edge(self, source: OrderedBlock | None, target: OrderedBlock | None, pc: int = 0) -> Edge:
        """The edge to a node, or out of the region at `pc`; all paid instructions have
        completed."""
        variables = self.variables
        if target is None:
            block = Block(f"leave{len(self.body.blocks)}", pc)
            block.terminator = Terminator("leave", (), (), variables.state(pc, unpaid=0))
            self.body.blocks.append(block)
            return Edge(block, [])
        stop = self.order.stop(target)
        self._reached.add(stop)
        if isinstance(stop, OrderedBlock) and not self.order.is_join(stop):
            self.pending[stop] = variables.copy()
            return Edge(self.heads[stop], [])
        arguments = self._arguments(target, stop)
        if source is None or not self.order.is_back(source, stop):
            number = self._launches.get(target.pc)
            if number is None or isinstance(stop, Dispatch):
                return Edge(self.heads[stop], arguments)
            return Edge(self._before_launch(number, Edge(self.heads[stop], arguments)), [])
        poll = Block(f"poll{len(self.body.blocks)}", target.pc)
        state = self._behind_zeros(target)
        poll.operations.append(Operation("poll", None, (), (), state))
        end = Edge(self.heads[stop], arguments, is_back=True)
        poll.terminator = Terminator("jump", edges=(end,))
        self.body.blocks.append(poll)
        return Edge(poll, [])

    def _behind_zeros(self, head: OrderedBlock) -> FrameState:
        """The state at the head of a loop, or behind the zeros that its code begins with putting into
        locals: compiled code need not hold what was in them."""
        words, pc = [*self.variables.words], head.pc
        if not self.counting:
            code, last = self.program.code, self.order.last(head)
            while pc + 1 < last and self.row(pc + 1).mnemonic == "local.set":
                is_zero = self.row(pc).mnemonic in _CONSTANTS and not code.immediates[pc]
                number = number_of(code.immediates[pc + 1], self.parameters)
                if number is None or not (is_zero or self.row(pc).mnemonic == "ref.null"):
                    break
                place = number if number < self.parameters else number + HEADER_WORDS
                words[place] = self.constant(as_number(self.frame_types[number]), 0)
                pc += 2
        return self.variables.state(pc, 0, words)

    def _before_launch(self, number: int, onward: Edge) -> Block:
        """A block that leaves if the launch of a number, whose loop it leads to, has many items
        left."""
        above = self.block, self._known
        pc = onward.block.pc
        block = self._new_block("launch", pc)
        limit, next_, _ = self.variables.words[-LAUNCH_WORDS:]
        word = self.emit(Operation("launch_word", I64, (number,)))
        is_worth = self.compare(I64, Condition.GT_S, self.sub(I64, limit, next_), word)
        state = self.variables.state(pc, unpaid=0)
        self.emit(Operation("parallel_if", None, (), (is_worth,), state))
        self.close(Terminator("jump", edges=(onward,)))
        self.block, self._known = above
        return block

    def _arguments(self, target: OrderedBlock, stop: Stop) -> list[Value]:
        """The arguments of an edge to a node that is a join, or is reached through a dispatch."""
        variables = self.variables
        words = variables.words
        present = (*words[: self.parameters], *words[self.parameters + HEADER_WORDS :])
        pairs = zip(present, self._types(target.pc), strict=True)
        own: list[Value] = []
        if isinstance(stop, OrderedBlock):
            own += present
        else:
            found = {(index, t): value for index, (value, t) in enumerate(pairs)}
            own.append(self.constant(I64, stop.numbers[target]))
            own += [found.get(slot) or self.constant(slot[1], 0) for slot in self._slots(stop)]
        own += [variables.statics[number] for number in self.statics]
        if variables.pointer is not None:
            own.append(variables.pointer)
        return own

    # --- dispatches -------------------------------------------------------------------------

    def _slots(self, dispatch: Dispatch) -> list[Slot]:
        """The words that a dispatch passes on: an operand of one type at one of its targets may be
        one of another type at another."""
        if dispatch not in self.slots:
            own = {
                (index, t): None
                for target in dispatch.targets
                for index, t in enumerate(self._types(target.pc))
            }
            self.slots[dispatch] = [*own]
        return self.slots[dispatch]

    def _dispatch(self, dispatch: Dispatch) -> None:
        """A block that continues at the target whose number it is passed."""
        block = self.heads[dispatch]
        self.body.blocks.append(block)
        self.open(block)
        number = self._parameter(I64)
        words = {slot: self._parameter(slot[1]) for slot in self._slots(dispatch)}
        memory = self._joined([])
        for target in dispatch.targets:
            types = enumerate(self._types(target.pc))
            own: list[Value] = [words[slot] for slot in types]
            self._reached.add(target)
            variables = self.pending[target] = memory.copy()
            variables.words = self._framed(own)
        edges = tuple(Edge(self.heads[target], []) for target in dispatch.targets)
        self.close(Terminator("switch", (), (number,), edges=edges))
