# SPDX-License-Identifier: Apache-2.0
"""Calls of NumPy's functions of two numbers: operators by their names, `minimum`, `clip` and
others.

Python numbers alone become NumPy's; beside a scalar they take its type. Results are scalars, and
nothing warns.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from ferryvm.python.codegen import operation
from ferryvm.python.codegen.scalar_code import promoted, wrap
from ferryvm.python.control_flow.graph import Known
from ferryvm.python.value.kind import DTYPES, Kind, Number, Scalar, Tuple

if TYPE_CHECKING:
    from ferryvm.build import Local
    from ferryvm.python.codegen.code import Code

OPERATORS: dict[object, ast.operator] = {
    np.add: ast.Add(),
    np.subtract: ast.Sub(),
    np.multiply: ast.Mult(),
    np.divide: ast.Div(),
    np.floor_divide: ast.FloorDiv(),
    np.mod: ast.Mod(),
    np.power: ast.Pow(),
    np.bitwise_and: ast.BitAnd(),
    np.bitwise_or: ast.BitOr(),
    np.bitwise_xor: ast.BitXor(),
    np.left_shift: ast.LShift(),
    np.right_shift: ast.RShift(),
}
"""Functions that are operators."""
_EXTREMES: dict[object, str] = {np.minimum: "lt", np.maximum: "gt"}
_OF_FLOATS: dict[object, str] = {
    np.hypot: "hypot",
    np.arctan2: "atan2",
    np.copysign: "copysign",
    np.fmod: "fmod",
}
_TESTS = (np.isnan, np.isinf, np.isfinite)
FUNCTIONS: dict[object, int] = {
    **dict.fromkeys((*OPERATORS, *_EXTREMES, *_OF_FLOATS), 2),
    **dict.fromkeys((*_TESTS, np.sign, np.square), 1),
    np.clip: 3,
}
"""All functions of this module, with the number of their arguments."""
_PYTHON = {int: np.int64, float: np.float64, bool: np.bool_}


def _of_numpy(kind: Kind) -> Scalar | None:
    """The kind of a number in NumPy; None for others."""
    if isinstance(kind, Number):
        return Scalar(np.dtype(_PYTHON[kind.type]).name)
    return kind if isinstance(kind, Scalar) else None


def _common(function: object, kinds: list[Kind]) -> Scalar | None:
    """The kind that operands have in common."""
    found: Kind = kinds[0]
    if not all(isinstance(kind, Number | Scalar) for kind in kinds):
        return None
    if function is np.clip:  # it makes an array of it
        found = _of_numpy(found) or found
    if all(isinstance(kind, Number) for kind in kinds):
        found = _of_numpy(found) or found
        kinds = [_of_numpy(kind) or kind for kind in kinds]
    for kind in kinds[1:]:
        name = promoted(found, kind).name
        if name not in DTYPES:
            return None
        found = Scalar(name)
    return _of_numpy(found)


def call_kind(node: ast.Call, function: object, kinds: list[Kind]) -> Kind | None:
    """The kind of the value of a call; None if it cannot be compiled."""
    common = _common(function, kinds) if len(kinds) == FUNCTIONS[function] else None
    if common is None:
        return None
    if function in OPERATORS:
        left, right = _wrapped(kinds)
        return operation.binary_kind(node, OPERATORS[function], left, right)
    if function in _TESTS:
        return Scalar("bool")
    if function in _OF_FLOATS:
        return common if common.is_float else None
    return None if common.dtype == "bool" else common


def _wrapped(kinds: list[Kind]) -> list[Kind]:
    """The kinds of operands, of which one is NumPy's."""
    if all(isinstance(kind, Number) for kind in kinds):
        return [_of_numpy(kind) or kind for kind in kinds]
    return kinds


