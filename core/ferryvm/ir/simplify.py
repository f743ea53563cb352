# SPDX-License-Identifier: Apache-2.0
"""Algebraic simplification: constant folding, and identities on bit patterns.

Constants are folded by running the emitter's own methods over Python integers, so folding adds no
second definition. An identity holds for every bit pattern; tests try each one.
"""

from __future__ import annotations

import abc
from typing import Any

from ferryvm.ir.graph import BOOLEAN, Constant, Operation, Static, Value, ValueType
from ferryvm.isa.emitter import Condition, PureEmitter
from ferryvm.isa.evaluation import PythonArithmetic
from ferryvm.isa.numeric import canonical
from ferryvm.isa.type import CANONICAL_NAN, I32, I64, Type


class SimplifyingEmitter(PureEmitter[Value]):
    """An emitter of IR that calls `simplify` before it creates an operation."""

    @abc.abstractmethod
    def constant(self, t: ValueType, bits: int) -> Constant:
        """The constant with these bits."""

    @abc.abstractmethod
    def canonical(self, t: Type, a: Value) -> Value:
        """`a`, or the canonical NaN if it is any NaN."""


class _Evaluation(PythonArithmetic):
    def canonical(self, t: Type, a: int) -> int:
        """`a`, or the canonical NaN if it is any NaN."""
        return canonical(self, t, a)


_EVALUATION = _Evaluation()

_INVERSE = {
    Condition.EQ: Condition.NE,
    Condition.NE: Condition.EQ,
    Condition.LT_S: Condition.GE_S,
    Condition.GE_S: Condition.LT_S,
    Condition.GT_S: Condition.LE_S,
    Condition.LE_S: Condition.GT_S,
    Condition.LT_U: Condition.GE_U,
    Condition.GE_U: Condition.LT_U,
    Condition.GT_U: Condition.LE_U,
    Condition.LE_U: Condition.GT_U,
}
"""The condition that holds for integers if and only if the other does not."""

_REFLEXIVE = {Condition.EQ, Condition.LE_S, Condition.LE_U, Condition.GE_S, Condition.GE_U}
"""Integer conditions that hold for equal operands."""


_SHIFTS = frozenset({"shl", "shr_s", "shr_u"})


def evaluate(name: str, static: tuple[Static, ...], bits: tuple[int, ...]) -> int | None:
    """Bits of a pure operation over constants; None if its preconditions do not hold."""
    if name in _SHIFTS and bits[1] >= static[0].bits:  # type: ignore[attr-defined]  # a Type
        return None
    try:
        return int(getattr(_EVALUATION, name)(*static, *bits))
    except (ArithmeticError, ValueError):
        return None  # it comes after a check that traps


def simplify(
    m: SimplifyingEmitter,
    name: str,
    static: tuple[Static, ...],
    arguments: tuple[Value, ...],
    type_: ValueType,
) -> Value | None:
    """A value that the operation equals, found without creating it; None if there is none."""
    constants = [a.bits for a in arguments if isinstance(a, Constant)]
    if len(constants) == len(arguments):
        bits = evaluate(name, static, tuple(constants))
        return None if bits is None else m.constant(type_, bits)
    rule = _RULES.get(name)
    return rule(m, static, *arguments) if rule else None


def _made_by(value: Value, name: str) -> Operation | None:
    return value if isinstance(value, Operation) and value.name == name else None


def _is(value: Value, bits: int) -> bool:
    return isinstance(value, Constant) and value.bits == bits


def _add(m: SimplifyingEmitter, static: Any, a: Value, b: Value) -> Value | None:
    (t,) = static
    if isinstance(a, Constant):
        a, b = b, a
        if not _is(b, 0):
            return m.add(t, a, b)  # constants are on the right
    if not isinstance(b, Constant):
        return None
    if b.bits == 0:
        return a
    inner = _made_by(a, "add")
    if inner is not None and isinstance(inner.arguments[1], Constant):
        total = m.add(t, inner.arguments[1], b)
        return m.add(t, inner.arguments[0], total)
    return None


def _base(value: Value) -> tuple[Value, int]:
    """The base of a sum with a constant, and that constant."""
    sum_ = _made_by(value, "add")
    if sum_ is not None and isinstance(sum_.arguments[1], Constant):
        return sum_.arguments[0], sum_.arguments[1].bits
    return value, 0


def _sub(m: SimplifyingEmitter, static: Any, a: Value, b: Value) -> Value | None:
    (t,) = static
    if isinstance(b, Constant):
        return m.add(t, a, m.constant(t, -b.bits & t.mask))
    (base, more), (other, less) = _base(a), _base(b)
    if base is other:
        return m.constant(t, (more - less) & t.mask)
    sum_ = _made_by(a, "add")
    return sum_.arguments[1] if sum_ is not None and sum_.arguments[0] is b else None


def _mul(m: SimplifyingEmitter, static: Any, a: Value, b: Value) -> Value | None:
    (t,) = static
    if isinstance(a, Constant):
        return m.mul(t, b, a)
    if _is(b, 0):
        return b
    return a if _is(b, 1) else None


def _sum_overflows(m: SimplifyingEmitter, static: Any, a: Value, b: Value) -> Value | None:
    (t,) = static
    if isinstance(a, Constant):
        return m.add_overflows(t, b, a)
    return m.constant(BOOLEAN, 0) if _is(b, 0) else None


