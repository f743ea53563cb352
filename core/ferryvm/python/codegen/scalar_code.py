# SPDX-License-Identifier: Apache-2.0
"""Operators on NumPy's scalars: the kind of the result, and code for it.

The types are those of NEP 50: a Python number takes the type of the scalar beside it. Integers
wrap, a division by zero gives 0, or an infinity; NumPy warns there, compiled code does not.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from ferryvm.isa.type import I64, Type
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.hosted import scalar_function
from ferryvm.python.value.kind import DTYPES, Kind, Number, Scalar

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code

_BITWISE = {"&": "and", "|": "or", "^": "xor"}
_PLAIN = {"+": "add", "-": "sub", "*": "mul"}
_OF_BOOLEANS = {"+": "or", "*": "and"}
"""The instructions of arithmetic of `numpy.bool`."""


def promoted(left: Kind, right: Kind) -> np.dtype[np.generic]:
    """The common dtype of a NumPy scalar and another number."""
    parts = [
        np.dtype(each.dtype) if isinstance(each, Scalar) else each.type
        for each in (left, right)
        if isinstance(each, Scalar | Number)
    ]
    samples = [part(0) if isinstance(part, type) else part for part in parts]
    return np.result_type(*samples)


def binary_kind(node: ast.AST, symbol: str, left: Kind, right: Kind) -> Scalar:
    """The kind of `left symbol right`, one of which is a scalar. Raises NotCompilableError."""
    dtype = promoted(left, right)
    name = dtype.name
    is_boolean, is_float = name == "bool", dtype.kind == "f"
    if name in DTYPES:
        if symbol in _BITWISE and not is_float:
            return Scalar(name)
        if symbol == "/":
            return Scalar(name if is_float else "float64")
        if is_boolean and symbol in _OF_BOOLEANS:
            return Scalar(name)
        if symbol in ("+", "-", "*", "//", "%", "**") and not is_boolean:
            return Scalar(name)
        if symbol in ("<<", ">>") and not is_boolean and not is_float:
            return Scalar(name)
    raise NotCompilableError(
        node, f"cannot compile {left} {symbol} {right}; convert with float() or int()"
    )


def binary(b: Code, node: ast.BinOp, symbol: str, result: Scalar) -> None:
    """Push the value of an operator, one of whose operands is a scalar."""
    f, word = b.f, result.word
    if symbol == "**" and result.is_float:
        from ferryvm.python.codegen.power import numpy_power

        numpy_power(b, node, result)
        return
    b.push_as(node.left, result)
    b.push_as(node.right, result)
    b.at(node)
    if symbol in _BITWISE:
        getattr(f, f"{word}_{_BITWISE[symbol]}")()
    elif result.dtype == "bool":
        getattr(f, f"{word}_{_OF_BOOLEANS[symbol]}")()
    elif symbol == "**":
        f.call(b.hosted(scalar_function.power, (result, result), result))
    elif symbol == "/":
        getattr(f, f"{word}_div")()
    elif symbol in ("//", "%"):
        _divide(b, node, symbol, result)
    elif symbol in ("<<", ">>"):
        _shift(b, symbol, result)
    else:
        getattr(f, f"{word}_{_PLAIN[symbol]}")()
        wrap(b, result.dtype)


def _divide(b: Code, node: ast.BinOp, symbol: str, kind: Scalar) -> None:
    if kind.is_float:
        _divide_floats(b, node, symbol, kind.word)
    elif kind.is_full:
        _divide_unsigned(b, symbol, kind.word)
    else:
        _divide_signed(b, symbol, kind.word)
        wrap(b, kind.dtype)


def _divide_unsigned(b: Code, symbol: str, word: Type) -> None:
    """Of integers without a sign: by 0 it is 0."""
    f, divisor, dividend = b.f, b.spare(word), b.spare(word)
    f.local_set(divisor)
    f.local_set(dividend)
    f.local_get(divisor)
    getattr(f, f"{word}_eqz")()
    with f.if_([word]):
        getattr(f, f"{word}_const")(0)
        f.else_()
        f.local_get(dividend)
        f.local_get(divisor)
        getattr(f, f"{word}_{'div' if symbol == '//' else 'rem'}_u")()


def _divide_signed(b: Code, symbol: str, word: Type) -> None:
    """Floored: by 0 it is 0, and the smallest by -1 wraps."""
    f, divisor, dividend = b.f, b.spare(word), b.spare(word)
    f.local_set(divisor)
    f.local_set(dividend)
    constant = getattr(f, f"{word}_const")
    f.local_get(divisor)
    getattr(f, f"{word}_eqz")()
    with f.if_([word]):
        constant(0)
        f.else_()
        if symbol == "//":
            f.local_get(divisor)
            constant(-1)
            getattr(f, f"{word}_eq")()
            with f.if_([word]):
                constant(0)
                f.local_get(dividend)
                getattr(f, f"{word}_sub")()
                f.else_()
                f.local_get(dividend)
                f.local_get(divisor)
                getattr(f, f"{word}_div_floor")()
        else:
            f.local_get(dividend)
            f.local_get(divisor)
            getattr(f, f"{word}_mod_floor")()


def _divide_floats(b: Code, node: ast.BinOp, symbol: str, word: Type) -> None:
    """Floored, as Python's; by 0 the quotient is that of `/`."""
    from ferryvm.python.codegen.power import floored

    f, divisor, dividend = b.f, b.spare(word), b.spare(word)
    f.local_set(divisor)
    f.local_set(dividend)
    if symbol == "//":
        f.local_get(dividend)
        f.local_get(divisor)
        getattr(f, f"{word}_div")()
    f.local_get(dividend)
    f.local_get(divisor)
    floored(b, node, symbol, word)
    if symbol == "//":
        f.local_get(divisor)
        getattr(f, f"{word}_const")(0.0)
        getattr(f, f"{word}_eq")()
        f.select()


