# SPDX-License-Identifier: Apache-2.0
"""The record of a launch, written where control leaves a parallel region (`ferryvm.ir.group`).

    exit: frames, registers ──┐
    exit: frames, registers ──┼─> one block for all exits of a group ─> record(…) ─> return
    …                       ──┘

One cold function for each group makes the pieces, as `ferryvm.machine.barrier` would have: those of items
that are still to run, with a phase in front where items wait. There is room for them in the object space,
which the code has made sure of before the group began.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ferryvm.ir.graph import Boolean, Phase, ValueType
from ferryvm.ir.group.record import (
    ARRAY_STRIDE,
    ITEMS,
    Computed,
    Element,
    Group,
    ItemNumber,
    Literal,
    Shared,
    Source,
    Wait,
)
from ferryvm.isa.element import Element as ArrayElement
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import FRAME_REFERENCES, I64, WORD_BYTES
from ferryvm.machine.piece import PHASE
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import I1, LLVM_TYPE, WORD, StraightLineArithmetic, word
from ferryvm_backends._llvm.handler import POINTER
from ferryvm_backends._llvm.piece_code import PieceCode
from ferryvm_backends.llvm.function import FunctionContext

_COLD = ("nounwind", "noinline", "cold", "optnone", '"no-builtins"')
_STORED = 0
"""The context array of the barriers to which items came."""


class GroupRecords:
    """The blocks of one native function in which exits of groups come together."""

    def __init__(self, function: FunctionContext) -> None:
        self.function, self.builder = function, function.builder
        self._blocks: dict[tuple[object, ...], tuple[ir.Block, list[ir.PhiInstr]]] = {}

    def leave(
        self,
        phase: Phase,
        values: Sequence[ir.Value],
        status: ir.Value,
        finish: Callable[[ir.Value], None],
    ) -> None:
        """End the block: write the record of a phase with these values, and return by `finish`, which gets
        the status and is called once for all exits."""
        key = phase.group, *phase.values[ITEMS:]
        here, found = self.builder.block, self._blocks.get(key)
        own = [word(phase.region), *values, status]  # an exit may compute what items share
        if found is None:
            block = self.function.block(f"record{phase.group.number}")
            self.builder.position_at_end(block)
            found = self._blocks[key] = block, [self.builder.phi(each.type) for each in own]
            phis = found[1]
            frame = self.function.frame
            arguments = [self.function.control, frame, *phis[:-1]]
            self.builder.call(self._writer(phase), arguments)
            finish(phis[-1])
            self.builder.position_at_end(here)
        block, phis = found
        for phi, value in zip(phis, own, strict=True):
            phi.add_incoming(value, here)
        self.builder.branch(block)

    def _writer(self, phase: Phase) -> ir.Function:
        """The function that writes the record of a group."""
        shared = self.function.shared
        if phase.group not in shared.records:
            types = [value.type for value in phase.values[ITEMS + 1 :]]
            shared.records[phase.group] = _define(shared.native, phase.group, types)
        return shared.records[phase.group]


def _native(t: ValueType) -> ir.Type:
    return I1 if isinstance(t, Boolean) else LLVM_TYPE[t]


def _function(
    module: ir.Module, name: str, result: ir.Type, parameters: Sequence[ir.Type]
) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(result, [*parameters]), name)
    function.linkage = "internal"
    for attribute in _COLD:
        function.attributes.add(attribute)
    return function


def _define(module: ir.Module, group: Group, types: Sequence[ValueType]) -> ir.Function:
    """Add the functions of a group; `types`: of the address of the context arrays, and of what items
    share."""
    natives = [_native(t) for t in types]
    name = f"record{group.number}"
    item = _function(module, f"{name}.item", WORD, [WORD] * 5 + natives)
    _Item(item, group).build()
    function = _function(module, name, ir.VoidType(), [POINTER] + [WORD] * 5 + natives)
    _Record(function, group, item).build()
    return function


class _Item(PieceCode):
    """The piece of an item that waits: control block, its number, the number of the barrier, items, the
    piece that follows."""

    def __init__(self, function: ir.Function, group: Group) -> None:
        super().__init__(function)
        self.group = group
        self.control, self.item, self.barrier, self.items, self.following, *rest = function.args
        self.context, self.shared = rest[0], [self.items, *rest]
        self.arithmetic = StraightLineArithmetic(self.builder)

    def build(self) -> None:
        """Emit the function."""
        builder, start = self.builder, self.builder.block
        blocks = [
            self.function.append_basic_block(f"wait{n}") for n in range(len(self.group.barriers))
        ]
        builder.position_at_end(start)
        switch = builder.switch(self.barrier, blocks[0])
        for number, (block, wait) in enumerate(zip(blocks, self.group.barriers, strict=True), 1):
            if number > 1:
                switch.add_case(word(number), block)
            builder.position_at_end(block)
            self._found: dict[Source, ir.Value] = {}
            builder.ret(self._piece(wait))

    def _piece(self, wait: Wait) -> ir.Value:
        slots = [self._slot(source) for source in wait.words]
        words, place = self._array(ArrayElement.I64.array.number, word(len(slots)))
        for number, slot in enumerate(slots):
            is_held = number in wait.references
            self.put(word(0) if is_held else slot, place, WORD_BYTES * number)
        held, place = self._array(FRAME_REFERENCES.number, word(len(wait.references)))
        for number, reference in enumerate(wait.references):
            self.put(slots[reference], place, WORD_BYTES * number)
        return self.make_piece(
            first=self.item,
            end=self.builder.add(self.item, word(1)),
            pc=word(wait.pc),
            frame=word(wait.frame),
            words=words,
            references=held,
            next=self.following,
        )

    def _slot(self, source: Source) -> ir.Value:
        t = I64 if isinstance(source, ItemNumber) else source.type
        assert t is not None
        return self.arithmetic.to_slot(t, self._value(source))

    def _value(self, source: Source) -> ir.Value:
        if source not in self._found:
            self._found[source] = self._computed(source)
        return self._found[source]

    def _computed(self, source: Source) -> ir.Value:
        match source:
            case Literal():
                if source.type is None:
                    return ir.Constant(I1, source.bits)
                return self.arithmetic.constant(source.type, source.bits)
            case Shared():
                return self.shared[source.place - ITEMS]
            case ItemNumber():
                return self.item
            case Element():
                return self._element(source)
            case Computed():
                operands = [self._value(each) for each in source.operands]
                if source.name == "canonical":  # the table's operations have no such one
                    assert source.type is not None
                    return canonical(self.arithmetic, source.type, operands[0])
                emit = getattr(self.arithmetic, source.name)
                result: ir.Value = emit(*source.static, *operands)
                return result

    def _element(self, source: Element) -> ir.Value:
        builder, t = self.builder, source.type
        array = builder.mul(self.items, word(ARRAY_STRIDE * source.slot))
        at = builder.add(self.context, array)
        at = builder.add(at, builder.mul(self.item, word(t.bits // 8)))
        return builder.load(builder.inttoptr(at, POINTER), align=t.bits // 8, typ=LLVM_TYPE[t])


class _Record(PieceCode):
    """The record: control block, frame, region, items that have arrived, that have started, and all; context
    arrays, what items share."""

    def __init__(self, function: ir.Function, group: Group, item: ir.Function) -> None:
        super().__init__(function)
        self.group, self._item = group, item
        pointer, self.frame, self.region, self.arrived, self.started, self.items, *self.rest = (
            function.args
        )
        self.control = self.builder.ptrtoint(pointer, WORD)

    def build(self) -> None:
        """Emit the function."""
        builder = self.builder
        following, waiting = self.variable(word(0)), self.variable(word(0))
        is_first = self.is_zero(self.region)
        with builder.if_then(builder.not_(is_first)):
            left = self.variable(self.items)
            with self.while_(lambda: builder.icmp_signed(">", builder.load(left), self.started)):
                builder.store(builder.sub(builder.load(left), word(1)), left)
                self._add(following, builder.load(left), self.region)
        with self.each(self.arrived) as number:
            barrier = self._barrier(number)
            with builder.if_then(builder.not_(self.is_zero(barrier))):
                self._add(waiting, number, barrier)
        record = self.variable(word(0))
        is_phase = builder.or_(
            builder.not_(is_first), builder.not_(self.is_zero(builder.load(waiting)))
        )
        with builder.if_then(is_phase):
            phase = self.make_piece(
                first=self.items,
                pc=word(PHASE),
                next=builder.load(following),
                waiting=builder.load(waiting),
            )
            builder.store(phase, record)
        at = builder.add(self.frame, word(WORD_BYTES * self.group.record))
        limit = builder.select(is_first, self.items, self.started)
        for distance, value in enumerate((builder.load(record), self.started, limit)):
            self.put(value, builder.sub(at, word(WORD_BYTES * distance)))
        builder.ret_void()

    def _add(self, pieces: ir.Place, item: ir.Value, barrier: ir.Value) -> None:
        """Put the piece of an item in front of others."""
        builder = self.builder
        arguments = [self.control, item, barrier, self.items, builder.load(pieces), *self.rest]
        builder.store(builder.call(self._item, arguments), pieces)

    def _barrier(self, item: ir.Value) -> ir.Value:
        """The barrier to which an item came in the region; 0 if it has ended."""
        builder, stored = self.builder, word(PHASE)
        found: ir.Value = stored
        for region in range(len(self.group.ends)):
            end = self.group.end_of(region) if self.group.ends[region] else None
            if end is not None:
                is_region = builder.icmp_unsigned("==", self.region, word(region))
                found = builder.select(is_region, word(end), found)
        result = self.variable(found)
        with builder.if_then(builder.icmp_unsigned("==", found, stored)):
            own = self.at(self.element(self.rest[_STORED], item))
            builder.store(own, result)
        return builder.load(result)
