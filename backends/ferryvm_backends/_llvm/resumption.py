# SPDX-License-Identifier: Apache-2.0
"""Suspended items resumed by an interpreter without Python: `ferryvm.machine.item_map.RESUME`.

    LAUNCH ──> the first piece ──> operands, stack, registers ──> interpreter ──> LAUNCH ──> …
                   └─ Python is needed ──> return                     └─ any other status ──> return

It does what `ferryvm.machine.launch.continue_launch` does, to the bit; a piece that this would refuse,
or whose frames it does not know, it leaves as it is. Until it is sure, it has written nothing but
words above the operands, which belong to no frame.
"""

from __future__ import annotations

from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.object import LENGTH_OFFSET, PLACE_OFFSET, STRUCT_HEADER_BYTES
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.item_map import ROW_WORDS, MapAddresses, ResumptionOutcome
from ferryvm.machine.piece import PHASE, Piece
from ferryvm.region.launch import CALL_DISTANCE
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.environment import enter
from ferryvm_backends._llvm.handler import INT32, POINTER
from ferryvm_backends._llvm.word_code import WordCode


def define_resume(module: ir.Module, name: str, run: ir.Function) -> None:
    """Add the function for an interpreter whose entry is `run`; it may be called in any floating-point
    environment."""
    signature = ir.FunctionType(WORD, [POINTER, POINTER])
    resume = ir.Function(module, signature, f"{name}.items")
    resume.linkage = "private"
    # A loop that copies a few words is not to become a call of memcpy.
    resume.attributes |= {"nounwind", '"no-builtins"'}
    _Resume(resume, run).build()
    function = ir.Function(module, signature, name)
    builder = ir.IRBuilder(function.append_basic_block())
    restore = enter(module, builder)
    outcome = builder.call(resume, function.args)
    restore()
    builder.ret(outcome)


