# SPDX-License-Identifier: Apache-2.0
"""Lifting: a region's instructions become SSA, by running their meanings against this emitter.

Words of the running frame, statics and the heap pointer are values while a body is lifted; memory
is read for them at the entry and written at exits, from the `State` that each exit carries. Around
a call those statics are stored that the callee may see.

One pass over the blocks in reverse postorder. A block with one predecessor goes on with its values;
any other gets a parameter for each variable, and `passes.prune` removes those that were not needed.
"""

from __future__ import annotations

import dataclasses

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import (
    Block,
    Body,
    Edge,
    Module,
    Operation,
    Parameter,
    State,
    Terminator,
    Value,
)
from ferryvm.ir.passes.prune import prune
from ferryvm.ir.route import Node, Route, Ways
from ferryvm.isa import INSTRUCTIONS, Immediate, Instruction, Trap, Type
from ferryvm.isa.control import HEADER_WORDS
from ferryvm.isa.emitter import Emitter, FunctionField
from ferryvm.isa.table import Flow, Variable
from ferryvm.isa.type import I64, WORD_BYTES
from ferryvm.region.call import call_graph
from ferryvm.region.effect import Effects, code_effects, function_effects
from ferryvm.region.region import Kind, Region
from ferryvm.verify import Verified


def lift(region: Region, counting: bool = False, unseen: Ways = frozenset()) -> Module:
    """The IR of a region and of every function that it calls, tidied.

    `counting`: blocks pay fuel for their instructions; `unseen`: ways that are left out, with a
    guard in their place.
    """
    verified = region.verified
    called = set(region.callees)
    is_called_only = not region.graph.predecessors[region.graph.entry]
    if region.kind is Kind.FUNCTION and region.function and is_called_only:
        # Where a jump goes to the entry too, locals need not be zero there.
        called.add(region.function)
        root = _stub(region)
    else:
        root = _Lifter(verified, Route.of_region(region, unseen), True, counting).run(region.name)
    functions = {}
    for number in sorted(called):
        function = verified.program.functions[number]
        route = Route(verified, number, function.entry, None, unseen)
        functions[number] = _Lifter(verified, route, False, counting).run(function.name)
    module = Module(region.name, root, functions, counting)
    for body in module.bodies:
        prune(body)
    return module


def _stub(region: Region) -> Body:
    """The body that calls a function with the arguments that its frame holds, and returns."""
    signature = region.verified.program.signature(region.function)
    result = signature.results[0] if signature.results else None
    body = Body(region.name, region.function, region.entry, True, result)
    block = Block("entry", region.entry)
    arguments = [
        Operation("word", t, (HEADER_WORDS + index,))
        for index, t in enumerate(signature.parameters)
    ]
    # The frame is the callee's own: when it leaves there is nothing to be written here.
    state = State(region.entry, (None,) * HEADER_WORDS)
    call = Operation("call", result, (region.function, 0), tuple(arguments), state)
    block.operations = [*arguments, call]
    block.terminator = Terminator("return", (), (call,) if result else ())
    body.blocks.append(block)
    return body


@dataclasses.dataclass
class _Variables:
    """What is not in memory while compiled code runs, at one point of it."""

    words: list[Value]
    """The running frame up to the stack pointer; its header first."""
    statics: dict[int, Value]
    dirty: frozenset[int]
    """Statics that memory does not have yet."""
    pointer: Value | None
    """The heap pointer; None where the body never asks for it."""
    is_pointer_dirty: bool

    def copy(self) -> _Variables:
        return dataclasses.replace(self, words=[*self.words], statics={**self.statics})


