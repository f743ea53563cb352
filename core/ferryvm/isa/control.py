# SPDX-License-Identifier: Apache-2.0
"""Control: jumps, calls, markers, leaving the program.

A frame on the stack, which grows up (one slot a word):

    fp ─> │ return pc │ distance │ parameters … locals … │ operands … │ <─ sp
            slot        slot                               deepest first

`mark` reserves the two header slots, the arguments are then pushed where the callee's
parameters will be, and `call` fills in the header: nothing is copied. *Distance* is the number of
words from the caller's frame to this one, so a frame names no absolute address.
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, Emitter, FunctionField
from ferryvm.isa.table import HEADER, Flow, Immediate, instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I32, I64

V = TypeVar("V")

HEADER_WORDS = 2


@instruction("jump", Immediate.TARGET, flow=Flow.JUMP)
def jump(m: Emitter[V], target: V) -> None:
    """Go on at the label."""
    m.jump(target)


@instruction("jump_if", Immediate.TARGET, pops=(I32,), flow=Flow.BRANCH)
def jump_if(m: Emitter[V], target: V, condition: V) -> None:
    """Go on at the label if the operand is not 0."""
    m.jump_if(m.compare(I32, Condition.NE, condition, m.constant(I32, 0)), target)


@instruction("jump_unless", Immediate.TARGET, pops=(I32,), flow=Flow.BRANCH)
def jump_unless(m: Emitter[V], target: V, condition: V) -> None:
    """Go on at the label if the operand is 0."""
    m.jump_if(m.compare(I32, Condition.EQ, condition, m.constant(I32, 0)), target)


@instruction("jump_table", Immediate.LABELS, pops=(I32,), flow=Flow.TABLE)
def jump_table(m: Emitter[V], count: V, index: V) -> None:
    """Go on at the label with that number (unsigned), at the last one when there is none.

    In code the immediate is the number of labels but the last, and one `jump` a label follows."""
    wide = m.extend_u(index)
    m.skip(m.select(m.compare(I64, Condition.LT_U, wide, count), wide, count))


def _words(m: Emitter[V], count: V) -> V:
    """Bytes of that many words."""
    return m.shl(I64, count, m.constant(I64, 3))


def _enter(m: Emitter[V], function: V, arguments_end: V) -> None:
    """Make the frame below `arguments_end` and go on at the function's entry."""
    parameters = _words(m, m.function(function, FunctionField.PARAMETERS))
    header = m.constant(I64, 8 * HEADER_WORDS)
    frame = m.sub(I64, m.sub(I64, arguments_end, parameters), header)
    frame_end = m.add(I64, frame, _words(m, m.function(function, FunctionField.FRAME)))
    overflow = m.compare(I64, Condition.GT_U, frame_end, m.stack_limit())
    m.trap_if(overflow, Trap.STACK_OVERFLOW)
    distance = m.shr_u(I64, m.sub(I64, frame, m.frame_pointer()), m.constant(I64, 3))
    m.set_word(frame, m.next_pc())
    m.set_word(m.add(I64, frame, m.constant(I64, 8)), m.to_slot(I64, distance))
    locals_ = m.function(function, FunctionField.LOCALS)
    m.clear_words(arguments_end, locals_)
    m.enter(function, frame, m.add(I64, arguments_end, _words(m, locals_)))


@instruction("mark", pushes=(HEADER, HEADER))
def mark(m: Emitter[V]) -> tuple[V, V]:
    """Room for a frame's header; the arguments of a call come next."""
    empty = m.to_slot(I64, m.constant(I64, 0))
    return empty, empty


@instruction("call", Immediate.FUNCTION, flow=Flow.CALL)
def call(m: Emitter[V], function: V) -> None:
    """Call a function; traps when its frame does not fit on the stack."""
    _enter(m, function, m.stack_pointer())


@instruction("call_indirect", Immediate.SIGNATURE, pops=(I32,), flow=Flow.CALL_INDIRECT)
def call_indirect(m: Emitter[V], signature: V, index: V) -> None:
    """Call the function table's entry with that number (unsigned); traps when there is none or
    its signature is another."""
    wide = m.extend_u(index)
    absent = m.compare(I64, Condition.GE_U, wide, m.table_size())
    m.trap_if(absent, Trap.UNDEFINED_ELEMENT)
    function = m.table_function(wide)
    found = m.function(function, FunctionField.SIGNATURE)
    m.trap_if(m.compare(I64, Condition.NE, found, signature), Trap.SIGNATURE_MISMATCH)
    _enter(m, function, m.stack_pointer())


@instruction("return", Immediate.RESULTS, flow=Flow.RETURN)
def return_(m: Emitter[V], results: V) -> None:
    """Go back to the caller with the function's results (0 or 1 of them)."""
    frame = m.frame_pointer()
    stack = m.stack_pointer()
    pc = m.word(frame)
    distance = m.from_slot(I64, m.word(m.add(I64, frame, m.constant(I64, 8))))
    # Without a result this copies a dead word onto a dead word, which costs less than a choice.
    m.set_word(frame, m.word(m.sub(I64, stack, m.constant(I64, 8))))
    m.resume(pc, m.sub(I64, frame, _words(m, distance)), m.add(I64, frame, _words(m, results)))


@instruction("host", Immediate.HOST, flow=Flow.HOST)
def host(m: Emitter[V], number: V) -> None:
    """Call a host function that the program imports."""
    m.host(number)


@instruction("enter_jit")
def enter_jit(m: Emitter[V]) -> None:
    """Nothing: marks the start of a scope worth compiling."""


@instruction("leave_jit")
def leave_jit(m: Emitter[V]) -> None:
    """Nothing: marks the end of a scope worth compiling."""


@instruction("nop")
def nop(m: Emitter[V]) -> None:
    """Nothing."""


@instruction("halt", flow=Flow.STOP)
def halt(m: Emitter[V]) -> None:
    """End the program; its result is the operand on top of the stack, if there is one."""
    m.halt()


@instruction("trap", flow=Flow.STOP)
def trap(m: Emitter[V]) -> None:
    """Trap: the program says that this cannot be reached."""
    m.trap(Trap.UNREACHABLE)
