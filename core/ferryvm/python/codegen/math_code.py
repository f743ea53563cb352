# SPDX-License-Identifier: Apache-2.0
"""Functions of `math` that are one instruction, with the exceptions of CPython around it."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F64
from ferryvm.python.value.kind import BOOL, FLOAT, INT, INTEGERS, Kind

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code

_INF = float("inf")


class _Domain(NamedTuple):
    """The operands for which a function of `math` raises."""

    low: float = -_INF
    """Operands below are a domain error."""
    high: float = _INF
    is_open: bool = False
    """True if the lower bound itself is a domain error."""


FUNCTIONS: dict[object, tuple[str, _Domain]] = {
    math.sqrt: ("sqrt", _Domain(0.0)),
    math.exp: ("exp", _Domain()),
    math.expm1: ("expm1", _Domain()),
    math.log: ("log", _Domain(0.0, is_open=True)),
    math.log2: ("log2", _Domain(0.0, is_open=True)),
    math.log10: ("log10", _Domain(0.0, is_open=True)),
    math.log1p: ("log1p", _Domain(-1.0, is_open=True)),
    math.sin: ("sin", _Domain()),
    math.cos: ("cos", _Domain()),
    math.tan: ("tan", _Domain()),
    math.asin: ("asin", _Domain(-1.0, 1.0)),
    math.acos: ("acos", _Domain(-1.0, 1.0)),
    math.atan: ("atan", _Domain()),
    math.sinh: ("sinh", _Domain()),
    math.cosh: ("cosh", _Domain()),
    math.tanh: ("tanh", _Domain()),
    math.erf: ("erf", _Domain()),
    math.erfc: ("erfc", _Domain()),
}
"""The instructions of functions of one number, and the operands for which these raise."""
_INFINITE_OPERAND_FAULTS = (math.sin, math.cos, math.tan)
if hasattr(math, "exp2"):  # since Python 3.11
    FUNCTIONS[math.exp2] = ("exp2", _Domain())
    FUNCTIONS[math.cbrt] = ("cbrt", _Domain())


def mathematical(b: Code, node: ast.Call, function: object) -> None:
    """A function of `math`: ValueError outside its domain, OverflowError for an infinite result of
    a finite operand."""
    f = b.f
    name, domain = FUNCTIONS[function]
    b.push_as(node.args[0], FLOAT)
    b.at(node)
    operand = b.spare(F64)
    f.local_set(operand)
    wrong = []
    if domain.low > -_INF:
        wrong.append((domain.low, f.f64_le if domain.is_open else f.f64_lt))
    if domain.high < _INF:
        wrong.append((domain.high, f.f64_gt))
    if function in _INFINITE_OPERAND_FAULTS:
        wrong = [(_INF, f.f64_eq), (-_INF, f.f64_eq)]
    for bound, test in wrong:
        f.local_get(operand)
        f.f64_const(bound)
        test()
        b.throw_if(node, ValueError, "math domain error")
    f.local_get(operand)
    getattr(f, f"f64_{name}")()
    if name in ("exp", "exp2", "expm1", "sinh", "cosh"):
        result = b.spare(F64)
        f.local_set(result)
        f.local_get(result)
        f.f64_abs()
        f.f64_const(_INF)
        f.f64_eq()
        f.local_get(operand)
        f.f64_abs()
        f.f64_const(_INF)
        f.f64_ne()
        f.i32_and()
        b.throw_if(node, OverflowError, "math range error")
        f.local_get(result)


def rounded(b: Code, node: ast.Call, name: str) -> None:
    """A float as an int."""
    f = b.f
    kind = b.kind(node.args[0])
    if kind in (INT, BOOL) or (name == "nearest" and kind in INTEGERS):
        b.push_as(node.args[0], INT)
        return
    b.push_as(node.args[0], FLOAT)
    b.at(node)
    getattr(f, f"f64_{name}")()
    as_integer(b, node)


def as_integer(b: Code, node: ast.AST) -> None:
    """An integral f64 on the stack as an i64."""
    f, value = b.f, b.spare(F64)
    f.local_set(value)
    f.local_get(value)
    f.local_get(value)
    f.f64_ne()
    b.throw_if(node, ValueError, "cannot convert float NaN to integer")
    f.local_get(value)
    f.f64_abs()
    f.f64_const(_INF)
    f.f64_eq()
    b.throw_if(node, OverflowError, "cannot convert float infinity to integer")
    f.local_get(value)
    b.trap(node, Trap.INTEGER_OVERFLOW, OverflowError, None, is_limit=True)
    b.trap(node, Trap.INVALID_CONVERSION, OverflowError, None, is_limit=True)
    f.i64_trunc_f64_s()


def classified(test: str) -> Callable[[Code, ast.Call, list[Kind]], None]:
    def emit(b: Code, node: ast.Call, _kinds: list[Kind]) -> None:
        f = b.f
        b.push_as(node.args[0], FLOAT)
        if test == "isnan":
            value = b.spare(F64)
            f.local_set(value)
            f.local_get(value)
            f.local_get(value)
            f.f64_ne()
            return
        f.f64_abs()
        f.f64_const(_INF)
        if test == "isinf":
            f.f64_eq()
        else:
            f.f64_lt()

    return emit


def of_two(name: str) -> Callable[[Code, ast.Call, list[Kind]], None]:
    def emit(b: Code, node: ast.Call, _kinds: list[Kind]) -> None:
        b.push_as(node.args[0], FLOAT)
        b.push_as(node.args[1], FLOAT)
        b.at(node)
        getattr(b.f, f"f64_{name}")()

    return emit
