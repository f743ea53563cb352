# SPDX-License-Identifier: Apache-2.0
"""Bodies of the region IR as extended basic blocks of the machine's code.

A block with one predecessor is appended to it. So the other blocks are entered only at their top,
and left by exits in the middle.

The machine's float operations yield the canonical NaN, so most of `canonical` needs no code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from ferryvm.ir.loop.natural import find_loops
from ferryvm.ir.operation import PURE
from ferryvm.ir.rule import Rules
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64, WORD_BYTES, signed
from ferryvm.machine.control import Status
from ferryvm_backends.vliw.code.if_conversion import Predicates
from ferryvm_backends.vliw.code.lower.access import Access
from ferryvm_backends.vliw.code.lower.call import Calls
from ferryvm_backends.vliw.code.lower.emission import Emission
from ferryvm_backends.vliw.code.lower.object import Objects
from ferryvm_backends.vliw.code.lower.returns import Calling, RecordCode, Returns
from ferryvm_backends.vliw.code.lower.side_exit import CALLS_BYTES, SideExits
from ferryvm_backends.vliw.code.operation import (
    AccessingItem,
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
_ITEM_ACCESSES = frozenset(
    {
        *("element_load", "element_store", "canonicalise_elements"),
        *("context_load", "context_store"),
    }
)
"""Accesses that no other item of a launch conflicts with. Atomic updates are none, and
instructions on many elements are loops of their own."""
_LARGEST_OFFSET = 1 << 31
"""The magnitude limit of offsets in accesses: two accesses with the same base and disjoint offsets
do not overlap."""


def lower(module: Module, predicates: Predicates) -> MachineCode:
    """The code of a region; `predicates`: of some of its stores."""
    code = MachineCode(module.name, [], tuple(module.guards))
    calling = Calling(module, code)
    bodies: list[tuple[int | None, Body]] = [(None, module.root), *module.functions.items()]
    lowerings = [_BodyLowering(b, code, calling, n, module, predicates) for n, b in bodies]
    for each in lowerings:
        each.run()
    for record in calling.records.values():
        made = _BodyLowering(record.body, code, calling, record.owner, module, {}, record)
        made.run()
        lowerings.append(made)
    for each in lowerings:
        each.returns.finish()
    code.call_bytes = CALLS_BYTES + calling.size
    return code


class _BodyLowering:
    """Lowers blocks and their ends."""

    def __init__(
        self,
        body: Body,
        code: MachineCode,
        calling: Calling,
        number: int | None,
        module: Module,
        predicates: Predicates,
        record: RecordCode | None = None,
    ) -> None:
        """`number`: of the function; None for the region's own body. `record`: it is the code at
        exits of that function."""
        footprints = module.footprints
        self.body, self.calling, self.number = body, calling, number
        self.predicates, self.record = predicates, record
        self.emission = Emission(code, calling.frame, calling.base, body.parameters)
        self.incoming = edges_to(body)
        self.loops: dict[Block, frozenset[Block]] = {}
        """The blocks of the innermost loop around each block that is in one."""
        self.launches: dict[Block, int] = {}
        """The blocks whose innermost loop is over the items of a launch, each with the pc of its
        head."""
        for loop in reversed(find_loops(body)):
            members = frozenset(loop.members)
            self.loops.update(dict.fromkeys(members, members))
            head = loop.header.pc if loop.header.pc in module.launches else -1
            self.launches.update(dict.fromkeys(members, head))
        self.groups = module.groups
        self.blocks: dict[Block, MachineBlock] = {}
        """The machine block of each block that has one."""
        self.offsets = {
            value: signed(I64, bits)
            for value in accessed(body)
            if (bits := _added(value)) is not None
        }
        """Addresses that are a value and a constant, and needed only for accesses: they are never
        computed, for the machine adds the constant itself."""
        self.returns = Returns(self.emission, calling, number)
        self.exits = SideExits(self.emission, self.returns, body)
        access = Access(self.emission, footprints, self.offsets)
        objects = Objects(self.emission, self.exits, footprints, self.offsets)
        calls = Calls(self.emission, self.exits, calling, body)
        self.rules = Rules(access, objects, self.exits, calls)
        self.reached: set[Block] = set()
        """The reachable blocks, with constant branches folded."""
        self.worklist: list[tuple[MachineBlock, Block]] = []
        """Blocks whose only predecessor is an exit, and their targets."""

    def run(self) -> None:
        entry = self.body.blocks[0]
        self.reached.add(entry)
        self.blocks[entry] = MachineBlock(entry.label)
        given: Sequence[Register] = ()
        if self.record is not None:
            self.blocks[entry], given = self.record.entry, self.record.parameters
        elif self.number is not None:
            self.blocks[entry] = self.calling.entries[self.number]
            given = self.calling.parameters[self.number]
        # Values are defined before they are used in the order of the body's blocks.
        for block in self.body.blocks:
            if len(self.incoming[block]) > 1 or any(e.is_back for e in self.incoming[block]):
                self.blocks[block] = MachineBlock(block.label)
        for block in self.body.blocks:
            if block is entry and given:
                self.emission.values.update(zip(block.parameters, given, strict=True))
            elif block in self.blocks:
                for parameter in block.parameters:
                    self.emission.values[parameter] = self.emission.register(parameter)
        for block in self.body.blocks:
            found = self.blocks.get(block)
            if block in self.reached:
                assert found is not None
                self.emission.open(found)
                if block is entry and self.number is None and self.record is None:
                    first = self.emission.read_field("fp")
                    if self.emission.parameters:
                        first = self.emission.compute(
                            "sub", (I64,), (first, self.emission.parameters)
                        )
                    self.emission.set(self.emission.frame, "shl", (I64,), (first, 3))
                    self.emission.set(self.emission.base, "move", (), (0,))
                self._inline(block)
                while self.worklist:
                    at, onward = self.worklist.pop()
                    self.emission.open(at)
                    self._inline(onward)
        self.emission.code.blocks += self.emission.cold

    def _inline(self, block: Block | None) -> None:
        """A block, and the following blocks of which it is the only predecessor."""
        while block is not None:
            for operation in block.operations:
                self.emission.pc = operation.pc
                self.emission.item = self._item(block, operation)
                self._operation(operation)
            block = self._end(block)

    # --- operations -------------------------------------------------------------------------

    def _item(self, block: Block, operation: Operation) -> AccessingItem | None:
        """The item that an operation of a block accesses elements for."""
        if operation.name not in _ITEM_ACCESSES:
            return None
        around, own = self.launches.get(block, -1), operation.item
        of_iteration = around >= 0
        if operation.name in ("context_load", "context_store"):
            # All groups have their context arrays in the same place.
            of_iteration = around == self.groups[operation.fact(1, int)].pc
        if own is None:
            return AccessingItem(0, 0, True) if of_iteration else None
        return AccessingItem(own.loop, own.number, of_iteration)

    def _operation(self, operation: Operation) -> None:
        if operation in self.offsets:
            self.emission.values[operation] = self.emission.value(
                operation.arguments[0]
            )  # its base
            return
        operands = tuple(self.emission.value(a) for a in operation.arguments)
        start = len(self.emission.block.operations)
        rule = self.rules.get(operation.name)
        if rule is not None:
            result = rule(operation, *operands)
        elif operation.name in _SAME:
            result = operands[0]
        else:
            assert operation.name in PURE, operation.name
            result = self.emission.compute(operation.name, operation.static, operands)
        if operation.type is not None:
            self.emission.values[operation] = result
        if operation in self.predicates:
            self._depend(start, *self.predicates[operation])

    def _depend(self, start: int, predicate: Value, holds: bool) -> None:
        """Predicate the stores of one operation."""
        p = self.emission.value(predicate)
        assert isinstance(p, Register)
        for each in self.emission.block.operations[start:]:
            if each.name == "store":
                each.operands, each.holds = (*each.operands, p), holds

    # --- ends of blocks ---------------------------------------------------------------------

    def _end(self, block: Block) -> Block | None:
        """The terminator of a block; the block to continue with, if this is its only
        predecessor."""
        end = block.end
        self.emission.pc = end.pc
        operands = [self.emission.value(a) for a in end.arguments]
        if end.name == "branch":
            return self._branch(block, operands[0], *end.edges)
        if end.name == "switch":
            for number, edge in enumerate(end.edges[:-1]):
                p = self.emission.compute("compare", (I64, Condition.EQ), (operands[0], number))
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
        self.exits.leave(end.state, _STATUS[end.name], fields)
        return None

    def _branch(self, block: Block, p: Operand, yes: Edge, no: Edge) -> Block | None:
        # Loops are left by exits, so that a loop is one block; joins and back edges are not.
        leaves = self._leaves_loop(block, yes)
        is_join = (yes.block in self.blocks) > (no.block in self.blocks) and not yes.is_back
        if leaves > self._leaves_loop(block, no) or (
            is_join and leaves == self._leaves_loop(block, no)
        ):
            self._exit("exit", p, yes)
            return self._go(no)
        if isinstance(p, int):
            return self._go(yes if p else no)
        self._exit("exit_unless", p, no)
        return self._go(yes)

    def _leaves_loop(self, block: Block, edge: Edge) -> bool:
        """True if an edge leads out of the innermost loop around its block."""
        loop = self.loops.get(block)
        return loop is not None and edge.block not in loop

    def _exit(self, name: str, p: Operand, edge: Edge) -> None:
        """Take an edge if a predicate has a value, through a block of its own."""
        here = self.emission.block
        block = MachineBlock(f"{here.label}.{edge.block.label}.{self.emission.code.registers}")
        self.emission.emit(MachineOperation(name, (), (p,), None, None, block))
        self.emission.open(block)
        onward = self._go(edge)
        if onward is not None:
            self.emission.code.blocks.remove(block)
            self.worklist.append((block, onward))
        self.emission.block = here

    def _go(self, edge: Edge) -> Block | None:
        pairs = zip(edge.block.parameters, edge.arguments, strict=True)
        if edge.block not in self.blocks:
            for parameter, argument in pairs:
                self.emission.values[parameter] = self.emission.value(argument)
            return edge.block
        wanted = []
        for parameter, argument in pairs:
            to = self.emission.values[parameter]
            assert isinstance(to, Register)
            wanted.append((to, self.emission.value(argument)))
        self.emission.move(wanted)
        self.reached.add(edge.block)
        self.emission.emit(MachineOperation("jump", target=self.blocks[edge.block]))
        return None

    def _return(self, operands: list[Operand]) -> None:
        if self.record is not None:
            self.returns.stop()
            return
        if self.number is not None:
            self._store_results(operands, self.body.place_of)
            for operand in operands[:1]:
                self.emission.set(self.calling.result, "move", (), (operand,))
            self.returns.to_caller(has_exited=False)
            return
        header = WORD_BYTES * self.emission.parameters
        pc = self.emission.load(Segment.STACK, self.emission.frame, header)
        distance = self.emission.load(Segment.STACK, self.emission.frame, header + WORD_BYTES)
        self.emission.store(Segment.STACK, self.emission.frame, 0, operands[0] if operands else 0)
        self._store_results(operands, lambda number: number)
        at = self.emission.compute("shr_u", (I64,), (self.emission.frame, 3))
        self.emission.write_field("pc", pc)
        self.emission.write_field(
            "fp", self.emission.compute("sub", (I64,), (self.emission.header(at), distance))
        )
        self.emission.write_field("sp", self.emission.compute("add", (I64,), (at, len(operands))))
        self.emission.write_field("status", int(Status.LEAVE))
        self.emission.emit(MachineOperation("stop"))

    def _store_results(self, operands: list[Operand], place: Callable[[int], int]) -> None:
        """Store all results but the first, each in a word of the frame."""
        for number, operand in enumerate(operands):
            if number:
                self.emission.store(
                    Segment.STACK, self.emission.frame, WORD_BYTES * place(number), operand
                )


def _added(value: Value) -> int | None:
    """The constant that is added to make a value, if it is so made and the constant is small."""
    if not isinstance(value, Operation) or value.name != "add" or value.static != (I64,):
        return None
    more = value.arguments[1]
    if not isinstance(more, Constant) or abs(signed(I64, more.bits)) > _LARGEST_OFFSET:
        return None
    return more.bits
