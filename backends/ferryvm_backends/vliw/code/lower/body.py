# SPDX-License-Identifier: Apache-2.0
"""Bodies of the region IR as extended basic blocks of the machine's code.

A block with one predecessor is appended to it. So the other blocks are entered only at their top,
and left by exits in the middle.

The machine's float operations yield the canonical NaN, so most of `canonical` needs no code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferryvm.ir import footprint
from ferryvm.ir.address import accessed
from ferryvm.ir.control_flow_graph import edges_to
from ferryvm.ir.graph import (
    Block,
    Body,
    Constant,
    Edge,
    Module,
    Operation,
    Value,
)
from ferryvm.ir.operation import PURE
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64, WORD_BYTES, Type, signed
from ferryvm.machine.control import DESCRIPTOR_WORDS, Status
from ferryvm_backends.vliw.code.if_conversion import Predicates
from ferryvm_backends.vliw.code.lower.calling import Calling, Calls
from ferryvm_backends.vliw.code.lower.leaving import CALLS_BYTES
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineCode,
    MachineOperation,
    Operand,
    Register,
    Segment,
)

_STATUS = {
    "leave": Status.LEAVE,
    "trap": Status.TRAP,
    "halt": Status.HALT,
    "host": Status.HOST,
}
_SAME = frozenset({"extend_u", "reinterpret", "to_slot", "from_slot"})
"""Operations whose result has the bits of their operand, as registers hold words."""
_LARGEST_OFFSET = 1 << 31
"""Of what is added to an address by an access, either way: two accesses on one base whose offsets
are apart are apart, then."""


def lower(module: Module, predicates: Predicates) -> MachineCode:
    """The code of a region; `predicates`: of some of its stores."""
    code = MachineCode(module.name, [], tuple(module.guards))
    calling = Calling(module, code)
    bodies: list[tuple[int | None, Body]] = [(None, module.root), *module.functions.items()]
    lowerings = [_Lowering(b, code, calling, n, module.footprints, predicates) for n, b in bodies]
    for each in lowerings:
        each.run()
    for each in lowerings:
        each.finish()
    code.call_bytes = CALLS_BYTES + calling.size
    return code


class _Lowering(Calls):
    def __init__(
        self,
        body: Body,
        code: MachineCode,
        calling: Calling,
        number: int | None,
        footprints: Mapping[Operation, footprint.Footprint],
        predicates: Predicates,
    ) -> None:
        """`number`: of the function; None for the region's own body."""
        super().__init__(body, code, calling, number)
        self.body, self.footprints, self.predicates = body, footprints, predicates
        self.incoming = edges_to(body)
        self.blocks: dict[Block, MachineBlock] = {}
        """Those that have a block of their own."""
        self.offsets = {
            value: signed(I64, bits)
            for value in accessed(body)
            if (bits := _added(value)) is not None
        }
        """Addresses that are a value and a constant, and needed only for accesses: they are never
        computed, for the machine adds the constant itself."""
        self.reached: set[Block] = set()
        """Those of them that something leads to, decided branches considered."""
        self.waiting: list[tuple[MachineBlock, Block]] = []
        """Blocks that nothing but an exit leads to, and where they go."""

    def run(self) -> None:
        entry = self.body.blocks[0]
        self.reached.add(entry)
        self.blocks[entry] = MachineBlock(entry.label)
        if self.number is not None:
            self.blocks[entry] = self.calling.entries[self.number]
        # Values are defined before they are used in the order of the body's blocks.
        for block in self.body.blocks:
            if len(self.incoming[block]) > 1 or any(e.is_back for e in self.incoming[block]):
                self.blocks[block] = MachineBlock(block.label)
        for block in self.body.blocks:
            if block is entry and self.number is not None:
                given = self.calling.parameters[self.number]
                self.values.update(zip(block.parameters, given, strict=True))
            elif block in self.blocks:
                for parameter in block.parameters:
                    self.values[parameter] = self._register(parameter)
        for block in self.body.blocks:
            found = self.blocks.get(block)
            if block in self.reached:
                assert found is not None
                self._open(found)
                if block is entry and self.number is None:
                    first = self._read_field("fp")
                    if self.parameters:
                        first = self._do("sub", (I64,), (first, self.parameters))
                    self._set(self.frame, "shl", (I64,), (first, 3))
                    self._set(self.base, "move", (), (0,))
                self._inline(block)
                while self.waiting:
                    at, onward = self.waiting.pop()
                    self._open(at)
                    self._inline(onward)
        self.code.blocks += self.cold

    def _inline(self, block: Block | None) -> None:
        """A block, and those that nothing else leads to behind it."""
        while block is not None:
            for operation in block.operations:
                self.pc = operation.pc
                self._operation(operation)
            block = self._end(block)

    # --- operations -------------------------------------------------------------------------

    def _operation(self, operation: Operation) -> None:
        if operation in self.offsets:
            self.values[operation] = self._value(operation.arguments[0])  # what it is added to
            return
        operands = tuple(self._value(a) for a in operation.arguments)
        begin = len(self.block.operations)
        special = getattr(self, f"_do_{operation.name}", None)
        if special is not None:
            result = special(operation, *operands)
        elif operation.name in _SAME:
            result = operands[0]
        else:
            assert operation.name in PURE, operation.name
            result = self._do(operation.name, operation.static, operands)
        if operation.type is not None:
            self.values[operation] = result
        if operation in self.predicates:
            self._depend(begin, *self.predicates[operation])

    def _depend(self, begin: int, predicate: Value, holds: bool) -> None:
        """Predicate the stores of one operation."""
        p = self._value(predicate)
        assert isinstance(p, Register)
        for each in self.block.operations[begin:]:
            if each.name == "store":
                each.operands, each.holds = (*each.operands, p), holds

    def _do_wrap(self, operation: Operation, a: Operand) -> Operand:
        value = operation.arguments[0]
        if isinstance(value, Operation) and value.name == "heap_load" and value.fact(0, int) <= 4:
            return a  # a register has zeros above it already
        return self._do("wrap", (), (a,))

    def _do_boolean_to_i32(self, operation: Operation, p: Operand) -> Operand:
        return self._do("select", (), (p, 1, 0))

    def _do_canonical(self, operation: Operation, a: Operand) -> Operand:
        return self._canonical(operation.fact(0, Type), operation.arguments[0], a)

    def _do_canonicalise(self, operation: Operation, *operands: Operand) -> None:
        t = operation.fact(0, Type)
        given = operation.arguments
        pairs = zip(given[::2], operands[::2], given[1::2], operands[1::2], strict=True)
        for where, address, value, bits in pairs:
            seen = self._canonical(t, value, bits)
            if seen is not bits:
                self._store(Segment.HEAP, address, self._offset(where), seen, t.bits // 8)

    def _do_word(self, operation: Operation) -> Operand:
        return self._load(Segment.STACK, self.frame, WORD_BYTES * operation.fact(0, int))

    def _do_result(self, operation: Operation) -> Operand:
        return self._do_word(operation)

    def _do_static(self, operation: Operation) -> Operand:
        return self._load(Segment.STATICS, 0, WORD_BYTES * operation.fact(0, int))

    def _do_set_static(self, operation: Operation, value: Operand) -> None:
        self._store(Segment.STATICS, 0, WORD_BYTES * operation.fact(0, int), value)

    def _do_static_at(self, operation: Operation, index: Operand) -> Operand:
        return self._load(Segment.STATICS, self._do("shl", (I64,), (index, 3)), 0)

    def _do_set_static_at(self, operation: Operation, index: Operand, value: Operand) -> None:
        self._store(Segment.STATICS, self._do("shl", (I64,), (index, 3)), 0, value)

    def _do_heap_load(self, operation: Operation, address: Operand) -> Operand:
        offset, size = self._offset(operation.arguments[0]), operation.fact(0, int)
        return self._load(Segment.HEAP, address, offset, size, self.footprints.get(operation))

    def _do_heap_store(self, operation: Operation, address: Operand, value: Operand) -> None:
        offset, size = self._offset(operation.arguments[0]), operation.fact(0, int)
        self._store(Segment.HEAP, address, offset, value, size, self.footprints.get(operation))

    def _offset(self, address: Value) -> int:
        """Constant offset of an access."""
        return self.offsets.get(address, 0)

    def _do_heap_pointer(self, operation: Operation) -> Operand:
        return self._read_field("hp")

    def _do_set_heap_pointer(self, operation: Operation, value: Operand) -> None:
        self._write_field("hp", value)

    def _do_heap_capacity(self, operation: Operation) -> Operand:
        return self._read_field("heap_capacity")

    def _do_frame(self, operation: Operation) -> Operand:
        return self.frame

    def _do_stack_limit(self, operation: Operation) -> Operand:
        end, begin = self._read_field("stack_end"), self._read_field("stack")
        return self._do("sub", (I64,), (end, begin))

    def _do_function_field(self, operation: Operation, number: Operand) -> Operand:
        address = self._do("mul", (I64,), (number, WORD_BYTES * DESCRIPTOR_WORDS))
        return self._load(Segment.FUNCTIONS, address, WORD_BYTES * operation.fact(0, int))

    def _do_table_function(self, operation: Operation, index: Operand) -> Operand:
        return self._load(Segment.TABLE, self._do("shl", (I64,), (index, 3)), 0)

    # --- ends of blocks ---------------------------------------------------------------------

    def _end(self, block: Block) -> Block | None:
        """The end of a block; the block to go on with, if nothing else leads there."""
        end = block.end
        self.pc = end.pc
        operands = [self._value(a) for a in end.arguments]
        if end.name == "branch":
            return self._branch(operands[0], *end.edges)
        if end.name == "switch":
            for number, edge in enumerate(end.edges[:-1]):
                p = self._do("compare", (I64, Condition.EQ), (operands[0], number))
                self._exit("exit", p, edge)
            return self._go(end.edges[-1])
        if end.name == "jump":
            return self._go(end.edges[0])
        if end.name == "return":
            self._return(operands)
            return None
        fields: dict[str, Operand] = {}
        if end.name == "trap":
            fields["trap"] = int(end.fact(0, Trap))
        if end.name == "host":
            fields["exit_id"] = end.fact(0, int)
        assert end.state is not None
        self._leave(end.state, _STATUS[end.name], fields)
        return None

    def _branch(self, p: Operand, yes: Edge, no: Edge) -> Block | None:
        # What is joined to this block, or goes round a loop, is not left for.
        if (yes.block in self.blocks) > (no.block in self.blocks) and not yes.is_back:
            self._exit("exit", p, yes)
            return self._go(no)
        if isinstance(p, int):
            return self._go(yes if p else no)
        self._exit("exit_unless", p, no)
        return self._go(yes)

    def _exit(self, name: str, p: Operand, edge: Edge) -> None:
        """Go along an edge if a predicate holds, or does not: by way of a block of its own."""
        here = self.block
        block = MachineBlock(f"{here.label}.{edge.block.label}.{self.code.registers}")
        self._emit(MachineOperation(name, (), (p,), None, None, block))
        self._open(block)
        onward = self._go(edge)
        if onward is not None:
            self.code.blocks.remove(block)
            self.waiting.append((block, onward))
        self.block = here

    def _go(self, edge: Edge) -> Block | None:
        pairs = zip(edge.block.parameters, edge.arguments, strict=True)
        if edge.block not in self.blocks:
            for parameter, argument in pairs:
                self.values[parameter] = self._value(argument)
            return edge.block
        wanted = []
        for parameter, argument in pairs:
            to = self.values[parameter]
            assert isinstance(to, Register)
            wanted.append((to, self._value(argument)))
        self._move(wanted)
        self.reached.add(edge.block)
        self._emit(MachineOperation("jump", target=self.blocks[edge.block]))
        return None

    def _return(self, operands: list[Operand]) -> None:
        if self.number is not None:
            self._store_results(operands, self.body.place_of)
            for operand in operands[:1]:
                self._set(self.calling.result, "move", (), (operand,))
            self._to_caller(has_left=False)
            return
        header = WORD_BYTES * self.parameters
        pc = self._load(Segment.STACK, self.frame, header)
        distance = self._load(Segment.STACK, self.frame, header + WORD_BYTES)
        self._store(Segment.STACK, self.frame, 0, operands[0] if operands else 0)
        self._store_results(operands, lambda number: number)
        at = self._do("shr_u", (I64,), (self.frame, 3))
        self._write_field("pc", pc)
        self._write_field("fp", self._do("sub", (I64,), (self._header(at), distance)))
        self._write_field("sp", self._do("add", (I64,), (at, len(operands))))
        self._write_field("status", int(Status.LEAVE))
        self._emit(MachineOperation("stop"))

    def _store_results(self, operands: list[Operand], place: Callable[[int], int]) -> None:
        """Store all results but the first, each in a word of the frame."""
        for number, operand in enumerate(operands):
            if number:
                self._store(Segment.STACK, self.frame, WORD_BYTES * place(number), operand)


def _added(value: Value) -> int | None:
    """The constant that is added to make a value, if it is so made and the constant is small."""
    if not isinstance(value, Operation) or value.name != "add" or value.static != (I64,):
        return None
    more = value.arguments[1]
    if not isinstance(more, Constant) or abs(signed(I64, more.bits)) > _LARGEST_OFFSET:
        return None
    return more.bits
