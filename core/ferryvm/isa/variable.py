# SPDX-License-Identifier: Apache-2.0
"""Constants, locals, statics and the operand stack."""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, Emitter
from ferryvm.isa.table import Immediate, T, U, instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I32, I64, Type

V = TypeVar("V")


def _constant(t: Type) -> None:
    @instruction(f"{t}.const", Immediate[t.name], pushes=(t,))
    def const(m: Emitter[V], literal: V) -> V:
        """The immediate."""
        return literal


for _t in Type:
    _constant(_t)


@instruction("local.get", Immediate.LOCAL, pushes=(T,))
def local_get(m: Emitter[V], index: V) -> V:
    """The value of a local."""
    return m.local(index)


@instruction("local.set", Immediate.LOCAL, pops=(T,))
def local_set(m: Emitter[V], index: V, a: V) -> None:
    """Store into a local."""
    m.set_local(index, a)


@instruction("static.get", Immediate.STATIC, pushes=(T,))
def static_get(m: Emitter[V], index: V) -> V:
    """The value of a static."""
    return m.static(index)


@instruction("static.set", Immediate.STATIC, pops=(T,))
def static_set(m: Emitter[V], index: V, a: V) -> None:
    """Store into a static."""
    m.set_static(index, a)


def _check_static(m: Emitter[V], index: V) -> None:
    past = m.compare(I64, Condition.GE_U, index, m.static_count())
    m.trap_if(past, Trap.STATIC_OUT_OF_BOUNDS)


@instruction("static.load", pops=(I64,), pushes=(I64,))
def static_load(m: Emitter[V], index: V) -> V:
    """The value of the static whose number is the operand; all statics must be i64."""
    _check_static(m, index)
    return m.from_slot(I64, m.static(index))


@instruction("static.store", pops=(I64, I64))
def static_store(m: Emitter[V], a: V, index: V) -> None:
    """Store the first operand into the static whose number is the second; all must be i64."""
    _check_static(m, index)
    m.set_static(index, m.to_slot(I64, a))


@instruction("drop", pops=(T,))
def drop(m: Emitter[V], a: V) -> None:
    """Discard the operand."""


@instruction("dup", pops=(T,), pushes=(T, T))
def dup(m: Emitter[V], a: V) -> tuple[V, V]:
    """The operand, twice."""
    return a, a


@instruction("swap", pops=(T, U), pushes=(U, T))
def swap(m: Emitter[V], a: V, b: V) -> tuple[V, V]:
    """The operands, exchanged."""
    return b, a


@instruction("select", pops=(T, T, I32), pushes=(T,))
def select(m: Emitter[V], a: V, b: V, condition: V) -> V:
    """The first operand if the third is not 0, else the second."""
    return m.select(m.compare(I32, Condition.NE, condition, m.constant(I32, 0)), a, b)