def _shift(b: Code, symbol: str, kind: Scalar) -> None:
    """By a count that is negative, or that all bits leave, shifts give 0, or the sign."""
    word, bits = kind.word, kind.bits
    f, count = b.f, b.spare(word)
    constant = getattr(f, f"{word}_const")
    f.local_set(count)
    if symbol == ">>" and kind.dtype[0] == "i":
        f.local_get(count)
        constant(bits - 1)
        f.local_get(count)
        constant(bits)
        getattr(f, f"{word}_lt_u")()
        f.select()
        getattr(f, f"{word}_shr_s")()
        return
    f.local_get(count)
    getattr(f, f"{word}_{'shl' if symbol == '<<' else 'shr_u'}")()
    wrap(b, kind.dtype)
    constant(0)
    f.local_get(count)
    constant(bits)
    getattr(f, f"{word}_lt_u")()
    f.select()


def wrap(b: Code, dtype: str) -> None:
    """Bring a result in an i32 into the range of a narrow dtype."""
    f = b.f
    if dtype == "int8":
        f.i32_extend8_s()
    elif dtype == "int16":
        f.i32_extend16_s()
    elif dtype in ("uint8", "uint16"):
        f.i32_const(0xFF if dtype == "uint8" else 0xFFFF)
        f.i32_and()


def cast(b: Code, source: Scalar, target: Scalar) -> None:
    """Turn an integer on the stack into another type of integers, as NumPy's types do: it wraps."""
    f = b.f
    if source.word is I64 and target.word is not I64:
        f.i32_wrap_i64()
    elif source.word is not I64 and target.word is I64:
        getattr(f, f"i64_extend_i32_{'u' if source.is_full else 's'}")()
    if source.word is I64 or target.bits < source.bits or source.dtype[0] != target.dtype[0]:
        wrap(b, target.dtype)
