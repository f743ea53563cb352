# SPDX-License-Identifier: Apache-2.0
"""The rest of a suspended item run by an interpreter: `ferryvm.machine.slot_code.SlotCode`.

    slot ─> words above the operands ─> interpreter ─┬─ the frame of the launch: done
                                                     └─ a frame of the item: as it is left

The range of the launch counts as done, and its record is not 0, so that the interpreter leaves with
LAUNCH where the item has returned.
"""

from __future__ import annotations

from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import Status
from ferryvm.machine.item_batch import FRAME, ITEM, PC, SIZE, SLOT_WORDS
from ferryvm.machine.slot_code import SlotControl
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.environment import enter
from ferryvm_backends._llvm.handler import INT32, POINTER
from ferryvm_backends._llvm.word_code import WordCode

_BEHIND = (1 << 64) - 1
"""A pc behind all code."""


def define_slot_runner(module: ir.Module, name: str, run: ir.Function) -> None:
    """Add the function for an interpreter whose entry is `run`; it may be called in any
    floating-point environment."""
    inner = ir.Function(module, ir.FunctionType(WORD, [POINTER]), f"{name}.slot")
    inner.linkage = "private"
    # A loop that copies a few words is not to become a call of memcpy.
    inner.attributes |= {"nounwind", '"no-builtins"'}
    _SlotRunner(inner, run).build()
    function = ir.Function(module, ir.FunctionType(INT32, [POINTER]), name)
    builder = ir.IRBuilder(function.append_basic_block())
    restore = enter(module, builder)
    status = builder.call(inner, function.args)
    restore()
    builder.ret(builder.trunc(status, INT32))


class _SlotRunner(WordCode):
    def __init__(self, function: ir.Function, run: ir.Function) -> None:
        super().__init__(function)
        self._pointer = function.args[0]
        self._control = self.builder.ptrtoint(self._pointer, WORD)
        self._run = run

    def build(self) -> None:
        """Emit the function."""
        builder = self.builder
        sp, fp, stack = self._get("sp"), self._get("fp"), self._get("stack")
        to = self.element(stack, sp)
        operands = builder.sub(to, word(WORD_BYTES * LAUNCH_WORDS))
        next_ = self.at(operands, WORD_BYTES)
        slot = self.at(self.element(self._get("slots"), next_))
        size, item, frame, pc = (self.at(slot, WORD_BYTES * n) for n in (SIZE, ITEM, FRAME, PC))
        innermost = builder.add(sp, frame)
        end = self.element(stack, builder.add(innermost, self._get("headroom")))
        is_past = builder.icmp_unsigned(">", end, self._get("stack_end"))
        with builder.if_then(is_past, likely=False):
            builder.ret(word(Status.LEAVE))
        words = builder.add(slot, word(WORD_BYTES * SLOT_WORDS))
        with self.each(size) as number:
            self.put(self.at(self.element(words, number)), self.element(to, number))
        following = builder.add(item, word(1))
        for position, value in enumerate((following, following, word(1))):
            self.put(value, operands, WORD_BYTES * position)
        self._set("pc", pc)
        self._set("sp", builder.add(sp, size))
        self._set("fp", innermost)
        status_at = self._half("status")
        builder.store(ir.Constant(INT32, int(Status.RUNNING)), status_at, align=4)
        builder.call(self._run, [self._pointer])
        is_done = builder.icmp_unsigned("==", self._get("fp"), fp)
        with builder.if_then(is_done):
            self._set("pc", word(_BEHIND))
            self._set("sp", sp)
            builder.ret(word(Status.LEAVE))
        status = builder.load(status_at, typ=INT32, align=4)
        builder.ret(builder.zext(status, WORD))

    def _half(self, name: str) -> ir.Value:
        """The address of a half word of the control block."""
        offset: int = getattr(SlotControl, name).offset
        return self.builder.inttoptr(self.builder.add(self._control, word(offset)), POINTER)

    def _get(self, name: str) -> ir.Value:
        return self.at(self._control, getattr(SlotControl, name).offset)

    def _set(self, name: str, value: ir.Value) -> None:
        self.put(value, self._control, getattr(SlotControl, name).offset)
