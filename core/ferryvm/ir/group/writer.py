# SPDX-License-Identifier: Apache-2.0
"""The code that writes the record of a launch where control leaves a parallel region, as region IR.

    entry ─> head ─> item ─> which barrier ─┬─> piece 1 ─┬─> latch ─> head
               │                            ├─> piece 2 ─┤
               │                            └────────────┘ the item has ended
               └──> done ─┬─────────────> out: record, number and limit of the launch
                          └─> phase ──────┘

It makes the pieces that `ferryvm.machine.barrier` would have made: of items that are still to run,
the lowest one first, and of those that wait, the highest one first, behind a phase. There is room
for them in the object space, which the code has made sure of before the group began. A target
lowers the body as that of a function, and runs it after the words of an exit's state have been
written.
"""

from __future__ import annotations

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Edge,
    Operation,
    Parameter,
    Phase,
    Terminator,
    Value,
)
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
from ferryvm.ir.operation import HEADER, LENGTH, PLACE
from ferryvm.isa.declared_type import PHASE, PIECE, PIECE_BYTES
from ferryvm.isa.element import Element as ArrayElement
from ferryvm.isa.emitter import Condition
from ferryvm.isa.object import ARRAY_HEADER_BYTES, header
from ferryvm.isa.type import FRAME_REFERENCES, I64, LAUNCH, WORD_BYTES

_WORDS = ArrayElement.I64.array.number


def record_body(owner: Body, phase: Phase) -> Body:
    """The body of a function that writes the record of a phase's group; `owner`: the body that
    exits in such a phase, in whose frame it runs. Its parameters are the number of the region, and
    `Phase.values`."""
    group = phase.group
    body = Body(f"record{group.number}", owner.function, group.pc, False, (), owner.parameters)
    _Writer(body, group, [Parameter(value.type) for value in phase.values]).run()
    return body


