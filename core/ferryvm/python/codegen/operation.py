# SPDX-License-Identifier: Apache-2.0
"""Operators on numbers: the kind of the result, and code for it.

Python's numbers follow the Python Language Reference, section 6; NumPy's scalars NEP 50: a Python
number takes the type of the scalar beside it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F32, F64, I32, I64, Type
from ferryvm.python.codegen import complex_code, scalar_code
from ferryvm.python.definition.site import DIVISION
from ferryvm.python.fault import NO_ARRAY, NotCompilableError
from ferryvm.python.value.kind import (
    BOOL,
    FLOAT,
    INT,
    Array,
    Complex,
    Kind,
    List,
    Number,
    Scalar,
    Text,
    Tuple,
    text_of,
)

if TYPE_CHECKING:
    from ferryvm.build import Local
    from ferryvm.python.codegen.code import Code

SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_BITWISE = {"&": "and", "|": "or", "^": "xor"}
_CHECKED = {"+": "add_checked", "-": "sub_checked", "*": "mul_checked"}
_PLAIN = {"+": "add", "-": "sub", "*": "mul"}
_FLOORED = {"//": "div_floor", "%": "mod_floor"}
EXACT = 1 << 53
"""Integers up to this magnitude are exact as f64."""


def is_number(kind: Kind) -> bool:
    """True for numbers, of Python or NumPy."""
    return isinstance(kind, Number | Scalar)


def binary_kind(node: ast.AST, op: ast.operator, left: Kind, right: Kind) -> Kind:
    """The kind of `left op right`. Raises NotCompilableError."""
    symbol = SYMBOLS.get(type(op), "@")
    if complex_code.is_complex(left, right):
        return complex_code.binary_kind(node, symbol, left, right)
    if isinstance(left, Number) and isinstance(right, Number):
        has_float = FLOAT in (left, right)
        if symbol in _BITWISE and not has_float:
            return BOOL if left is right is BOOL or (left == right == BOOL) else INT
        if symbol in ("<<", ">>") and not has_float:
            return INT
        if symbol in ("+", "-", "*", "//", "%", "**"):
            return FLOAT if has_float else INT
        if symbol == "/":
            return FLOAT
    elif is_number(left) and is_number(right):
        return scalar_code.binary_kind(node, symbol, left, right)
    elif symbol == "+" and isinstance(left, Tuple) and isinstance(right, Tuple):
        return Tuple(left.items + right.items)
    hint = NO_ARRAY if isinstance(left, Array) or isinstance(right, Array) else ""
    text = text_of(left)
    if symbol == "+" and text is not None and text == text_of(right):
        return text
    raise NotCompilableError(node, f"cannot compile {left} {symbol} {right}{hint}")


def binary(b: Code, node: ast.BinOp) -> Kind:
    """Push the value of a binary operator."""
    left, right = b.kind(node.left), b.kind(node.right)
    result = binary_kind(node, node.op, left, right)
    symbol = SYMBOLS[type(node.op)]
    if isinstance(result, Tuple):
        b.push(node.left)
        b.push(node.right)
    elif isinstance(result, Complex):
        complex_code.binary(b, node, symbol)
    elif isinstance(left, Number) and isinstance(right, Number):
        _of_python(b, node, symbol, result)
    else:
        assert isinstance(result, Scalar)
        scalar_code.binary(b, node, symbol, result)
    return result


def _of_python(b: Code, node: ast.BinOp, symbol: str, result: Kind) -> None:
    f = b.f
    if result == BOOL:
        b.push(node.left)
        b.push(node.right)
        b.at(node)
        getattr(f, f"i32_{_BITWISE[symbol]}")()
    elif symbol == "/" and FLOAT not in (b.kind(node.left), b.kind(node.right)):
        _quotient_of_integers(b, node)
    elif symbol == "**":
        from ferryvm.python.codegen.power import power

        power(b, node, result)
    elif result == FLOAT:
        b.push_as(node.left, FLOAT)
        b.push_as(node.right, FLOAT)
        b.at(node)
        if symbol in _PLAIN:
            getattr(f, f"f64_{_PLAIN[symbol]}")()
            return
        divisor = b.spare(F64)
        f.local_set(divisor)
        f.local_get(divisor)
        f.f64_const(0.0)
        f.f64_eq()
        b.throw_if(node, ZeroDivisionError, DIVISION["f" + symbol])
        f.local_get(divisor)
        if symbol == "/":
            f.f64_div()
        else:
            from ferryvm.python.codegen.power import floored

            floored(b, node, symbol)
    else:
        b.push_as(node.left, INT)
        b.push_as(node.right, INT)
        b.at(node)
        if symbol in _CHECKED:
            b.trap(node, Trap.INTEGER_OVERFLOW, OverflowError, None, is_limit=True)
            getattr(f, f"i64_{_CHECKED[symbol]}")()
        elif symbol in _FLOORED:
            b.trap(node, Trap.INTEGER_DIVIDE_BY_ZERO, ZeroDivisionError, DIVISION[symbol])
            if ZeroDivisionError in b.caught:
                divisor = b.spare(I64)
                f.local_set(divisor)
                f.local_get(divisor)
                f.i64_eqz()
                b.throw_if(node, ZeroDivisionError, DIVISION[symbol])
                f.local_get(divisor)
            b.trap(node, Trap.INTEGER_OVERFLOW, OverflowError, None, is_limit=True)
            getattr(f, f"i64_{_FLOORED[symbol]}")()
        elif symbol in _BITWISE:
            {"&": f.i64_and, "|": f.i64_or, "^": f.i64_xor}[symbol]()
        else:
            _shift(b, node, symbol)


def _shift(b: Code, node: ast.BinOp, symbol: str) -> None:
    """Of an i64 by an i64; left shifts trap where bits are lost."""
    f, count = b.f, b.spare(I64)
    f.local_set(count)
    f.local_get(count)
    f.i64_const(0)
    f.i64_lt_s()
    b.throw_if(node, ValueError, "negative shift count")
    if symbol == ">>":  # by 63 at most, which leaves the sign
        f.local_get(count)
        f.i64_const(63)
        f.local_get(count)
        f.i64_const(63)
        f.i64_lt_s()
        f.select()
        f.i64_shr_s()
        return
    value = b.spare(I64)
    f.local_set(value)
    f.local_get(value)
    f.i64_const(0)
    f.i64_ne()
    f.local_get(count)
    f.i64_const(62)
    f.i64_gt_s()
    f.i32_and()
    b.throw_if(node, OverflowError, None, is_limit=True)
    # 2^count fits now, or the value is 0.
    f.local_get(value)
    f.i64_const(1)
    f.local_get(count)
    f.i64_shl()
    b.trap(node, Trap.INTEGER_OVERFLOW, OverflowError, None, is_limit=True)
    f.i64_mul_checked()


def _quotient_of_integers(b: Code, node: ast.BinOp) -> None:
    """The f64 nearest to the exact quotient: that of the operands as f64, if they are exact."""
    f = b.f
    b.push_as(node.left, INT)
    b.push_as(node.right, INT)
    b.at(node)
    divisor, dividend = b.spare(I64), b.spare(I64)
    f.local_set(divisor)
    f.local_set(dividend)
    f.local_get(divisor)
    f.i64_eqz()
    b.throw_if(node, ZeroDivisionError, DIVISION["/"])
    for local in (dividend, divisor):
        exact(b, node, local)
    f.local_get(dividend)
    f.f64_convert_i64_s()
    f.local_get(divisor)
    f.f64_convert_i64_s()
    f.f64_div()


def exact(b: Code, node: ast.AST, local: Local) -> None:
    """Leave it to Python if the integer in a local is not exact as f64."""
    f = b.f
    f.local_get(local)
    f.i64_const(EXACT)
    f.i64_add()
    f.i64_const(2 * EXACT)
    f.i64_gt_u()
    b.throw_if(node, OverflowError, "an integer above 2**53 as a float", is_limit=True)


def convert(b: Code, node: ast.AST, source: Kind, target: Kind) -> None:
    """Turn the number on top of the stack into another kind, as an operator does with its
    operands. Raises NotCompilableError."""
    f = b.f
    if source == target:
        return
    if isinstance(target, Complex):
        complex_code.convert(b, node, source, target)
        return
    if isinstance(source, Complex):
        raise NotCompilableError(node, f"{source} cannot be used as {target}; write z.real")
    if not is_number(source) or not is_number(target):
        raise NotCompilableError(node, f"{source} cannot be used as {target}")
    assert isinstance(source, Number | Scalar)
    assert isinstance(target, Number | Scalar)
    is_weak = isinstance(source, Number) and isinstance(target, Scalar)
    if is_weak and target == Scalar("bool"):
        boolean(b, node, source)
        return
    have, want = source.word, target.word
    if have is want:
        if Scalar("uint64") in (source, target) and INT in (source, target):
            _checked_sign(b, node, is_weak)
        return
    sign = "u" if isinstance(source, Scalar) and source.is_full else "s"
    match have, want:
        case Type.I32, Type.I64:
            getattr(f, f"i64_extend_i32_{sign}")()
        case ((Type.I32 | Type.I64), (Type.F64 | Type.F32)):
            getattr(f, f"{want}_convert_{have}_{sign}")()
        case Type.F32, Type.F64:
            f.f64_promote_f32()
        case Type.F64, Type.F32 if is_weak:
            f.f32_demote_f64()
        case Type.I64, Type.I32 if is_weak:
            _narrowed(b, node, target)
        case _:
            raise NotCompilableError(node, f"{source} cannot be used as {target}")


def _checked_sign(b: Code, node: ast.AST, is_weak: bool) -> None:
    """An int as a NumPy integer of 64 bits without a sign, or the other way round: it must fit."""
    f, value = b.f, b.spare(I64)
    f.local_set(value)
    f.local_get(value)
    f.i64_const(0)
    f.i64_lt_s()
    message = "Python integer out of bounds for uint64" if is_weak else "an integer above 2**63"
    b.throw_if(node, OverflowError, message, is_limit=not is_weak)
    f.local_get(value)


def _narrowed(b: Code, node: ast.AST, target: Kind) -> None:
    """A Python int as a NumPy scalar of at most 32 bits; it must fit."""
    assert isinstance(target, Scalar)
    f, value = b.f, b.spare(I64)
    info = np.iinfo(target.dtype)
    f.local_set(value)
    for limit, compare in ((info.min, f.i64_lt_s), (info.max, f.i64_gt_s)):
        f.local_get(value)
        f.i64_const(int(limit))
        compare()
        b.throw_if(node, OverflowError, f"Python integer out of bounds for {target.dtype}")
    f.local_get(value)
    f.i32_wrap_i64()


def boolean(b: Code, node: ast.AST, kind: Kind) -> None:
    """Turn the value on top of the stack into an i32 that is its boolean value: 0 or 1."""
    f = b.f
    if kind == BOOL or kind == Scalar("bool"):
        return
    if isinstance(kind, Number | Scalar):
        word = kind.word
        getattr(f, f"{word}_const")(0 if word in (I32, I64) else 0.0)
        getattr(f, f"{word}_ne")()
        return
    if isinstance(kind, Complex):
        complex_code.boolean(b, kind)
        return
    if isinstance(kind, Text):
        length = b.spare(I64)
        f.drop()  # the stride
        f.local_set(length)
        f.drop()
        f.drop()
        f.local_get(length)
        f.i64_const(0)
        f.i64_ne()
        return
    if isinstance(kind, List):
        f.struct_get(b.list_struct["length"])
        f.i64_const(0)
        f.i64_ne()
        return
    raise NotCompilableError(node, f"{kind} has no boolean value here; compare it")


def unary(b: Code, node: ast.UnaryOp) -> Kind:
    """Push the value of a unary operator."""
    f, kind = b.f, b.kind(node.operand)
    result = unary_kind(node, kind)
    if isinstance(result, Complex):
        complex_code.unary(b, node, result)
        return result
    match node.op:
        case ast.Not():
            b.push(node.operand)
            boolean(b, node, kind)
            f.i32_eqz()
        case ast.UAdd():
            b.push_as(node.operand, result)
        case ast.Invert():
            b.push_as(node.operand, result)
            word = result.slots[0]
            getattr(f, f"{word}_const")(1 if result == Scalar("bool") else -1)
            getattr(f, f"{word}_xor")()
            if isinstance(result, Scalar):
                scalar_code.wrap(b, result.dtype)
        case ast.USub():
            word = result.slots[0]
            if word in (F32, F64):
                b.push_as(node.operand, result)
                getattr(f, f"{word}_neg")()
                return result
            getattr(f, f"{word}_const")(0)
            b.push_as(node.operand, result)
            b.at(node)
            if result == INT:
                b.trap(node, Trap.INTEGER_OVERFLOW, OverflowError, None, is_limit=True)
                f.i64_sub_checked()
            else:
                getattr(f, f"{word}_sub")()
                assert isinstance(result, Scalar)
                scalar_code.wrap(b, result.dtype)
    return result


def unary_kind(node: ast.UnaryOp, kind: Kind) -> Kind:
    """The kind of a unary operator's value. Raises NotCompilableError."""
    if isinstance(node.op, ast.Not):
        return BOOL
    if isinstance(kind, Number) and (kind != FLOAT or not isinstance(node.op, ast.Invert)):
        return INT if kind == BOOL else kind
    if isinstance(kind, Complex) and not isinstance(node.op, ast.Invert):
        return kind
    if isinstance(kind, Scalar):
        is_inverted = isinstance(node.op, ast.Invert)
        if is_inverted and not kind.is_float:
            return kind
        if not is_inverted and kind.dtype != "bool":
            return kind
    raise NotCompilableError(node, f"cannot compile this operator on {kind}")
