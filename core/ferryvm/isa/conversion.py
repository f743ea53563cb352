# SPDX-License-Identifier: Apache-2.0
"""Conversions between the four types, as in WebAssembly 1.0 with saturating truncation."""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, Emitter
from ferryvm.isa.numeric import canonical
from ferryvm.isa.table import instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F32, F64, I32, I64, Type, from_float

V = TypeVar("V")


@instruction("i32.wrap_i64", pops=(I64,), pushes=(I32,))
def wrap(m: Emitter[V], a: V) -> V:
    """The low 32 bits."""
    return m.wrap(a)


@instruction("i64.extend_i32_s", pops=(I32,), pushes=(I64,))
def extend_s(m: Emitter[V], a: V) -> V:
    """The operand, extended by its sign."""
    return m.extend_s(a)


@instruction("i64.extend_i32_u", pops=(I32,), pushes=(I64,))
def extend_u(m: Emitter[V], a: V) -> V:
    """The operand, extended by zeros."""
    return m.extend_u(a)


def _in_range(m: Emitter[V], to: Type, t: Type, is_signed: bool, a: V) -> tuple[V, V]:
    """The booleans that `a`, truncated, is not below and not above what `to` can hold."""
    smallest = -(1 << (to.bits - 1)) if is_signed else 0
    past = 1 << (to.bits - 1 if is_signed else to.bits)
    not_above = m.compare(t, Condition.LT, a, m.constant(t, from_float(t, float(past))))
    mantissa = 53 if t is F64 else 24
    if (-smallest + 1).bit_length() <= mantissa:
        bound = m.constant(t, from_float(t, float(smallest - 1)))
        return m.compare(t, Condition.GT, a, bound), not_above
    # smallest - 1 is not a float of this type: the next one below smallest truncates too low.
    bound = m.constant(t, from_float(t, float(smallest)))
    return m.compare(t, Condition.GE, a, bound), not_above


def _truncate(to: Type, t: Type, is_signed: bool) -> None:
    suffix = "s" if is_signed else "u"
    kind = "a signed" if is_signed else "an unsigned"

    def convert(m: Emitter[V], a: V) -> V:
        return m.to_int_s(to, t, a) if is_signed else m.to_int_u(to, t, a)

    def trunc(m: Emitter[V], a: V) -> V:
        m.trap_if(m.compare(t, Condition.NE, a, a), Trap.INVALID_CONVERSION)
        not_below, not_above = _in_range(m, to, t, is_signed, a)
        m.trap_if(m.none(m.all(not_below, not_above)), Trap.INTEGER_OVERFLOW)
        return convert(m, a)

    def trunc_sat(m: Emitter[V], a: V) -> V:
        smallest = 1 << (to.bits - 1) if is_signed else 0
        largest = (to.mask >> 1) if is_signed else to.mask
        not_below, not_above = _in_range(m, to, t, is_signed, a)
        fits = m.all(not_below, not_above)
        result = convert(m, m.select(fits, a, m.constant(t, 0)))
        result = m.select(not_above, result, m.constant(to, largest))
        result = m.select(not_below, result, m.constant(to, smallest))
        is_nan = m.compare(t, Condition.NE, a, a)
        return m.select(is_nan, m.constant(to, 0), result)

    trunc.__doc__ = (
        f"The operand toward zero, as {kind} integer; traps on NaN and where it does not fit."
    )
    trunc_sat.__doc__ = (
        f"The operand toward zero, as {kind} integer; the nearest one where it does not fit, "
        "0 for NaN."
    )
    instruction(f"{to}.trunc_{t}_{suffix}", pops=(t,), pushes=(to,))(trunc)
    instruction(f"{to}.trunc_sat_{t}_{suffix}", pops=(t,), pushes=(to,))(trunc_sat)


def _convert(to: Type, t: Type) -> None:
    @instruction(f"{to}.convert_{t}_s", pops=(t,), pushes=(to,))
    def convert_s(m: Emitter[V], a: V) -> V:
        """The signed operand, rounded to nearest even."""
        return m.to_float_s(to, t, a)

    @instruction(f"{to}.convert_{t}_u", pops=(t,), pushes=(to,))
    def convert_u(m: Emitter[V], a: V) -> V:
        """The unsigned operand, rounded to nearest even."""
        return m.to_float_u(to, t, a)


for _to in (I32, I64):
    for _t in (F32, F64):
        _truncate(_to, _t, True)
        _truncate(_to, _t, False)
for _to in (F32, F64):
    for _t in (I32, I64):
        _convert(_to, _t)


@instruction("f32.demote_f64", pops=(F64,), pushes=(F32,))
def demote(m: Emitter[V], a: V) -> V:
    """The operand, rounded to nearest even."""
    return canonical(m, F32, m.demote(a))


@instruction("f64.promote_f32", pops=(F32,), pushes=(F64,))
def promote(m: Emitter[V], a: V) -> V:
    """The operand, exactly."""
    return canonical(m, F64, m.promote(a))


def _reinterpret(to: Type, t: Type) -> None:
    @instruction(f"{to}.reinterpret_{t}", pops=(t,), pushes=(to,))
    def reinterpret(m: Emitter[V], a: V) -> V:
        """The same bits."""
        return m.reinterpret(to, t, a)


for _to, _t in ((I32, F32), (I64, F64), (F32, I32), (F64, I64)):
    _reinterpret(_to, _t)