class _Writer(Builder):
    def __init__(self, body: Body, group: Group, values: list[Parameter]) -> None:
        super().__init__(body.constants)
        self.body, self.group, self.pc = body, group, group.pc
        self.region, self.values = Parameter(I64), values
        self.arrived, self.started, self.items, self.context = values[: ITEMS + 2]

    # --- blocks -----------------------------------------------------------------------------

    def _block(self, name: str, *parameters: Parameter) -> Block:
        block = Block(f"{self.body.name}.{name}", self.group.pc)
        block.parameters = [*parameters]
        self.body.blocks.append(block)
        return block

    def _jump(self, block: Block, *arguments: Value, is_back: bool = False) -> None:
        self.close(Terminator("jump", edges=(Edge(block, [*arguments], is_back),)))

    def _branch(self, p: Value, yes: Edge, no: Edge) -> None:
        self.close(Terminator("branch", (), (p,), None, (yes, no)))

    def _word(self, bits: int) -> Value:
        return self.constant(I64, bits)

    def run(self) -> None:
        """Fill the body."""
        zero = self._word(0)
        entry = self._block("entry", self.region, *self.values)
        count, following, waiting = (Parameter(I64) for _ in range(3))
        head = self._block("head", count, following, waiting)
        item = self._block("item")
        pieces = [self._block(f"piece{n}") for n in range(1, len(self.group.barriers) + 1)]
        made = Parameter(I64)
        latch = self._block("latch", made)
        done, phase = self._block("done"), self._block("phase")
        record = Parameter(I64)
        out = self._block("out", record)

        self.open(entry)
        is_first = self.compare(I64, Condition.EQ, self.region, zero)
        left = self.select(is_first, zero, self.sub(I64, self.items, self.started))
        limit = self.select(is_first, self.items, self.started)
        self._jump(head, zero, zero, zero)

        self.open(head)
        is_more = self.compare(I64, Condition.LT_S, count, self.add(I64, left, self.arrived))
        self._branch(is_more, Edge(item, []), Edge(done, []))

        self.open(item)
        is_left = self.compare(I64, Condition.LT_S, count, left)
        last = self.sub(I64, self.items, self._word(1))
        number = self.select(is_left, self.sub(I64, last, count), self.sub(I64, count, left))
        reached = self.select(is_left, self.region, self._reached(number))
        behind = self.select(is_left, following, waiting)
        edges = [Edge(latch, [behind]), *(Edge(each, []) for each in pieces)]
        self.close(Terminator("switch", (), (reached,), None, tuple(edges)))
        for block, wait in zip(pieces, self.group.barriers, strict=True):
            self.open(block)
            self._jump(latch, self._item(wait, number, behind))

        self.open(latch)
        more = self.add(I64, count, self._word(1))
        onward = self.select(is_left, made, following), self.select(is_left, waiting, made)
        self._jump(head, more, *onward, is_back=True)

        self.open(done)
        is_none = self.all(is_first, self.compare(I64, Condition.EQ, waiting, zero))
        self._branch(is_none, Edge(out, [zero]), Edge(phase, []))

        self.open(phase)
        fields = {"first": self.items, "pc": self._word(PHASE)}
        self._jump(out, self._piece(**fields, next=following, waiting=waiting))

        self.open(out)
        frame = self.invariant("frame", (), (), I64)
        for distance, value in enumerate((record, self.started, limit)):
            place = self._word(self.group.record - distance)
            # The words of the frame are an array of their own, behind the last one.
            static = self.group.context(I64, self.group.slots)
            self.emit(Operation("context_store", None, static, (frame, place, value)))
        self.close(Terminator("return"))

    def _reached(self, number: Value) -> Value:
        """The barrier to which an item came in the region; 0 if it has ended."""
        several = [ends for ends in self.group.ends if len(ends) > 1]
        found: Value = self._word(0)
        if several:
            static = self.group.context(I64, 0)
            found = self.emit(Operation("context_load", I64, static, (self.context, number)))
        for region, ends in enumerate(self.group.ends):
            end = self.group.end_of(region) if ends else None
            if end is not None:
                is_region = self.compare(I64, Condition.EQ, self.region, self._word(region))
                found = self.select(is_region, self._word(end), found)
        return found

    # --- pieces -----------------------------------------------------------------------------

    def _item(self, wait: Wait, number: Value, behind: Value) -> Value:
        """The piece of an item that waits, in front of others."""
        known: dict[Source, Value] = {}
        slots = []
        for source in wait.words:
            value = self._value(source, number, known)
            slots.append(self.to_slot(value.word_type, value))
        words = self._array(
            _WORDS,
            ArrayElement.I64,
            [self._word(0) if n in wait.references else slot for n, slot in enumerate(slots)],
        )
        held = [slots[n] for n in wait.references]
        references = self._array(FRAME_REFERENCES.number, FRAME_REFERENCES.number, held)
        return self._piece(
            first=number,
            end=self.add(I64, number, self._word(1)),
            pc=self._word(wait.pc),
            frame=self._word(wait.frame),
            words=words,
            references=references,
            next=behind,
        )

    def _value(self, source: Source, number: Value, known: dict[Source, Value]) -> Value:
        if source not in known:
            known[source] = self._computed(source, number, known)
        return known[source]

    def _computed(self, source: Source, number: Value, known: dict[Source, Value]) -> Value:
        match source:
            case Literal():
                return self.constant(BOOLEAN if source.type is None else source.type, source.bits)
            case Shared():
                return self.values[source.place]
            case ItemNumber():
                return number
            case Element():
                size = self.mul(I64, self.items, self._word(ARRAY_STRIDE * source.slot))
                place = self.add(I64, self.context, size), number
                static = self.group.context(source.type, source.slot)
                return self.emit(Operation("context_load", source.type, static, place))
            case Computed():
                operands = tuple([self._value(each, number, known) for each in source.operands])
                t = BOOLEAN if source.type is None else source.type
                return self.pure(source.name, source.static, operands, t)

    def _object(self, type_: int, size: int) -> Value:
        made = self.emit(Operation("object_top", I64))
        self._change("set_object_top", (), self.add(I64, made, self._word(size)))
        self._change("set_header_word", (HEADER,), made, self._word(header(type_)))
        return made

    def _change(self, name: str, static: tuple[object, ...], *arguments: Value) -> None:
        self.emit(Operation(name, None, static, arguments))

    def _array(self, type_: int, elements: ArrayElement | int, values: list[Value]) -> Value:
        made = self._object(type_, ARRAY_HEADER_BYTES + WORD_BYTES * len(values))
        place = self.add(I64, made, self._word(ARRAY_HEADER_BYTES))
        self._change("set_header_word", (LENGTH,), made, self._word(len(values)))
        self._change("set_header_word", (PLACE,), made, place)
        for number, value in enumerate(values):
            offset = self._word(WORD_BYTES * number)
            self._change("element_store", (elements,), place, offset, value)
        return made

    def _piece(self, **fields: Value) -> Value:
        made = self._object(LAUNCH.number, PIECE_BYTES)
        for number, field in enumerate(PIECE.fields):
            value = fields.get(field.name, self._word(0))
            self._change("field_store", (LAUNCH.number, number), made, value)
        return made
