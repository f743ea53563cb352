# SPDX-License-Identifier: Apache-2.0
"""The entry of a launch from code, see `ferryvm_backends.opencl.launch.range`.

code that comes to the launch ─> launch_items ─┬─ few items left ─> in order
                                               ├─ a plan ─> the range ─> behind the launch
                                               └─ none, or not as expected ─> Python
"""

from __future__ import annotations

import ctypes

from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.launch_operands import LaunchOperands
from ferryvm_backends._llvm import ir
from ferryvm_backends.opencl.launch import ItemRecord, RangePlan, RangeStatus
from ferryvm_backends.opencl.launch.plan_function import PlanFunction
from ferryvm_backends.opencl.launch.trampoline import (
    BYTE,
    INT,
    POINTER,
    WORD,
    offset,
    status,
    word,
)


class LaunchItems(PlanFunction):
    """Enter a launch from code."""

    name, structure = "launch_items", ItemRecord
    parameters = (POINTER, POINTER)

    def __init__(self, module: ir.Module, inside: ir.Function) -> None:
        super().__init__(module)
        self._inside, self._control = inside, self.function.args[1]
        b = self.b
        self._end, self._back, in_order = (self.function.append_basic_block() for _ in range(3))
        self._ask, give_back = (self.function.append_basic_block() for _ in range(2))
        self._why = b.alloca(INT)
        b.store(ir.Constant(INT, RangeStatus.UNLIKE), self._why, align=4)
        size = ctypes.sizeof(LaunchOperands)
        words = b.shl(self._field("sp"), word(WORD_BYTES.bit_length() - 1))
        operands = b.sub(b.add(self._field("stack"), words), word(size))
        self._operands = b.inttoptr(operands, POINTER)
        limit, next_, self._record = (
            b.load(
                b.gep(self._operands, [word(offset(LaunchOperands, name))], source_etype=BYTE),
                align=8,
                typ=WORD,
            )
            for name in ("limit", "next", "record")
        )
        left = b.sub(limit, next_)
        self.unless(b.icmp_signed("<=", limit, next_), self._end)
        launches = self._field("launches")
        self.unless(b.icmp_unsigned("==", launches, word(0)), in_order)
        place = b.inttoptr(b.add(launches, self.get("word")), POINTER)
        least = b.load(place, align=8, typ=WORD)
        self.unless(b.icmp_unsigned("<=", left, least), in_order)
        self._run(left, give_back)
        b.position_at_end(give_back)
        self.leave()
        b.branch(self._ask)
        self._emit_ask()
        b.position_at_end(in_order)
        entry = ir.Callee(
            b.inttoptr(self.get("in_order"), POINTER), ir.FunctionType(INT, [POINTER])
        )
        b.ret(b.call(entry, [self._control], tail="tail"))
        self._emit_end()

    def _run(self, left: ir.Value, give_back: ir.Block) -> None:
        b = self.b
        self.unless_zero(self._field("interrupt"), self._ask)
        address = b.ptrtoint(self._control, WORD)
        self.unless(b.icmp_unsigned("!=", self.get("control"), address), self._ask)
        entries = self.add("entries", word(1))
        # At powers of two the engine sees if launches follow each other by now.
        self.unless(
            b.icmp_unsigned("==", b.and_(entries, b.sub(entries, word(1))), word(0)), self._back
        )
        self.enter(self._ask)
        self.unless(self.is_late(), give_back)
        plan = b.inttoptr(self.get("plan"), POINTER)
        found = b.call(self._inside, [plan])
        b.store(found, self._why, align=4)
        is_other = b.icmp_signed("!=", found, ir.Constant(INT, RangeStatus.DONE))
        self.unless(is_other, give_back)
        place = b.gep(plan, [word(offset(RangePlan, "nanoseconds"))], source_etype=BYTE)
        spent = b.load(place, align=8, typ=WORD)
        with b.if_then(b.icmp_unsigned(">", spent, self.get("longest")), likely=False):
            b.store(word(0), self.at("control"), align=8)
        self.add("nanoseconds", spent)
        self.add("times", word(1))
        self.add("items", left)
        self.leave()
        b.branch(self._end)

    def _emit_ask(self) -> None:
        """Ask Python to run the range, or leave for the engine."""
        b = self.b
        b.position_at_end(self._ask)
        why = b.zext(b.load(self._why, align=4, typ=INT), WORD)
        given = self.get("key"), b.ptrtoint(self._control, WORD), why
        found = self.call("back", INT, [WORD, WORD, WORD], *given)
        self.unless(b.icmp_unsigned("==", found, status(Status.RUNNING)), self._end)
        b.branch(self._back)
        b.position_at_end(self._back)
        self._set_status(Status.PARALLEL)
        b.ret(status(Status.PARALLEL))

    def _emit_end(self) -> None:
        """Leave for what has been suspended, or behind the launch."""
        b = self.b
        b.position_at_end(self._end)
        with b.if_then(b.icmp_unsigned("!=", self._record, word(0)), likely=False):
            self._set_status(Status.LAUNCH)
            b.ret(status(Status.LAUNCH))
        where = b.gep(self._control, [word(offset(ControlBlock, "pc"))], source_etype=BYTE)
        b.store(self.get("behind"), where, align=8)
        self._set_status(Status.LEAVE)
        b.ret(status(Status.LEAVE))

    def _field(self, name: str) -> ir.Value:
        """A field of the control block."""
        where = getattr(ControlBlock, name)
        place = self.b.gep(self._control, [word(where.offset)], source_etype=BYTE)
        return self.b.load(place, align=where.size, typ=ir.IntType(8 * where.size))

    def _set_status(self, value: Status) -> None:
        place = self.b.gep(self._control, [word(offset(ControlBlock, "status"))], source_etype=BYTE)
        self.b.store(status(value), place, align=4)
