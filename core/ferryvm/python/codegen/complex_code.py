# SPDX-License-Identifier: Apache-2.0
"""Operators on complex numbers, which are two floats: the kind of the result, and code for it.

Python's follow CPython's Objects/complexobject.c, operation by operation, so that signs of zeros
and last digits are its own; NumPy's divide as its scalars do. Python 3.14 changed the rules for
complex numbers with a NaN, and beside floats: there, CPython computes the first, and the second are
refused.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

import numpy as np

from ferryvm.isa.type import F32, F64, I32, I64, Type
from ferryvm.python.control_flow.graph import Known
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.hosted import complex_function
from ferryvm.python.value.kind import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    Array,
    Complex,
    Kind,
    Number,
    Scalar,
    Tuple,
)

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code

_HAS_RULES_OF_C = sys.version_info >= (3, 14)
"""True if products and quotients follow ISO C, annex G."""
_SYMBOLS = ("+", "-", "*", "/", "**")


def is_complex(*kinds: Kind) -> bool:
    """True if one of these is a complex number."""
    return any(isinstance(kind, Complex) for kind in kinds)


def _is_real(kind: Kind) -> bool:
    return isinstance(kind, Number | Scalar)


def _is_python(kind: Kind) -> bool:
    return isinstance(kind, Number) or kind == COMPLEX


def promoted(left: Kind, right: Kind) -> Complex | None:
    """The common kind of a complex number and another number; None if the other one is none."""
    if not all(_is_real(kind) or is_complex(kind) for kind in (left, right)):
        return None
    if _is_python(left) and _is_python(right):
        return COMPLEX
    if left == COMPLEX and right == Scalar("float64"):  # which is a float
        return COMPLEX
    samples = [_sample(kind) for kind in (left, right)]
    return Complex(np.result_type(*samples).name)


def _sample(kind: Kind) -> np.dtype[np.generic] | complex:
    """A value that NumPy promotes as it does a kind (NEP 50)."""
    if isinstance(kind, Number):
        return kind.type(0)  # type: ignore[no-any-return]  # a number
    if kind == COMPLEX:
        return 0j
    assert isinstance(kind, Scalar | Complex)
    return np.dtype(kind.dtype)


def binary_kind(node: ast.AST, symbol: str, left: Kind, right: Kind) -> Kind:
    """The kind of `left symbol right`, one of which is complex. Raises NotCompilableError."""
    result = promoted(left, right)
    shown = f"cannot compile {left} {symbol} {right}"
    if result is None or symbol not in _SYMBOLS:
        raise NotCompilableError(node, f"{shown}; complex numbers have +, -, *, / and **")
    if symbol == "**" and result.dtype:
        raise NotCompilableError(node, f"{shown}; write complex(z) ** n")
    if _HAS_RULES_OF_C and result == COMPLEX and left != right:
        raise NotCompilableError(node, f"{shown}; write complex(x)")
    return result


def binary(b: Code, node: ast.BinOp, symbol: str) -> Complex:
    """Push the value of an operator, one of whose operands is complex."""
    kind = promoted(b.kind(node.left), b.kind(node.right))
    assert kind is not None
    push_complex(b, node.left, kind)
    push_complex(b, node.right, kind)
    b.at(node)
    f, word = b.f, kind.word
    if symbol in ("/", "**"):
        function = complex_function.power
        if symbol == "/":
            function = complex_function.quotient
            if kind.dtype:
                function = complex_function.quotient_of_numpy
        f.call(b.hosted(function, (kind.part,) * 4, Tuple((kind.part, kind.part))))
        if _HAS_RULES_OF_C and kind == COMPLEX:
            _leave_unless_a_number(b, node)
        return kind
    d, c, y, x = (b.spare(word) for _ in range(4))
    for local in (d, c, y, x):
        f.local_set(local)
    if symbol == "*":
        for pairs, joined in ((((x, c), (y, d)), "sub"), (((x, d), (y, c)), "add")):
            for one, other in pairs:
                f.local_get(one)
                f.local_get(other)
                getattr(f, f"{word}_mul")()
            getattr(f, f"{word}_{joined}")()
        if _HAS_RULES_OF_C and kind == COMPLEX:
            _leave_unless_a_number(b, node)
        return kind
    for one, other in ((x, c), (y, d)):
        f.local_get(one)
        f.local_get(other)
        getattr(f, f"{word}_{'add' if symbol == '+' else 'sub'}")()
    return kind


def _leave_unless_a_number(b: Code, node: ast.AST) -> None:
    """Leave it to Python if both parts on the stack are NaN."""
    f, parts = b.f, (b.spare(F64), b.spare(F64))
    for local in reversed(parts):
        f.local_set(local)
    for local in parts:
        f.local_get(local)
        f.local_get(local)
        f.f64_ne()
    f.i32_and()
    b.throw_if(node, OverflowError, "a complex number that is not a number", is_limit=True)
    for local in parts:
        f.local_get(local)


def push_complex(b: Code, node: ast.expr, kind: Complex) -> None:
    """Push the value of an expression as a complex number, as operators do."""
    if isinstance(node, ast.Constant | Known) and b.kind(node) in (INT, FLOAT):
        b.push_as(node, kind.part)
        getattr(b.f, f"{kind.word}_const")(0.0)
    else:
        convert(b, node, b.push(node), kind)


def convert(b: Code, node: ast.AST, source: Kind, target: Complex) -> None:
    """Turn the number on top of the stack into a complex one, as operators do."""
    f = b.f
    if isinstance(source, Number | Scalar):
        _as_part(b, source, target.word)
        getattr(f, f"{target.word}_const")(0.0)
        return
    if not isinstance(source, Complex):
        raise NotCompilableError(node, f"{source} cannot be used as {target}")
    if source.word is target.word:
        return
    imaginary = b.spare(source.word)
    f.local_set(imaginary)
    change = f.f32_demote_f64 if target.word is F32 else f.f64_promote_f32
    change()
    f.local_get(imaginary)
    change()


def _as_part(b: Code, source: Number | Scalar, want: Type) -> None:
    """Turn a number on the stack into a float of a part."""
    f, have = b.f, source.word
    if have in (I32, I64):
        sign = "u" if isinstance(source, Scalar) and source.is_full else "s"
        getattr(f, f"{want}_convert_{have}_{sign}")()
    elif have is not want:
        f.f32_demote_f64() if want is F32 else f.f64_promote_f32()


def unary(b: Code, node: ast.UnaryOp, kind: Complex) -> None:
    """Push the value of `+` or `-`."""
    b.push(node.operand)
    if isinstance(node.op, ast.USub):
        negate(b, kind)


def negate(b: Code, kind: Complex, is_conjugate: bool = False) -> None:
    """Negate the number on top of the stack, or its imaginary part alone."""
    f, imaginary = b.f, b.spare(kind.word)
    change = getattr(f, f"{kind.word}_neg")
    if not is_conjugate:
        f.local_set(imaginary)
        change()
        f.local_get(imaginary)
    change()


def boolean(b: Code, kind: Complex) -> None:
    """Turn the number on top of the stack into an i32: 1 unless it is zero."""
    f, imaginary = b.f, b.spare(kind.word)
    f.local_set(imaginary)
    for local in (None, imaginary):
        if local is not None:
            f.local_get(local)
        getattr(f, f"{kind.word}_const")(0.0)
        getattr(f, f"{kind.word}_ne")()
    f.i32_or()


def compare(b: Code, node: ast.Compare, symbol: str) -> Kind:
    """Push the value of `==` or `!=`. Raises NotCompilableError for others."""
    left, right = b.kind(node.left), b.kind(node.comparators[0])
    common = promoted(left, right)
    if common is None or symbol not in ("==", "!="):
        shown = f"cannot compile {left} {symbol} {right}"
        what = f"{shown}: complex numbers have no order here"
        raise NotCompilableError(node, f"{what}; compare abs(z), z.real or z.imag")
    f, word = b.f, common.word
    if common == COMPLEX and INT in (left, right):  # exactly, as integers are compared with floats
        _compare_with_integer(b, node, left)
    else:
        for each in (node.left, node.comparators[0]):
            push_complex(b, each, common)
        d, c, y = (b.spare(word) for _ in range(3))
        for local in (d, c, y):
            f.local_set(local)
        f.local_get(c)
        getattr(f, f"{word}_eq")()
        f.local_get(y)
        f.local_get(d)
        getattr(f, f"{word}_eq")()
        f.i32_and()
    if symbol == "!=":
        f.i32_eqz()
    return Scalar("bool") if common.dtype else BOOL


def _compare_with_integer(b: Code, node: ast.Compare, left: Kind) -> None:
    f = b.f
    integer, number = node.left, node.comparators[0]
    if left == COMPLEX:
        integer, number = number, integer
    b.push(node.left)
    b.push(node.comparators[0])
    b.at(node)
    value, real, imaginary = b.spare(I64), b.spare(F64), b.spare(F64)
    for local in (imaginary, real, value) if left == INT else (value, imaginary, real):
        f.local_set(local)
    f.local_get(value)
    f.f64_convert_i64_s()
    f.local_get(real)
    f.f64_eq()
    f.local_get(value)
    f.local_get(real)
    f.i64_trunc_sat_f64_s()
    f.i64_eq()
    f.i32_and()
    f.local_get(real)
    f.f64_const(2.0**63)
    f.f64_ne()
    f.i32_and()
    f.local_get(imaginary)
    f.f64_const(0.0)
    f.f64_eq()
    f.i32_and()


# --- elements of arrays ---------------------------------------------------------------------


def push_element(b: Code, of: Array) -> None:
    """Turn an array and the number of an element on the stack into the element."""
    f = b.f
    array, place = b.locals(f"%pair of {of.dtype}", Array(of.dtype, 1))
    f.local_set(place)
    f.local_set(array)
    for part in range(2):
        _push_place(b, array, place, part)
        getattr(f, f"array_get_{of.element}")()


def store_element(b: Code, of: Array) -> None:
    """Pop an array, the number of an element, and the element, and store it."""
    f, word = b.f, of.element.type
    array, place = b.locals(f"%pair of {of.dtype}", Array(of.dtype, 1))
    imaginary, real = b.spare(word), b.spare(word)
    for local in (imaginary, real, place, array):
        f.local_set(local)
    for part, value in enumerate((real, imaginary)):
        _push_place(b, array, place, part)
        f.local_get(value)
        getattr(f, f"array_set_{of.element}")()


def _push_place(b: Code, array: object, place: object, part: int) -> None:
    f = b.f
    f.local_get(array)  # type: ignore[arg-type]  # a local
    f.local_get(place)  # type: ignore[arg-type]  # a local
    f.i64_const(1)
    f.i64_shl()
    if part:
        f.i64_const(1)
        f.i64_add()


# --- attributes and functions ---------------------------------------------------------------


def attribute_kind(kind: Kind, name: str) -> Kind | None:
    """The kind of `.real` or `.imag` of a number; None for others."""
    if name not in ("real", "imag"):
        return None
    if isinstance(kind, Complex):
        return kind.part
    if isinstance(kind, Number | Scalar):
        return INT if kind == BOOL else kind
    return None


def push_attribute(b: Code, node: ast.Attribute, kind: Kind) -> None:
    """Push `.real` or `.imag` of a number."""
    of = b.kind(node.value)
    if isinstance(of, Complex):
        b.push_slot(node.value, int(node.attr == "imag"))
        return
    b.push_as(node.value, kind)
    if node.attr == "imag":
        word = kind.slots[0]
        b.f.drop()
        getattr(b.f, f"{word}_const")(0 if word in (I32, I64) else 0.0)


def absolute(b: Code, node: ast.Call, kind: Complex) -> None:
    """Push the absolute value of the complex argument of a call: OverflowError where it does not
    fit."""
    f, word = b.f, kind.word
    b.push(node.args[0])
    b.at(node)
    if kind.dtype:
        getattr(f, f"{word}_hypot")()
        return
    f.call(b.hosted(complex_function.absolute, (FLOAT, FLOAT), FLOAT))


def of_parts(b: Code, node: ast.Call, kinds: list[Kind]) -> None:
    """Push `complex(x)` or `complex(x, y)`."""
    if len(kinds) == 1:
        push_complex(b, node.args[0], COMPLEX)
        return
    for argument in node.args:
        b.push_as(argument, FLOAT)


def of_parts_kind(kinds: list[Kind]) -> Kind | None:
    """The kind of `complex(...)` of these; None if it cannot be compiled."""
    if len(kinds) == 1 and is_complex(*kinds):
        return COMPLEX
    return COMPLEX if all(map(_is_real, kinds)) else None


def conjugate_kind(kinds: list[Kind]) -> Kind | None:
    """The kind of `.conjugate()` of a number."""
    (kind,) = kinds
    if _is_real(kind):
        return INT if kind == BOOL else kind
    return kind if is_complex(kind) else None


def conjugate(b: Code, node: ast.Call, kinds: list[Kind]) -> None:
    """Push `.conjugate()` of a number."""
    (kind,) = kinds
    if isinstance(kind, Complex):
        b.push(node.args[0])
        negate(b, kind, is_conjugate=True)
    else:
        result = conjugate_kind(kinds)
        assert result is not None
        b.push_as(node.args[0], result)
