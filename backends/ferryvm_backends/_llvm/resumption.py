# SPDX-License-Identifier: Apache-2.0
"""Suspended items resumed by an interpreter without Python: `ferryvm.machine.item_map.RESUME`.

    LAUNCH ──> the first piece ──> operands, stack, registers ──> interpreter ──> LAUNCH ──> …
      │            └─ Python is needed ──> return                     └─ any other status ──> return
      └──> the item waits, or those that wait go on: `ferryvm_backends._llvm.phase`

It does what `ferryvm.machine.launch.continue_launch` does, to the bit; a piece that this would
refuse, or whose frames it does not know, it leaves as it is. Until it is sure, it has written
nothing but words above the operands, which belong to no frame.
"""

from __future__ import annotations

from ferryvm.isa.declared_type import PHASE
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.item_map import BARRIER_MARK, ROW_WORDS, ItemOutcome
from ferryvm.region.launch import CALL_DISTANCE
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.environment import enter
from ferryvm_backends._llvm.handler import INT32, POINTER
from ferryvm_backends._llvm.phase import ENDED, define_begin_phase, define_wait
from ferryvm_backends._llvm.piece_code import PieceCode


def define_resume(module: ir.Module, name: str, run: ir.Function) -> None:
    """Add the function for an interpreter whose entry is `run`; it may be called in any
    floating-point environment."""
    signature = ir.FunctionType(WORD, [POINTER, POINTER])
    resume = ir.Function(module, signature, f"{name}.items")
    resume.linkage = "private"
    # A loop that copies a few words is not to become a call of memcpy.
    resume.attributes |= {"nounwind", '"no-builtins"'}
    wait = define_wait(module, f"{name}.wait")
    _Resume(resume, run, wait, define_begin_phase(module, f"{name}.phase")).build()
    function = ir.Function(module, signature, name)
    builder = ir.IRBuilder(function.append_basic_block())
    restore = enter(module, builder)
    outcome = builder.call(resume, function.args)
    restore()
    builder.ret(outcome)


