# SPDX-License-Identifier: Apache-2.0
"""Items that wait at barriers, without Python: the native counterpart of `ferryvm.machine.barrier`.

Both functions take the addresses of a `MapAddresses` and of a `ControlBlock`, and return an
`ItemOutcome`. What is not plain they leave to Python, and have changed nothing then: items that do
not wait at one place, or came there out of order, and where there is no room.
"""

from __future__ import annotations

from ferryvm.isa.declared_type import PHASE
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.item_map import BARRIER_MARK, ItemOutcome, MapAddresses
from ferryvm.region.launch import CALL_DISTANCE
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.piece_code import PieceCode

ENDED = 3
"""The outcome of `define_begin_phase` where all items have ended: there is no record any more."""


def define_wait(module: ir.Module, name: str) -> ir.Function:
    """Add a function that makes the item at whose barrier a machine stands wait, as `wait` does."""
    function = _function(module, name)
    _Wait(function).build()
    return function


def define_begin_phase(module: ir.Module, name: str) -> ir.Function:
    """Add a function that makes room to take a piece from the phase at which a machine stands, and
    lets items go on that all wait, as `begin_phase` does; or returns `ENDED`."""
    function = _function(module, name)
    _BeginPhase(function).build()
    return function


def _function(module: ir.Module, name: str) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(WORD, [WORD, WORD]), name)
    function.linkage = "private"
    # A loop that copies a few words is not to become a call of memcpy.
    function.attributes |= {"nounwind", '"no-builtins"'}
    return function