def call(b: Code, node: ast.Call, function: object, kinds: list[Kind]) -> None:
    """Push the value of a call."""
    if function in OPERATORS:
        left, right = map(_wrapped_node, node.args, kinds, _wrapped(kinds))
        made = ast.BinOp(left, OPERATORS[function], right)
        b.push(ast.copy_location(made, node))
        return
    common = _common(function, kinds)
    assert common is not None
    for argument, kind in zip(node.args, kinds, strict=True):
        b.push_as(argument, kind)
        if kind != common:
            operation.convert(b, node, kind, common)
    b.at(node)
    word = common.word
    if function in _OF_FLOATS:
        getattr(b.f, f"{word}_{_OF_FLOATS[function]}")()
    elif function in _TESTS:
        _test(b, function, common)
    elif function is np.square:
        value = b.spare(word)
        b.f.local_set(value)
        b.f.local_get(value)
        b.f.local_get(value)
        getattr(b.f, f"{word}_mul")()
        wrap(b, common.dtype)
    elif function is np.sign:
        _sign(b, common)
    elif function is np.clip:
        value, low, high = b.locals(f"%clip {word}", Tuple((common,) * 3))
        for local in (high, low, value):
            b.f.local_set(local)
        b.f.local_get(value)
        b.f.local_get(low)
        _extreme(b, common, "ge")
        b.f.local_get(high)
        _extreme(b, common, "le")
    else:
        _extreme(b, common, _EXTREMES[function])


def _wrapped_node(node: ast.expr, kind: Kind, wanted: Kind) -> ast.expr:
    if kind == wanted:
        return node
    assert isinstance(kind, Number)
    made = ast.Call(Known(_PYTHON[kind.type], node), [node], [])
    return ast.copy_location(made, node)


def _compare(b: Code, kind: Scalar, left: Local, right: Local, name: str) -> None:
    f = b.f
    f.local_get(left)
    f.local_get(right)
    suffix = "" if kind.is_float or name in ("eq", "ne") else "_u" if kind.is_full else "_s"
    getattr(f, f"{kind.word}_{name}{suffix}")()


def _extreme(b: Code, kind: Scalar, name: str) -> None:
    """The lesser or greater one of two numbers on the stack, by a comparison whose sign of zero is
    NumPy's on x86. Of a NaN and a number, the NaN."""
    f, right, left = b.f, b.spare(kind.word), b.spare(kind.word)
    f.local_set(right)
    f.local_set(left)
    f.local_get(left)
    f.local_get(right)
    _compare(b, kind, left, right, name)
    if kind.is_float:
        _compare(b, kind, left, left, "ne")
        f.i32_or()
    f.select()


def _sign(b: Code, kind: Scalar) -> None:
    """-1, 0 or 1; a NaN is its own."""
    f, word, value = b.f, kind.word, b.spare(kind.word)
    zero, one, minus = (0.0, 1.0, -1.0) if kind.is_float else (0, 1, -1)
    constant = getattr(f, f"{word}_const")
    f.local_set(value)
    constant(one)
    constant(minus)
    constant(zero)
    f.local_get(value)
    constant(zero)
    suffix = "" if kind.is_float else "_s"
    getattr(f, f"{word}_lt{suffix}")()
    f.select()
    f.local_get(value)
    constant(zero)
    getattr(f, f"{word}_gt{'_u' if kind.dtype[0] == 'u' else suffix}")()
    f.select()
    if kind.is_float:
        result = b.spare(word)
        f.local_set(result)
        f.local_get(value)
        f.local_get(result)
        _compare(b, kind, value, value, "ne")
        f.select()


def _test(b: Code, function: object, kind: Scalar) -> None:
    f, word = b.f, kind.word
    if not kind.is_float:
        f.drop()
        f.i32_const(int(function is np.isfinite))
        return
    if function is np.isnan:
        value = b.spare(word)
        f.local_set(value)
        _compare(b, kind, value, value, "ne")
        return
    getattr(f, f"{word}_abs")()
    getattr(f, f"{word}_const")(float("inf"))
    getattr(f, f"{word}_{'eq' if function is np.isinf else 'lt'}")()