class _Lifter(Builder, Emitter[Value]):
    """Lifts one body."""

    def __init__(self, verified: Verified, route: Route, is_root: bool, counting: bool) -> None:
        super().__init__()
        self.verified, self.program = verified, verified.program
        self.route, self.is_root, self.counting = route, is_root, counting
        self.own: Effects = code_effects(verified, route.pcs)
        self.promoted = not (self.own.all_read or self.own.all_written)
        """Whether statics are values here: with computed numbers, they stay in memory."""
        accessed = self.own.statics_read | self.own.statics_written
        self.statics = sorted(accessed) if self.promoted else []
        self.written = self.own.statics_written if self.promoted else frozenset()
        self.recursive = call_graph(verified).recursive
        self.frame_types = self.program.frame_types(route.function)
        self.header = (Operation("return_pc", I64), Operation("distance", I64))
        self.heads: dict[Node, Block] = {}
        self.pending: dict[Node, _Variables] = {}
        """Variables at the end of the one block that leads to a node."""

    # --- blocks -----------------------------------------------------------------------------

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
        self.unpaid = 0
        variables = self._at_entry(entry)
        for number, node in enumerate(self.route.nodes):
            self.heads[node] = Block(f"b{number}", node.pc)
        first = self.route.nodes[0]
        self.variables = variables
        if not self.is_root and (self.route.has_loop or function in self.recursive):
            check = Operation("check_entry", None, (function in self.recursive,))
            check.state = self._state(self.route.entry)
            self.emit(check)
        entry.terminator = Terminator("jump", edges=(self._edge(None, first),))
        for node in self.route.nodes:
            self._block(node)
        return body

    def _at_entry(self, entry: Block) -> _Variables:
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
        return _Variables(words, statics, frozenset(), pointer, False)

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
            if self.counting and pc > node.pc and self._row(pc - 1).flow in _CALLS:
                self._pay(pc, last)
            if not self._instruction(pc):
                return
        self._end("jump", (), (last + 1,))

    def _join(self, node: Node, block: Block) -> _Variables:
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
        return _Variables(words, statics, frozenset(self.written), pointer, self.own.allocates)

    def _pay(self, pc: int, last: int) -> None:
        """Pay for the instructions from `pc` up to the next call or the end of the block."""
        end = pc
        while end < last and self._row(end).flow not in _CALLS:
            end += 1
        wanted = end + 1 - pc
        """What the last one needs too, even if it is not this code that pays for it."""
        count = wanted - (self._row(end).flow in _UNPAID)
        self.pc, self.unpaid = pc, 0
        self._before = None
        self.emit(Operation("pay", None, (count, wanted), (), self._state(pc)))
        self.unpaid = count

    def _row(self, pc: int) -> Instruction:
        return INSTRUCTIONS[int(self.program.code["opcode"][pc])]

    def _instruction(self, pc: int) -> bool:
        """Lift one instruction; whether control reaches its end."""
        row = self._row(pc)
        immediate = int(self.program.code["immediate"][pc])
        self.pc, self.row, self.immediate = pc, row, immediate
        self._before = None
        self._words_before = [*self.variables.words]
        self.is_open = True
        arguments: list[Value] = []
        if row.immediate is not Immediate.NONE:
            arguments.append(self.constant(row.immediate.literal or I64, immediate))
        bound: dict[str, Type] = {}
        if row.immediate is Immediate.LOCAL:
            bound["t"] = self.frame_types[immediate]
        elif row.immediate is Immediate.STATIC:
            bound["t"] = self.program.statics[immediate].type
        words = self.variables.words
        popped = words[len(words) - len(row.pops) :]
        del words[len(words) - len(row.pops) :]
        operands = []
        for t, value in zip(row.pops, popped, strict=True):
            if isinstance(t, Variable):
                assert isinstance(value.type, Type)
                bound[t.name] = value.type
                value = self.to_slot(value.type, value)
            operands.append(value)
        result = row.meaning(self, *arguments, *operands)
        if not self.is_open:
            return False
        if result is not None:
            results = result if isinstance(result, tuple) else (result,)
            for t, value in zip(row.pushes, results, strict=True):
                if isinstance(t, Variable):
                    value = self.from_slot(bound.get(t.name, I64), value)
                self.variables.words.append(value)
        if self.unpaid:
            self.unpaid -= 1
        return True

    # --- states and edges ---------------------------------------------------------------------

    def _state(self, pc: int, words: list[Value] | None = None) -> State:
        """The state at a pc, with these words of the frame."""
        v = self.variables
        words = v.words if words is None else words
        return State(
            pc,
            (*(None for _ in range(HEADER_WORDS)), *words[HEADER_WORDS:]),
            tuple((number, v.statics[number]) for number in sorted(v.dirty)),
            v.pointer if v.is_pointer_dirty else None,
            self.unpaid,
        )

    def _here(self) -> State:
        """The state before the instruction being lifted."""
        if self._before is None:
            self._before = self._state(self.pc, self._words_before)
        return self._before

    _before: State | None

    def _end(
        self,
        name: str,
        arguments: tuple[Value, ...],
        targets: tuple[int, ...],
    ) -> None:
        """End the block with a jump, branch or switch to instructions of the function."""
        self.is_open = False
        self.unpaid = 0
        edges = tuple(self._edge(self.node, self.route.onward(self.node, pc), pc) for pc in targets)
        self.close(Terminator(name, (), arguments, None, edges))

    def _edge(self, source: Node | None, target: Node | None, pc: int = 0) -> Edge:
        """The way to a node, or out of the region at `pc`."""
        variables = self.variables
        if target is None:
            block = Block(f"leave{len(self.body.blocks)}", pc)
            block.terminator = Terminator("leave", (), (), self._state(pc))
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
        poll.operations.append(Operation("poll", None, (), (), self._state(target.pc)))
        poll.terminator = Terminator("jump", edges=(Edge(head, arguments, is_back=True),))
        self.body.blocks.append(poll)
        return Edge(poll, [])

    # --- leaving ----------------------------------------------------------------------------

    def trap_if(self, p: Value, kind: Trap) -> None:
        self._check("trap_if", (kind,), (p,))

    def _check(self, name: str, static: tuple[object, ...], arguments: tuple[Value, ...]) -> None:
        p = arguments[0]
        if p is not self.constant(p.type, 0):
            self.emit(Operation(name, None, static, arguments, self._here()))

    def grow_if(self, p: Value, wanted: Value) -> None:
        self._check("grow_if", (), (p, wanted))

    def _stop(self, name: str, *static: object) -> None:
        self.is_open = False
        self.close(Terminator(name, static, (), self._here()))

    def trap(self, kind: Trap) -> None:
        self._stop("trap", kind)

    def halt(self) -> None:
        self._stop("halt")

    def host(self, number: Value) -> None:
        self._stop("host", self.immediate)

    # --- storage ----------------------------------------------------------------------------

    def local(self, index: Value) -> Value:
        value = self.variables.words[HEADER_WORDS + self.immediate]
        return self.to_slot(self.frame_types[self.immediate], value)

    def set_local(self, index: Value, slot: Value) -> None:
        t = self.frame_types[self.immediate]
        self.variables.words[HEADER_WORDS + self.immediate] = self.from_slot(t, slot)

    def _load_static(self, number: int) -> Operation:
        return self.emit(Operation("static", self.program.statics[number].type, (number,)))

    def static(self, index: Value) -> Value:
        if self.row.immediate is not Immediate.STATIC:
            return self.emit(Operation("static_at", I64, (), (index,)))
        t = self.program.statics[self.immediate].type
        if self.promoted:
            return self.to_slot(t, self.variables.statics[self.immediate])
        return self.to_slot(t, self._load_static(self.immediate))

    def set_static(self, index: Value, slot: Value) -> None:
        if self.row.immediate is not Immediate.STATIC:
            self.emit(Operation("set_static_at", None, (), (index, slot)))
            return
        value = self.from_slot(self.program.statics[self.immediate].type, slot)
        if self.promoted:
            self.variables.statics[self.immediate] = value
            self.variables.dirty |= {self.immediate}
        else:
            self.emit(Operation("set_static", None, (self.immediate,), (value,)))

    def static_count(self) -> Value:
        return self.constant(I64, len(self.program.statics))

    def heap_load(self, bytes_: int, address: Value) -> Value:
        return self.emit(Operation("heap_load", I64, (bytes_,), (address,)))

    def heap_store(self, bytes_: int, address: Value, value: Value) -> None:
        self.emit(Operation("heap_store", None, (bytes_,), (address, value)))

    def _load_pointer(self) -> Operation:
        return self.emit(Operation("heap_pointer", I64))

    def heap_pointer(self) -> Value:
        assert self.variables.pointer is not None
        return self.variables.pointer

    def set_heap_pointer(self, value: Value) -> None:
        self.variables.pointer, self.variables.is_pointer_dirty = value, True

    def heap_capacity(self) -> Value:
        return self.invariant("heap_capacity", (), (), I64)

    # --- control ----------------------------------------------------------------------------

    def jump(self, target: Value) -> None:
        self._end("jump", (), (self.immediate,))

    def jump_if(self, p: Value, target: Value) -> None:
        taken, onward = self.immediate, self.pc + 1
        seen = self.route.taken(self.pc, (taken, onward))
        if len(seen) == 1 and taken != onward:
            self._check("guard", (self.pc,), (self.none(p) if seen == (taken,) else p,))
            self._end("jump", (), seen)
            return
        self._end("branch", (p,), (taken, onward))

    def skip(self, count: Value) -> None:
        targets = tuple(range(self.pc + 1, self.pc + 2 + self.immediate))
        self._end("switch", (count,), targets)

    # --- frames -----------------------------------------------------------------------------

    def frame_pointer(self) -> Value:
        return self.invariant("frame", (), (), I64)

    def stack_pointer(self) -> Value:
        offset = self.constant(I64, WORD_BYTES * len(self.variables.words))
        return self.add(I64, self.frame_pointer(), offset)

    def stack_limit(self) -> Value:
        return self.invariant("stack_limit", (), (), I64)

    def _word_at(self, address: Value) -> int:
        """Which word of the frame is at an address."""
        if not isinstance(address, Operation) or address.name != "add":
            return 0
        return self._bits(address.arguments[1]) // WORD_BYTES

    @staticmethod
    def _bits(value: Value) -> int:
        bits = getattr(value, "bits", None)
        assert isinstance(bits, int)
        return bits

    def word(self, address: Value) -> Value:
        value = self.variables.words[self._word_at(address)]
        assert isinstance(value.type, Type)
        return self.to_slot(value.type, value)

    def set_word(self, address: Value, slot: Value) -> None:
        self.variables.words[self._word_at(address)] = slot

    def clear_words(self, address: Value, count: Value) -> None:
        """Nothing: the callee's locals are values of the callee's body, and zero there."""

    def next_pc(self) -> Value:
        return self.constant(I64, self.pc + 1)

    def function(self, function: Value, field: FunctionField) -> Value:
        if self.row.flow is Flow.CALL:
            return self.constant(I64, self._field(self.immediate, field))
        if field is FunctionField.PARAMETERS:  # the signature has been checked
            return self.constant(I64, len(self.program.signatures[self.immediate].parameters))
        return self.invariant("function_field", (field,), (function,), I64)

    def _field(self, number: int, field: FunctionField) -> int:
        function = self.program.functions[number]
        match field:
            case FunctionField.ENTRY:
                return function.entry
            case FunctionField.PARAMETERS:
                return len(self.program.signature(number).parameters)
            case FunctionField.LOCALS:
                return len(function.locals)
            case FunctionField.FRAME:
                return self.verified.frame_words[number]
            case FunctionField.SIGNATURE:
                return function.signature

    def table_size(self) -> Value:
        return self.constant(I64, len(self.program.table))

    def table_function(self, index: Value) -> Value:
        return self.invariant("table_function", (), (index,), I64)

    def enter(self, function: Value, frame: Value, stack: Value) -> None:
        v = self.variables
        base = self._word_at(frame)
        arguments = tuple(v.words[base + HEADER_WORDS :])
        del v.words[base + HEADER_WORDS :]
        state = dataclasses.replace(self._state(self.pc), unpaid=0)  # the callee's affair now
        name: str
        static: tuple[object, ...]
        if self.row.flow is Flow.CALL:
            callees = [self.immediate]
            signature = self.program.signature(self.immediate)
            name, static = "call", (self.immediate, base)
        else:
            table = sorted(set(self.program.table))
            functions = self.program.functions
            callees = [n for n in table if functions[n].signature == self.immediate]
            signature = self.program.signatures[self.immediate]
            name, static = "call_indirect", (tuple(callees), base)
            arguments = (function, *arguments)
        seen = [function_effects(self.verified, number) for number in callees]
        self._store_for(seen)
        # What the callee changes is in memory when it leaves; the rest is stored then.
        state = dataclasses.replace(
            state,
            statics=tuple((n, v.statics[n]) for n in sorted(v.dirty)),
            heap_pointer=v.pointer if v.is_pointer_dirty else None,
        )
        results = signature.results
        call = Operation(name, results[0] if results else None, static, arguments, state)
        self.emit(call)
        del v.words[base:]
        if results:
            v.words.append(call)
        self._load_after(seen)

    def _store_for(self, seen: list[Effects]) -> None:
        """Store what callees may see."""
        v = self.variables
        for number in sorted(v.dirty):
            if any(number in e.statics_read or number in e.statics_written for e in seen):
                self.emit(Operation("set_static", None, (number,), (v.statics[number],)))
                v.dirty -= {number}
        if v.is_pointer_dirty and any(e.reads_heap_pointer for e in seen):
            assert v.pointer is not None
            self.emit(Operation("set_heap_pointer", None, (), (v.pointer,)))
            v.is_pointer_dirty = False

    def _load_after(self, seen: list[Effects]) -> None:
        """Load what callees may have changed."""
        v = self.variables
        for number in self.statics:
            if any(number in e.statics_written for e in seen):
                v.statics[number] = self._load_static(number)
        if v.pointer is not None and any(e.allocates for e in seen):
            v.pointer = self._load_pointer()

    def resume(self, pc: Value, frame: Value, stack: Value) -> None:
        self.is_open = False
        results = (self._word_at(stack),) if self._word_at(stack) else ()
        values = []
        if results:
            t = self.body.result
            assert t is not None
            values.append(self.from_slot(t, self.variables.words[0]))
        v = self.variables
        for number in sorted(v.dirty):
            self.emit(Operation("set_static", None, (number,), (v.statics[number],)))
        if v.is_pointer_dirty:
            assert v.pointer is not None
            self.emit(Operation("set_heap_pointer", None, (), (v.pointer,)))
        self.close(Terminator("return", (), tuple(values)))


_CALLS = (Flow.CALL, Flow.CALL_INDIRECT)
_UNPAID = (Flow.STOP, Flow.HOST)
"""What is paid by the engine, or never."""