class _Wait(PieceCode):
    def __init__(self, function: ir.Function) -> None:
        super().__init__(function)
        self.map, self.control = function.args

    def build(self) -> None:
        """Emit the function."""
        builder = self.builder
        pc, sp, fp, stack = (self.get(name) for name in ("pc", "sp", "fp", "stack"))
        outermost, test, parameters = self._outermost(stack, fp)
        start = builder.sub(outermost, parameters)
        size, frame = builder.sub(sp, start), builder.sub(fp, start)
        self.return_if_large(size)
        at = self.element(stack, start)
        count = self.references(at, pc, frame)
        self.return_unless_fits(word(2), builder.add(size, count))

        operands = builder.sub(at, word(WORD_BYTES * LAUNCH_WORDS))
        limit, next_, record = (self.at(operands, WORD_BYTES * n) for n in range(LAUNCH_WORDS))
        items, others, waiting = (self.variable(v) for v in (limit, word(0), word(0)))
        with builder.if_then(builder.not_(self.is_zero(record))):
            front = self.piece(record)
            is_other = builder.icmp_unsigned("!=", front["pc"], word(PHASE))
            self.return_if(is_other, ItemOutcome.REFUSED)
            builder.store(front["first"], items)
            builder.store(front["next"], others)
            builder.store(front["waiting"], waiting)

        item, place = self.make_item(
            at,
            size,
            count,
            item=builder.sub(next_, word(1)),
            pc=pc,
            frame=frame,
            following=builder.load(waiting),
        )
        self.put(word(1), self.element(place, builder.sub(size, word(1))))
        phase = self.make_piece(
            first=builder.load(items), pc=word(PHASE), next=builder.load(others), waiting=item
        )
        self.put(phase, operands, WORD_BYTES * (LAUNCH_WORDS - 1))
        self.set("pc", test)
        self.set("sp", start)
        self.set("fp", builder.sub(outermost, self.at(self.element(stack, outermost), WORD_BYTES)))
        builder.ret(word(ItemOutcome.DONE))

    def _outermost(self, stack: ir.Value, fp: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
        """The word of the header of the item's outermost frame, the pc of the `launch.test` of its
        launch, and the parameters of its function."""
        builder = self.builder
        frame, test, found = self.variable(fp), self.variable(word(0)), self.variable(word(0))
        with self.while_(lambda: self.is_zero(builder.load(found))):
            header = self.element(stack, builder.load(frame))
            distance = self.at(header, WORD_BYTES)
            self.return_if(self.is_zero(distance), ItemOutcome.REFUSED)
            call = builder.sub(self.at(header), word(1))
            is_first = builder.icmp_unsigned("<", call, word(CALL_DISTANCE))
            self.return_if(is_first, ItemOutcome.REFUSED)
            builder.store(builder.sub(call, word(CALL_DISTANCE)), test)
            # The map has all launches of the program where it has a barrier.
            builder.store(self._launch(builder.load(test)), found)
            with builder.if_then(self.is_zero(builder.load(found))):
                self.known("calls", call)  # a call within the item, as Python has seen it
                builder.store(builder.sub(builder.load(frame), distance), frame)
        return builder.load(frame), builder.load(test), builder.sub(builder.load(found), word(1))

    def _launch(self, test: ir.Value) -> ir.Value:
        """The parameters of the items' function plus 1, if a `launch.test` is there; else 0."""
        builder = self.builder
        word_ = self.at(self.element(self.at(self.map, MapAddresses.launches.offset), test))
        is_barrier = builder.icmp_unsigned("==", word_, word(BARRIER_MARK))
        return builder.select(is_barrier, word(0), word_)


class _BeginPhase(PieceCode):
    def __init__(self, function: ir.Function) -> None:
        super().__init__(function)
        self.map, self.control = function.args

    def build(self) -> None:
        """Emit the function."""
        builder = self.builder
        at = builder.sub(self.element(self.get("stack"), self.get("sp")), word(WORD_BYTES))
        front = self.piece(self.at(at))
        with builder.if_then(builder.not_(self.is_zero(front["next"]))):
            self.return_unless_fits(word(1), word(0))
            builder.ret(word(ItemOutcome.DONE))
        with builder.if_then(self.is_zero(front["waiting"])):
            self.put(word(0), at)
            builder.ret(word(ENDED))
        self._compare(front)
        # The phase, a phase in front of the piece that is taken next, and a piece for each item.
        self.return_unless_fits(builder.add(front["first"], word(2)), word(0))
        reference, following = self.variable(front["waiting"]), self.variable(word(0))
        with self.while_(lambda: builder.not_(self.is_zero(builder.load(reference)))):
            fields = self.piece(builder.load(reference))
            builder.store(fields["next"], reference)
            builder.store(self.make_piece(**fields | {"next": builder.load(following)}), following)
        phase = self.make_piece(first=front["first"], pc=word(PHASE), next=builder.load(following))
        self.put(phase, at)
        builder.ret(word(ItemOutcome.DONE))

    def _compare(self, front: dict[str, ir.Value]) -> None:
        """Return unless all items wait at one place, in descending order."""
        builder = self.builder
        first = self.piece(front["waiting"])
        size, words = self.elements(first["words"])
        reference, left = self.variable(front["waiting"]), self.variable(front["first"])
        with self.while_(lambda: builder.not_(self.is_zero(builder.load(reference)))):
            piece = self.piece(builder.load(reference))
            builder.store(builder.sub(builder.load(left), word(1)), left)
            own_size, own_words = self.elements(piece["words"])
            pairs = (
                (piece["first"], builder.load(left)),
                (piece["pc"], first["pc"]),
                (piece["frame"], first["frame"]),
                (own_size, size),
            )
            for one, other in pairs:
                self.return_if(builder.icmp_unsigned("!=", one, other), ItemOutcome.REFUSED)

            def compare(fp: ir.Value, _: ir.Value | None, own: ir.Value = own_words) -> None:
                for number in range(HEADER_WORDS):
                    one, other = (
                        self.at(self.element(each, fp), WORD_BYTES * number)
                        for each in (words, own)
                    )
                    self.return_if(builder.icmp_unsigned("!=", one, other), ItemOutcome.REFUSED)

            self.frames(words, first["frame"], compare)
            builder.store(piece["next"], reference)
        self.return_if(builder.not_(self.is_zero(builder.load(left))), ItemOutcome.REFUSED)
