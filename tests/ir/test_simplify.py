# SPDX-License-Identifier: Apache-2.0
"""Every identity of the builder holds for every operand that matters."""

from __future__ import annotations

import contextlib
import itertools

import pytest

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Constant,
    Operation,
    Parameter,
    Static,
    Value,
    ValueType,
)
from ferryvm.ir.operation import PURE, SHAPES, AnyType, AttributeKind, IrError, computed_types
from ferryvm.ir.simplify import _RULES, evaluate
from ferryvm.isa.emitter import Condition
from ferryvm.isa.mathematics.table import TABLES
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, I32, I64, Type

NANS = {F32: (0x7FC0_0000, 0xFFC0_0001, 0x7F80_0001), F64: (0x7FF8 << 48, 0xFFF8_0000_0000_0001)}
EDGES: dict[ValueType, tuple[int, ...]] = {
    I32: (0, 1, 2, 31, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF),
    I64: (0, 1, 7, 63, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1),
    F32: (0, 0x8000_0000, 0x3F80_0000, 0x7F80_0000, *NANS[F32]),
    F64: (0, 1 << 63, 0x3FF0 << 48, 0xFFF0 << 48, *NANS[F64]),
    BOOLEAN: (0, 1),
}

X: dict[ValueType, tuple[Parameter, Parameter]] = {
    t: (Parameter(t), Parameter(t)) for t in (*Type, BOOLEAN)
}
"""Two variables of each type."""


def operation(name: str, static: tuple[Static, ...], *arguments: Value) -> Operation:
    """One that nobody simplified."""
    types, result = computed_types(name, static)
    assert len(types) == len(arguments)
    t = arguments[1].type if isinstance(result, AnyType) else result
    return Operation(name, t, static, arguments)


def pool(m: Builder, t: ValueType) -> list[Value]:
    """Operands of a type, in all the forms that rules look for."""
    x, y = X[t]
    constants = [m.constant(t, bits) for bits in EDGES[t]]
    if t is BOOLEAN:
        a, b = X[I64]
        f, g = X[F64]
        compared = operation("compare", (I64, Condition.LT_S), a, b)
        unordered = operation("compare", (F64, Condition.LT), f, g)
        return [x, y, *constants, operation("none", (), x), compared, unordered]
    assert isinstance(t, Type)
    p, _ = X[BOOLEAN]
    found: list[Value] = [x, y, *constants, operation("select", (), p, x, y)]
    found.append(operation("reinterpret", (t, other(t)), X[other(t)][0]))
    if t.is_float:
        found.append(operation("canonical", (t,), x))
    else:
        found.append(operation("add", (t,), x, m.constant(t, 5)))
        found.append(operation("add", (t,), x, y))
        found.append(operation("add", (t,), y, x))
    if t is I32:
        found.append(operation("boolean_to_i32", (), p))
        found.append(operation("wrap", (), X[I64][0]))
    if t is I64:
        found += [operation(name, (), X[I32][0]) for name in ("extend_s", "extend_u")]
        found += [operation("to_slot", (each,), X[each][0]) for each in Type]
        slots = [operation("to_slot", (F64,), each) for each in X[F64]]
        found.append(operation("select", (), p, *slots))
    return found


def other(t: Type) -> Type:
    """The type of the same width."""
    return {I32: F32, F32: I32, I64: F64, F64: I64}[t]


def statics(name: str) -> list[tuple[Static, ...]]:
    """Everything that an operation can know."""
    types, conditions = list(Type), list(Condition)
    every: list[tuple[Static, ...]] = [(), *((t,) for t in types)]
    every += itertools.product(types, types)
    every += itertools.product(types, conditions)
    every += ((table,) for table in TABLES.values())
    kinds = SHAPES[name].static
    found = []
    for static in every:
        if len(static) == len(kinds) and all(map(AttributeKind.holds, kinds, static)):
            with contextlib.suppress(IrError):
                computed_types(name, static)
                found.append(static)
    return found


def value_of(value: Value, known: dict[Value, int]) -> int | None:
    """The bits of a value; None where a precondition of an operation does not hold."""
    if isinstance(value, Constant):
        return value.bits
    if value not in known:
        assert isinstance(value, Operation)
        bits = [value_of(argument, known) for argument in value.arguments]
        if None in bits:
            return None
        done = evaluate(value.name, value.static, tuple(b for b in bits if b is not None))
        if done is None:
            return None
        known[value] = done
    return known[value]


ASSIGNMENTS: list[dict[Value, int]] = [
    {X[t][n]: EDGES[t][(k * (n + 1) + n) % len(EDGES[t])] for t in X for n in (0, 1)}
    for k in range(9)
]


def cases(m: Builder, name: str) -> list[Operation]:
    """The operation with all operands of the pools."""
    found = []
    for static in statics(name):
        types, _ = computed_types(name, static)
        if name == "select":
            choices = [[pool(m, BOOLEAN), pool(m, t)[:4], pool(m, t)] for t in (I32, F32, F64)]
        else:
            choices = [[pool(m, t) for t in types if not isinstance(t, AnyType)]]
        for choice in choices:
            found += [operation(name, static, *each) for each in itertools.product(*choice)]
    return found


@pytest.mark.parametrize("name", sorted(PURE))
def test_what_the_builder_makes_has_the_bits_of_the_operation(name: str) -> None:
    m = Builder()
    m.open(Block("b", 0))
    simplified = 0
    for plain in cases(m, name):
        assert plain.type is not None
        made = m.pure(name, plain.static, plain.arguments, plain.type)
        assert made.type is plain.type
        is_same = isinstance(made, Operation) and made.arguments == plain.arguments
        simplified += not (is_same and not isinstance(made, Constant))
        for assignment in ASSIGNMENTS:
            wanted = value_of(plain, {**assignment})
            if wanted is not None:
                assert value_of(made, {**assignment}) == wanted, (name, plain.static)
    assert simplified or name not in _RULES


def test_the_selection_behind_an_operation_on_floats_is_one_canonical() -> None:
    m = Builder()
    m.open(Block("b", 0))
    for t in (F32, F64):
        a, b = X[t]
        total = m.fadd(t, a, b)
        is_nan = m.compare(t, Condition.NE, total, total)
        made = m.select(is_nan, m.constant(t, CANONICAL_NAN[t]), total)
        assert isinstance(made, Operation)
        assert made.name == "canonical"
        assert made.arguments == (total,)


@pytest.mark.parametrize("t", [I32, I64])
def test_a_number_or_zero_if_it_is_not_above_zero_is_the_number(t: Type) -> None:
    m = Builder()
    m.open(Block("b", 0))
    x, zero = X[t][0], m.constant(t, 0)
    for condition in (Condition.GT_U, Condition.NE):
        assert m.select(m.compare(t, condition, x, zero), x, zero) is x
    assert m.select(m.compare(t, Condition.GT_S, x, zero), x, zero) is not x


@pytest.mark.parametrize(
    ("name", "static", "bits"),
    [
        ("div_s", (I64,), (1, 0)),
        ("rem_u", (I32,), (1, 0)),
        ("to_int_s", (I64, F64), (0x7FF8 << 48,)),
        ("to_int_u", (I32, F64), (0x7FF0 << 48,)),
        ("shl", (I64,), (1, 64)),
        ("shr_s", (I32,), (1, 1 << 31)),
    ],
)
def test_what_a_check_stands_before_is_not_folded(
    name: str, static: tuple[Static, ...], bits: tuple[int, ...]
) -> None:
    assert evaluate(name, static, bits) is None