class _Resume(WordCode):
    def __init__(self, function: ir.Function, run: ir.Function) -> None:
        super().__init__(function)
        self._map, self._pointer = function.args
        self._control = self.builder.ptrtoint(self._pointer, WORD)
        self._run = run

    def build(self) -> None:
        """Emit the function."""
        builder = self.builder
        again = self.function.append_basic_block("again")
        builder.branch(again)
        builder.position_at_end(again)
        interrupt = builder.load_atomic(self._half("interrupt"), "monotonic", 4, typ=INT32)
        is_set = builder.icmp_unsigned("!=", interrupt, ir.Constant(INT32, 0))
        self._return_if(is_set, ResumptionOutcome.REFUSED)
        self._take()
        builder.store(ir.Constant(INT32, int(Status.RUNNING)), self._half("status"), align=4)
        builder.call(self._run, [self._pointer])
        status = builder.load(self._half("status"), typ=INT32, align=4)
        launch = ir.Constant(INT32, int(Status.LAUNCH))
        self._return_if(builder.icmp_unsigned("!=", status, launch), ResumptionOutcome.DONE)
        builder.branch(again)

    # --- memory -----------------------------------------------------------------------------

    def _half(self, name: str) -> ir.Value:
        """The address of a half word of the control block."""
        offset: int = getattr(ControlBlock, name).offset
        return self.builder.inttoptr(self.builder.add(self._control, word(offset)), POINTER)

    def _get(self, name: str) -> ir.Value:
        return self.at(self._control, getattr(ControlBlock, name).offset)

    def _set(self, name: str, value: ir.Value) -> None:
        self.put(value, self._control, getattr(ControlBlock, name).offset)

    def _known(self, table: str, pc: ir.Value) -> ir.Value:
        """The word of a pc in a table of the map; returns where there is none."""
        map_ = self.builder.ptrtoint(self._map, WORD)
        fields = MapAddresses
        is_past = self.builder.icmp_unsigned(">=", pc, self.at(map_, fields.pc_count.offset))
        self._return_if(is_past, ResumptionOutcome.REFUSED)
        found = self.at(self.element(self.at(map_, getattr(fields, table).offset), pc))
        self._return_if(self._is_zero(found), ResumptionOutcome.UNKNOWN)
        return found

    def _is_zero(self, value: ir.Value) -> ir.Value:
        return self.builder.icmp_unsigned("==", value, word(0))

    def _return_if(self, p: ir.Value, outcome: ResumptionOutcome) -> None:
        with self.builder.if_then(p, likely=False):
            self.builder.ret(word(outcome))

    # --- a piece ----------------------------------------------------------------------------

    def _take(self) -> None:
        """Take the first piece; returns from the function where Python has to."""
        builder = self.builder
        pc, sp = self._get("pc"), self._get("sp")
        parameters = builder.sub(self._known("launches", pc), word(1))
        operands = builder.sub(
            self.element(self._get("stack"), sp), word(WORD_BYTES * LAUNCH_WORDS)
        )
        record = self.at(operands, 2 * WORD_BYTES)
        is_left = builder.icmp_signed("<", self.at(operands, WORD_BYTES), self.at(operands))
        self._return_if(builder.or_(self._is_zero(record), is_left), ResumptionOutcome.REFUSED)
        piece = self._piece(record)
        is_phase = builder.icmp_unsigned("==", piece["pc"], word(PHASE))
        self._return_if(is_phase, ResumptionOutcome.REFUSED)
        limit, next_, following = (self.variable(piece[name]) for name in ("end", "first", "next"))
        with builder.if_then(builder.not_(self._is_zero(piece["words"]))):
            self._resume(pc, sp, parameters, piece)
            rest = piece["next"]
            builder.store(piece["end"], next_)
            with builder.if_then(builder.not_(self._is_zero(rest))):
                more = self._piece(rest)
                is_range = self._is_zero(more["words"])
                is_next = builder.icmp_unsigned("==", more["first"], piece["end"])
                with builder.if_then(builder.and_(is_range, is_next)):
                    builder.store(more["end"], limit)
                    builder.store(more["first"], next_)
                    builder.store(more["next"], following)
        for number, value in enumerate((limit, next_, following)):
            self.put(builder.load(value), operands, WORD_BYTES * number)

    def _piece(self, reference: ir.Value) -> dict[str, ir.Value]:
        first = self.builder.add(self._get("objects"), reference)
        return {
            name: self.at(first, STRUCT_HEADER_BYTES + WORD_BYTES * number)
            for number, name in enumerate(Piece._fields)
        }

    def _elements(self, reference: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The number and the address of the words of an array."""
        base = self._get("objects")
        array = self.builder.add(base, reference)
        place = self.builder.add(base, self.at(array, PLACE_OFFSET))
        return self.at(array, LENGTH_OFFSET), place

    def _resume(
        self, pc: ir.Value, sp: ir.Value, parameters: ir.Value, piece: dict[str, ir.Value]
    ) -> None:
        """Put the frames of an item on the stack, and control into them."""
        builder = self.builder
        count, words = self._elements(piece["words"])
        least = builder.add(parameters, word(HEADER_WORDS))
        self._return_if(builder.icmp_unsigned("<", count, least), ResumptionOutcome.REFUSED)
        header = self.element(words, parameters)
        behind = builder.add(pc, word(CALL_DISTANCE + 1))
        distance = builder.sub(builder.add(sp, parameters), self._get("fp"))
        is_other = builder.or_(
            builder.icmp_unsigned("!=", self.at(header), behind),
            builder.icmp_unsigned("!=", self.at(header, WORD_BYTES), distance),
        )
        self._return_if(is_other, ResumptionOutcome.REFUSED)
        stop = self._known("stops", piece["pc"])
        stack = self._get("stack")
        fp = builder.add(sp, piece["frame"])
        end = self.element(stack, builder.add(fp, self.at(stop)))
        is_past = builder.icmp_unsigned(">", end, self._get("stack_end"))
        self._return_if(is_past, ResumptionOutcome.REFUSED)
        to = self.element(stack, sp)
        with self.each(count) as number:
            self.put(self.at(self.element(words, number)), self.element(to, number))
        self._put_references(stack, sp, fp, stop, piece)
        self._set("pc", piece["pc"])
        self._set("sp", builder.add(sp, count))
        self._set("fp", fp)

    def _put_references(
        self,
        stack: ir.Value,
        sp: ir.Value,
        innermost: ir.Value,
        stop: ir.Value,
        piece: dict[str, ir.Value],
    ) -> None:
        """Put the references of an item into its frames, from the innermost one out; the last one
        of them belongs to the highest word."""
        builder = self.builder
        count, references = self._elements(piece["references"])
        left, fp, row = self.variable(count), self.variable(innermost), self.variable(stop)
        is_last = self.variable(word(0))
        with self.while_(lambda: self._is_zero(builder.load(is_last))):
            known, frame = builder.load(row), builder.load(fp)
            positions = self.variable(self.at(known, WORD_BYTES))
            too_few = builder.icmp_unsigned(">", builder.load(positions), builder.load(left))
            self._return_if(too_few, ResumptionOutcome.REFUSED)
            with self.while_(lambda: builder.not_(self._is_zero(builder.load(positions)))):
                number = builder.load(positions)
                position = self.at(self.element(known, number), WORD_BYTES * (ROW_WORDS - 1))
                index = builder.sub(builder.load(left), word(1))
                slot = self.element(stack, builder.add(frame, position))
                self.put(self.at(self.element(references, index)), slot)
                builder.store(index, left)
                builder.store(builder.sub(number, word(1)), positions)
            header = self.element(stack, frame)
            distance = self.at(header, WORD_BYTES)
            self._return_if(self._is_zero(distance), ResumptionOutcome.REFUSED)
            caller = builder.sub(frame, distance)
            is_outer = builder.icmp_signed("<", caller, sp)
            builder.store(builder.zext(is_outer, WORD), is_last)
            with builder.if_then(builder.not_(is_outer)):
                builder.store(self._known("calls", builder.sub(self.at(header), word(1))), row)
                builder.store(caller, fp)
        self._return_if(builder.not_(self._is_zero(builder.load(left))), ResumptionOutcome.REFUSED)
