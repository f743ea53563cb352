# SPDX-License-Identifier: Apache-2.0
"""Control: jumps, calls, markers, the end of the program. `ferryvm.isa.frame` draws the frame."""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, Emitter, FunctionField
from ferryvm.isa.frame import HEADER_WORDS, RESULTS_BITS
from ferryvm.isa.table import Flow, Immediate, instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I32, I64

V = TypeVar("V")


@instruction("jump", Immediate.TARGET, flow=Flow.JUMP)
def jump(m: Emitter[V], target: V) -> None:
    """Jump to the label."""
    m.jump(target)


@instruction("jump_if", Immediate.TARGET, pops=(I32,), flow=Flow.BRANCH)
def jump_if(m: Emitter[V], target: V, condition: V) -> None:
    """Jump to the label if the operand is not 0."""
    m.jump_if(m.compare(I32, Condition.NE, condition, m.constant(I32, 0)), target)


@instruction("jump_unless", Immediate.TARGET, pops=(I32,), flow=Flow.BRANCH)
def jump_unless(m: Emitter[V], target: V, condition: V) -> None:
    """Jump to the label if the operand is 0."""
    m.jump_if(m.compare(I32, Condition.EQ, condition, m.constant(I32, 0)), target)


@instruction("jump_table", Immediate.LABELS, pops=(I32,), flow=Flow.TABLE)
def jump_table(m: Emitter[V], count: V, index: V) -> None:
    """Jump to the label that the operand selects (unsigned), to the last one if there is none.

    In code the immediate is the number of labels without the last, and one `jump` for each label
    follows.
    """
    wide = m.extend_u(index)
    m.skip(m.select(m.compare(I64, Condition.LT_U, wide, count), wide, count))


def _words(m: Emitter[V], count: V) -> V:
    """Bytes of that many words."""
    return m.shl(I64, count, m.constant(I64, 3))


def _enter(m: Emitter[V], function: V) -> None:
    """Make a frame above the arguments on top of the stack, and continue at the entry."""
    frame = m.stack_pointer()
    frame_end = m.add(I64, frame, _words(m, m.function(function, FunctionField.FRAME)))
    overflow = m.compare(I64, Condition.GT_U, frame_end, m.stack_limit())
    m.trap_if(overflow, Trap.STACK_OVERFLOW)
    distance = m.shr_u(I64, m.sub(I64, frame, m.frame_pointer()), m.constant(I64, 3))
    m.set_word(frame, m.next_pc())
    m.set_word(m.add(I64, frame, m.constant(I64, 8)), m.to_slot(I64, distance))
    first = m.add(I64, frame, m.constant(I64, 8 * HEADER_WORDS))
    locals_ = m.function(function, FunctionField.LOCALS)
    m.clear_words(first, locals_)
    m.enter(function, frame, m.add(I64, first, _words(m, locals_)))


@instruction("call", Immediate.FUNCTION, flow=Flow.CALL)
def call(m: Emitter[V], function: V) -> None:
    """Call a function; traps if its frame does not fit on the stack."""
    _enter(m, function)


@instruction("call_indirect", Immediate.SIGNATURE, pops=(I32,), flow=Flow.CALL_INDIRECT)
def call_indirect(m: Emitter[V], signature: V, index: V) -> None:
    """Call the function table's entry with that number (unsigned); traps if there is none or its
    signature differs."""
    wide = m.extend_u(index)
    absent = m.compare(I64, Condition.GE_U, wide, m.table_size())
    m.trap_if(absent, Trap.UNDEFINED_ELEMENT)
    function = m.table_function(wide)
    found = m.function(function, FunctionField.SIGNATURE)
    m.trap_if(m.compare(I64, Condition.NE, found, signature), Trap.SIGNATURE_MISMATCH)
    _enter(m, function)


@instruction("return", Immediate.RESULTS, flow=Flow.RETURN)
def return_(m: Emitter[V], counts: V) -> None:
    """Return the function's results to the caller.

    In code the immediate also holds, above bit 31, the function's number of parameters.
    """
    frame = m.frame_pointer()
    parameters = m.shr_u(I64, counts, m.constant(I64, RESULTS_BITS))
    results = m.bit_and(I64, counts, m.constant(I64, (1 << RESULTS_BITS) - 1))
    pc = m.word(frame)
    distance = m.from_slot(I64, m.word(m.add(I64, frame, m.constant(I64, 8))))
    first = m.sub(I64, frame, _words(m, parameters))
    m.move_results(first, m.stack_pointer(), results)
    m.resume(pc, m.sub(I64, frame, _words(m, distance)), m.add(I64, first, _words(m, results)))


@instruction("host", Immediate.HOST, flow=Flow.HOST)
def host(m: Emitter[V], number: V) -> None:
    """Call a host function that the program imports."""
    m.host(number)


@instruction("enter_jit")
def enter_jit(m: Emitter[V]) -> None:
    """No effect: marks the start of a scope worth compiling."""


@instruction("leave_jit")
def leave_jit(m: Emitter[V]) -> None:
    """No effect: marks the end of a scope worth compiling."""


@instruction("nop")
def nop(m: Emitter[V]) -> None:
    """No effect."""


@instruction("halt", flow=Flow.STOP)
def halt(m: Emitter[V]) -> None:
    """End the program; its result is the operand on top of the stack, if there is one."""
    m.halt()


@instruction("trap", flow=Flow.STOP)
def trap(m: Emitter[V]) -> None:
    """Trap: the program declares this point unreachable."""
    m.trap(Trap.UNREACHABLE)


@instruction("throw", Immediate.TAG, flow=Flow.THROW)
def throw(m: Emitter[V], tag: V) -> None:
    """Throw an exception of the tag, with its values; traps if no clause catches it."""
    m.throw()


@instruction("throw_record", pops=(I64,) * 5, flow=Flow.THROW)
def throw_record(m: Emitter[V], tag: V, a: V, b: V, c: V, d: V) -> None:
    """Throw the exception of a record; traps if no clause catches it or the record is not valid.

    If tags of the program have references, the record begins with some, below the number of the
    tag.
    """
    m.throw()