class _Resume(PieceCode):
    def __init__(
        self, function: ir.Function, run: ir.Function, wait: ir.Function, begin: ir.Function
    ) -> None:
        super().__init__(function)
        map_, self._pointer = function.args
        self.map = self.builder.ptrtoint(map_, WORD)
        self.control = self.builder.ptrtoint(self._pointer, WORD)
        self._run, self._wait, self._begin = run, wait, begin

    def build(self) -> None:
        """Emit the function."""
        builder, function = self.builder, self.function
        names = ("again", "barrier", "launch", "phase", "take", "run")
        again, barrier, launch, phase, take, run = map(function.append_basic_block, names)
        builder.branch(again)
        builder.position_at_end(again)
        interrupt = builder.load_atomic(self._half("interrupt"), "monotonic", 4, typ=INT32)
        is_set = builder.icmp_unsigned("!=", interrupt, ir.Constant(INT32, 0))
        self.return_if(is_set, ItemOutcome.REFUSED)
        known = self.known("launches", self.get("pc"))
        is_barrier = builder.icmp_unsigned("==", known, word(BARRIER_MARK))
        builder.cbranch(is_barrier, barrier, launch)

        builder.position_at_end(barrier)
        self._return_unless_done(builder.call(self._wait, [self.map, self.control]))
        builder.branch(run)

        builder.position_at_end(launch)
        operands = self._operands()
        record = self.at(operands, 2 * WORD_BYTES)
        is_left = builder.icmp_signed("<", self.at(operands, WORD_BYTES), self.at(operands))
        self.return_if(builder.or_(self.is_zero(record), is_left), ItemOutcome.REFUSED)
        builder.cbranch(self._is_phase(self.piece(record)), phase, take)

        builder.position_at_end(phase)
        outcome = builder.call(self._begin, [self.map, self.control])
        with builder.if_then(builder.icmp_unsigned("==", outcome, word(ENDED))):
            builder.branch(run)
            builder.position_at_end(function.append_basic_block("unreached"))
        self._return_unless_done(outcome)
        builder.branch(take)

        builder.position_at_end(take)
        self._take(builder.sub(known, word(1)))
        builder.branch(run)

        builder.position_at_end(run)
        builder.store(ir.Constant(INT32, int(Status.RUNNING)), self._half("status"), align=4)
        builder.call(self._run, [self._pointer])
        status = builder.load(self._half("status"), typ=INT32, align=4)
        left = builder.icmp_unsigned("!=", status, ir.Constant(INT32, int(Status.LAUNCH)))
        self.return_if(left, ItemOutcome.DONE)
        builder.branch(again)

    def _return_unless_done(self, outcome: ir.Value) -> None:
        with self.builder.if_then(self.builder.not_(self.is_zero(outcome)), likely=False):
            self.builder.ret(outcome)

    def _half(self, name: str) -> ir.Value:
        """The address of a half word of the control block."""
        offset: int = getattr(ControlBlock, name).offset
        return self.builder.inttoptr(self.builder.add(self.control, word(offset)), POINTER)

    def _operands(self) -> ir.Value:
        """The address of the operands of the launch at pc."""
        top = self.element(self.get("stack"), self.get("sp"))
        return self.builder.sub(top, word(WORD_BYTES * LAUNCH_WORDS))

    def _is_phase(self, piece: dict[str, ir.Value]) -> ir.Value:
        return self.builder.icmp_unsigned("==", piece["pc"], word(PHASE))

    # --- a piece ----------------------------------------------------------------------------

    def _take(self, parameters: ir.Value) -> None:
        """Take the first piece of the record, in front of which a phase may be; returns from the
        function where Python has to."""
        builder, operands = self.builder, self._operands()
        record = self.at(operands, 2 * WORD_BYTES)
        front = self.piece(record)
        is_phase = self._is_phase(front)
        first = self.variable(record)
        with builder.if_then(is_phase):
            builder.store(front["next"], first)
        piece = self.piece(builder.load(first))
        limit, next_, following = (self.variable(piece[name]) for name in ("end", "first", "next"))
        with builder.if_then(builder.not_(self.is_zero(piece["words"]))):
            self._resume(parameters, piece)
            rest = piece["next"]
            builder.store(piece["end"], next_)
            with builder.if_then(builder.not_(self.is_zero(rest))):
                more = self.piece(rest)
                is_range = self.is_zero(more["words"])
                is_next = builder.icmp_unsigned("==", more["first"], piece["end"])
                with builder.if_then(builder.and_(is_range, is_next)):
                    builder.store(more["end"], limit)
                    builder.store(more["first"], next_)
                    builder.store(more["next"], following)
        with builder.if_then(is_phase):
            phase = self.make_piece(
                first=front["first"],
                pc=word(PHASE),
                next=builder.load(following),
                waiting=front["waiting"],
            )
            builder.store(phase, following)
        for number, value in enumerate((limit, next_, following)):
            self.put(builder.load(value), operands, WORD_BYTES * number)

    def _resume(self, parameters: ir.Value, piece: dict[str, ir.Value]) -> None:
        """Put the frames of an item on the stack, and control into them."""
        builder = self.builder
        pc, sp = self.get("pc"), self.get("sp")
        count, words = self.elements(piece["words"])
        least = builder.add(parameters, word(HEADER_WORDS))
        self.return_if(builder.icmp_unsigned("<", count, least), ItemOutcome.REFUSED)
        header = self.element(words, parameters)
        behind = builder.add(pc, word(CALL_DISTANCE + 1))
        distance = builder.sub(builder.add(sp, parameters), self.get("fp"))
        is_other = builder.or_(
            builder.icmp_unsigned("!=", self.at(header), behind),
            builder.icmp_unsigned("!=", self.at(header, WORD_BYTES), distance),
        )
        self.return_if(is_other, ItemOutcome.REFUSED)
        stop = self.known("stops", piece["pc"])
        stack = self.get("stack")
        fp = builder.add(sp, piece["frame"])
        end = self.element(stack, builder.add(fp, self.at(stop)))
        is_past = builder.icmp_unsigned(">", end, self.get("stack_end"))
        self.return_if(is_past, ItemOutcome.REFUSED)
        to = self.element(stack, sp)
        with self.each(count) as number:
            self.put(self.at(self.element(words, number)), self.element(to, number))
        self._put_references(stack, sp, fp, stop, piece)
        self.set("pc", piece["pc"])
        self.set("sp", builder.add(sp, count))
        self.set("fp", fp)

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
        count, references = self.elements(piece["references"])
        left, fp, row = self.variable(count), self.variable(innermost), self.variable(stop)
        is_last = self.variable(word(0))
        with self.while_(lambda: self.is_zero(builder.load(is_last))):
            known, frame = builder.load(row), builder.load(fp)
            positions = self.variable(self.at(known, WORD_BYTES))
            too_few = builder.icmp_unsigned(">", builder.load(positions), builder.load(left))
            self.return_if(too_few, ItemOutcome.REFUSED)
            with self.while_(lambda: builder.not_(self.is_zero(builder.load(positions)))):
                number = builder.load(positions)
                position = self.at(self.element(known, number), WORD_BYTES * (ROW_WORDS - 1))
                index = builder.sub(builder.load(left), word(1))
                slot = self.element(stack, builder.add(frame, position))
                self.put(self.at(self.element(references, index)), slot)
                builder.store(index, left)
                builder.store(builder.sub(number, word(1)), positions)
            header = self.element(stack, frame)
            distance = self.at(header, WORD_BYTES)
            self.return_if(self.is_zero(distance), ItemOutcome.REFUSED)
            caller = builder.sub(frame, distance)
            is_outer = builder.icmp_signed("<", caller, sp)
            builder.store(builder.zext(is_outer, WORD), is_last)
            with builder.if_then(builder.not_(is_outer)):
                builder.store(self.known("calls", builder.sub(self.at(header), word(1))), row)
                builder.store(caller, fp)
        self.return_if(builder.not_(self.is_zero(builder.load(left))), ItemOutcome.REFUSED)