def _difference_overflows(m: SimplifyingEmitter, static: Any, a: Value, b: Value) -> Value | None:
    (t,) = static
    if isinstance(b, Constant) and b.bits != 1 << (t.bits - 1):
        return m.add_overflows(t, a, m.constant(t, -b.bits & t.mask))
    return m.constant(BOOLEAN, 0) if a is b else None


def _product_overflows(m: SimplifyingEmitter, static: Any, a: Value, b: Value) -> Value | None:
    (t,) = static
    if isinstance(a, Constant):
        return m.mul_overflows(t, b, a)
    return m.constant(BOOLEAN, 0) if _is(b, 0) or _is(b, 1) else None


def _bit_and(m: SimplifyingEmitter, static: Any, a: Value, b: Value) -> Value | None:
    (t,) = static
    if isinstance(a, Constant):
        return m.bit_and(t, b, a)
    if a is b or _is(b, t.mask):
        return a
    return b if _is(b, 0) else None


def _or_xor(m: SimplifyingEmitter, static: Any, a: Value, b: Value) -> Value | None:
    return a if _is(b, 0) else b if _is(a, 0) else None


def _shift(m: SimplifyingEmitter, static: Any, a: Value, b: Value) -> Value | None:
    return a if _is(b, 0) or _is(a, 0) else None


def _compare(m: SimplifyingEmitter, static: Any, a: Value, b: Value) -> Value | None:
    t, condition = static
    if t is I32 and _is(b, 0) and condition in (Condition.EQ, Condition.NE):
        boolean = _made_by(a, "boolean_to_i32")
        if boolean is not None:
            p = boolean.arguments[0]
            return p if condition is Condition.NE else m.none(p)
    if a is b and not t.is_float:
        return m.constant(BOOLEAN, condition in _REFLEXIVE)
    if _is(b, 0) and _made_by(a, "object_top") and condition in (Condition.EQ, Condition.NE):
        return m.constant(BOOLEAN, condition is Condition.NE)  # no object has null's offset
    return None


def _none(m: SimplifyingEmitter, static: Any, p: Value) -> Value | None:
    inner = _made_by(p, "none")
    if inner is not None:
        return inner.arguments[0]
    compared = _made_by(p, "compare")
    if compared is not None:
        t, condition = compared.static
        assert isinstance(t, Type)
        assert isinstance(condition, Condition)
        if not t.is_float:
            return m.compare(t, _INVERSE[condition], *compared.arguments)
    return None


def _all(m: SimplifyingEmitter, static: Any, p: Value, q: Value) -> Value | None:
    if _is(p, 1) or p is q:
        return q
    if _is(q, 1):
        return p
    return p if _is(p, 0) else q if _is(q, 0) else None


def _any(m: SimplifyingEmitter, static: Any, p: Value, q: Value) -> Value | None:
    if _is(p, 0) or p is q:
        return q
    if _is(q, 0):
        return p
    return p if _is(p, 1) else q if _is(q, 1) else None


_ABOVE_ZERO = {(t, c) for t in (I32, I64) for c in (Condition.GT_U, Condition.NE)}


def _select(m: SimplifyingEmitter, static: Any, p: Value, a: Value, b: Value) -> Value | None:
    if isinstance(p, Constant):
        return a if p.bits else b
    if a is b:
        return a
    unordered = _made_by(p, "compare")
    if unordered is not None and unordered.arguments == (a, b) and _is(b, 0):
        if unordered.static in _ABOVE_ZERO:
            return a  # if it is not above zero it is zero
        return None
    if (
        unordered is not None
        and unordered.static[1] is Condition.NE
        and unordered.arguments == (b, b)
        and isinstance(a, Constant)
        and a.type in CANONICAL_NAN
        and a.bits == CANONICAL_NAN[a.type]
    ):
        return m.canonical(a.type, b)
    return None


def _canonical(m: SimplifyingEmitter, static: Any, a: Value) -> Value | None:
    return a if _made_by(a, "canonical") else None


def _to_slot(m: SimplifyingEmitter, static: Any, a: Value) -> Value | None:
    return a if static[0] is I64 else None


def _from_slot(m: SimplifyingEmitter, static: Any, a: Value) -> Value | None:
    (t,) = static
    if t is I64:
        return a
    stored = _made_by(a, "to_slot")
    if stored is not None and stored.static[0] is t:
        return stored.arguments[0]
    chosen = _made_by(a, "select")
    if chosen is not None:
        p, x, y = chosen.arguments
        return m.select(p, m.from_slot(t, x), m.from_slot(t, y))
    return None


def _wrap(m: SimplifyingEmitter, static: Any, a: Value) -> Value | None:
    wide = _made_by(a, "extend_u") or _made_by(a, "extend_s")
    return wide.arguments[0] if wide is not None else None


def _reinterpret(m: SimplifyingEmitter, static: Any, a: Value) -> Value | None:
    inner = _made_by(a, "reinterpret")
    return inner.arguments[0] if inner is not None else None


_RULES: dict[str, Any] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "add_overflows": _sum_overflows,
    "sub_overflows": _difference_overflows,
    "mul_overflows": _product_overflows,
    "bit_and": _bit_and,
    "bit_or": _or_xor,
    "bit_xor": _or_xor,
    "shl": _shift,
    "shr_s": _shift,
    "shr_u": _shift,
    "compare": _compare,
    "none": _none,
    "all": _all,
    "any": _any,
    "select": _select,
    "canonical": _canonical,
    "to_slot": _to_slot,
    "from_slot": _from_slot,
    "wrap": _wrap,
    "reinterpret": _reinterpret,
}
"""Identities by operation; each yields a value or None."""
