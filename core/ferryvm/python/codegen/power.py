# SPDX-License-Identifier: Apache-2.0
"""Powers, and the floored division of floats: functions that are added to a program."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F64, I64, Type
from ferryvm.python.value.kind import FLOAT, INT, Kind, Number, Scalar

if TYPE_CHECKING:
    from ferryvm.build import Function, Program
    from ferryvm.python.codegen.code import Code


def power(b: Code, node: ast.BinOp, result: Kind) -> None:
    """Push the power of two Python numbers."""
    f = b.f
    if result == INT:
        b.push_as(node.left, INT)
        b.push_as(node.right, INT)
        b.at(node)
        exponent = b.spare(I64)
        f.local_set(exponent)
        f.local_get(exponent)
        f.i64_const(0)
        f.i64_lt_s()
        b.throw_if(node, OverflowError, "a negative power of an int is a float", is_limit=True)
        f.local_get(exponent)
        b.trap(node, Trap.INTEGER_OVERFLOW, OverflowError, None, is_limit=True)
        f.call(b.shared("int ** int", _integer_power))
        return
    if _squared(b, node, FLOAT):
        _leave_infinite(b, node)
        return
    b.push_as(node.left, FLOAT)
    b.push_as(node.right, FLOAT)
    b.at(node)
    exponent, base = b.spare(F64), b.spare(F64)
    f.local_set(exponent)
    f.local_set(base)
    f.local_get(base)
    f.f64_const(0.0)
    f.f64_eq()
    f.local_get(exponent)
    f.f64_const(0.0)
    f.f64_lt()
    f.i32_and()
    b.throw_if(node, ZeroDivisionError, "0.0 cannot be raised to a negative power")
    f.local_get(base)
    f.local_get(exponent)
    f.f64_pow()
    f.local_set(base)
    # A complex number, or a result that does not fit: Python decides.
    for compare_with in (float("inf"), float("-inf")):
        f.local_get(base)
        f.f64_const(compare_with)
        f.f64_eq()
        b.throw_if(node, OverflowError, "a power out of range", is_limit=True)
    f.local_get(base)
    f.local_get(base)
    f.f64_ne()
    b.throw_if(node, ValueError, "a power that is no number", is_limit=True)
    f.local_get(base)


def _leave_infinite(b: Code, node: ast.BinOp) -> None:
    """Leave an infinite square to Python, which raises OverflowError if the operand is finite."""
    f, value = b.f, b.spare(F64)
    f.local_set(value)
    f.local_get(value)
    f.f64_const(float("inf"))
    f.f64_eq()
    b.throw_if(node, OverflowError, "a power out of range", is_limit=True)
    f.local_get(value)


def _squared(b: Code, node: ast.BinOp, kind: Number | Scalar) -> bool:
    """Push the square of a float, if a power is one."""
    if not isinstance(node.right, ast.Constant) or node.right.value != 2:
        return False
    f, value = b.f, b.spare(kind.word)
    b.push_as(node.left, kind)
    b.at(node)
    f.local_set(value)
    f.local_get(value)
    f.local_get(value)
    getattr(f, f"{kind.word}_mul")()
    return True


def numpy_power(b: Code, node: ast.BinOp, result: Scalar) -> None:
    """Push the power of two floats of NumPy, which raises nothing."""
    if _squared(b, node, result):
        return
    b.push_as(node.left, result)
    b.push_as(node.right, result)
    b.at(node)
    getattr(b.f, f"{result.word}_pow")()


def _integer_power(program: Program, name: str) -> Function:
    """By squaring (Knuth, The Art of Computer Programming, volume 2, section 4.6.3); traps on
    overflow."""
    f = program.function(name, {"base": I64, "exponent": I64}, [I64])
    base, exponent = f.parameters
    result = f.local("result", I64)
    f.i64_const(1)
    f.local_set(result)
    with f.block() as done, f.loop() as again:
        f.local_get(exponent)
        f.i64_eqz()
        f.br_if(done)
        f.local_get(exponent)
        f.i64_const(1)
        f.i64_and()
        f.i32_wrap_i64()
        with f.if_():
            f.local_get(result)
            f.local_get(base)
            f.i64_mul_checked()
            f.local_set(result)
        f.local_get(exponent)
        f.i64_const(1)
        f.i64_shr_s()
        f.local_set(exponent)
        f.local_get(exponent)
        f.i64_eqz()
        f.br_if(done)
        f.local_get(base)
        f.local_get(base)
        f.i64_mul_checked()
        f.local_set(base)
        f.br(again)
    f.local_get(result)
    return f


def floored(b: Code, node: ast.BinOp, symbol: str, word: Type = F64) -> None:
    """Turn two floats on the stack into their floored quotient or modulus, as CPython's
    Objects/floatobject.c computes them."""
    make = functools.partial(_floored, word=word)
    b.f.call(b.shared(f"{word} {symbol} {word}", make))


def _floored(program: Program, name: str, word: Type) -> Function:
    f = program.function(name, {"x": word, "y": word}, [word])
    x, y = f.parameters

    def do(operation: str) -> Callable[..., None]:
        return getattr(f, f"{word}_{operation}")  # type: ignore[no-any-return]  # an emitter

    rest = f.local("rest", word)
    quotient, down = f.local("quotient", word), f.local("down", word)
    f.local_get(x)
    f.local_get(y)
    do("fmod")()
    f.local_set(rest)
    f.local_get(x)
    f.local_get(rest)
    do("sub")()
    f.local_get(y)
    do("div")()
    f.local_set(quotient)
    f.local_get(rest)
    do("const")(0.0)
    do("ne")()
    with f.if_():
        f.local_get(y)
        do("const")(0.0)
        do("lt")()
        f.local_get(rest)
        do("const")(0.0)
        do("lt")()
        f.i32_ne()
        with f.if_():
            f.local_get(rest)
            f.local_get(y)
            do("add")()
            f.local_set(rest)
            f.local_get(quotient)
            do("const")(1.0)
            do("sub")()
            f.local_set(quotient)
        f.else_()
        do("const")(0.0)
        f.local_get(y)
        do("copysign")()
        f.local_set(rest)
    if "%" in name:
        f.local_get(rest)
        return f
    f.local_get(quotient)
    do("const")(0.0)
    do("ne")()
    with f.if_([word]):
        f.local_get(quotient)
        do("floor")()
        f.local_set(down)
        f.local_get(down)
        do("const")(1.0)
        do("add")()
        f.local_get(down)
        f.local_get(quotient)
        f.local_get(down)
        do("sub")()
        do("const")(0.5)
        do("gt")()
        f.select()
        f.else_()
        do("const")(0.0)
        f.local_get(x)
        f.local_get(y)
        do("div")()
        do("copysign")()
    return f
