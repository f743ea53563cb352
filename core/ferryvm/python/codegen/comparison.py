# SPDX-License-Identifier: Apache-2.0
"""Comparisons of two values: code for those of numbers; `is` and others, which kinds determine."""

from __future__ import annotations

import ast
from types import NoneType
from typing import TYPE_CHECKING

import numpy as np

from ferryvm.isa.type import F64, I32, I64, Type
from ferryvm.python.codegen.complex_code import compare as complex_comparison
from ferryvm.python.codegen.complex_code import is_complex
from ferryvm.python.codegen.complex_code import promoted as promoted_complex
from ferryvm.python.codegen.function_value import is_inner
from ferryvm.python.codegen.known import class_of
from ferryvm.python.codegen.operation import SYMBOLS, exact, is_number
from ferryvm.python.codegen.scalar_code import promoted
from ferryvm.python.codegen.sequence_comparison import check as check_sequences
from ferryvm.python.codegen.sequence_comparison import compare as compare_sequences
from ferryvm.python.codegen.sequence_comparison import is_sequence
from ferryvm.python.codegen.text_code import can_compare
from ferryvm.python.codegen.text_code import compare as compare_texts
from ferryvm.python.control_flow.graph import Known
from ferryvm.python.fault import NO_ARRAY, NotCompilableError
from ferryvm.python.value.kind import (
    BOOL,
    FLOAT,
    INT,
    INTEGERS,
    Array,
    Constant,
    Kind,
    Number,
    Scalar,
    is_of_numpy,
)

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code

_COMPARED = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


def check(b: Code, node: ast.Compare, left: Kind, right: Kind) -> None:
    """Raise NotCompilableError for values that cannot be compared."""
    op = node.ops[0]
    symbol = SYMBOLS.get(type(op))
    if known_comparison(node, left, right) is not None:
        return
    if symbol is not None and is_sequence(left):
        check_sequences(b, node)
    elif not can_compare(node, left, right) and not (symbol and is_complex(left, right)):
        _check_numbers(node, left, right)


def _check_numbers(node: ast.Compare, left: Kind, right: Kind) -> None:
    op = node.ops[0]
    symbol = SYMBOLS.get(type(op))
    if symbol is None or not is_number(left) or not is_number(right):
        shown = symbol or {ast.In: "in", ast.NotIn: "not in"}.get(type(op), "?")
        hint = NO_ARRAY if isinstance(left, Array) or isinstance(right, Array) else ""
        raise NotCompilableError(node, f"cannot compile {left} {shown} {right}{hint}")


def compare(b: Code, node: ast.Compare) -> Kind:
    """Push the value of a comparison."""
    left, right = b.kind(node.left), b.kind(node.comparators[0])
    op = node.ops[0]
    if known_comparison(node, left, right) is not None:
        b.f.i32_const(int(bool(known_comparison(node, left, right))))
        return BOOL
    symbol = SYMBOLS.get(type(op))
    if symbol is not None and is_sequence(left):
        compare_sequences(b, node)
        return BOOL
    if can_compare(node, left, right):
        compare_texts(b, node)
        return BOOL
    if symbol is not None and is_complex(left, right):
        return complex_comparison(b, node, symbol)
    _check_numbers(node, left, right)
    assert symbol is not None
    assert isinstance(left, Number | Scalar)
    assert isinstance(right, Number | Scalar)
    f, name = b.f, _COMPARED[symbol]
    if isinstance(left, Number) and isinstance(right, Number):
        common: Kind = FLOAT if FLOAT in (left, right) else INT
        if left == right == BOOL:
            common = BOOL
        for each, kind in ((node.left, left), (node.comparators[0], right)):
            if common == FLOAT and kind == INT:
                b.push(each)
                value = b.spare(I64)
                f.local_set(value)
                exact(b, node, value)
                f.local_get(value)
                f.f64_convert_i64_s()
            else:
                b.push_as(each, common)
        b.at(node)
        word = F64 if common == FLOAT else I64 if common == INT else I32
        getattr(f, f"{word}_{name}" + _suffix(word, name))()
        return BOOL
    common = Scalar(promoted(left, right).name)
    if {left, right} <= {*INTEGERS} and (INT in (left, right) or common.is_float):
        common = INT  # an int need not fit into the other type
    b.push_as(node.left, common)
    b.push_as(node.comparators[0], common)
    b.at(node)
    suffix = _suffix(common.word, name)
    if isinstance(common, Scalar) and common.is_full:
        suffix = suffix.replace("s", "u")
    getattr(f, f"{common.word}_{name}" + suffix)()
    return Scalar("bool")


def is_of_scalars(left: Kind, right: Kind) -> bool:
    """True if the value of a comparison is a boolean value of NumPy."""
    if is_complex(left) and left == promoted_complex(left, right):
        return is_of_numpy(left)
    return is_of_numpy(left) or is_of_numpy(right)


def _suffix(word: Type, name: str) -> str:
    return "_s" if word in (I32, I64) and name not in ("eq", "ne") else ""


def _are_comparable(left: Kind, right: Kind) -> bool:
    """True for two texts, two types, or None twice, which are known."""
    if not isinstance(left, Constant) or not isinstance(right, Constant):
        return False
    return any(
        isinstance(left.value, type_) and isinstance(right.value, type_)
        for type_ in (str, type, NoneType)
    )


def _has_dtype(left: Kind, right: Kind) -> bool:
    """True for two constants, one of which is the dtype of an array."""
    both = [each.value for each in (left, right) if isinstance(each, Constant)]
    return len(both) == 2 and any(isinstance(each, np.dtype) for each in both)


def _family(kind: Kind) -> object:
    """Values of two families are never equal; None for a kind whose values may be equal to any."""
    if is_of_numpy(kind):
        return Scalar
    class_ = class_of(kind)
    if class_ in (bool, int, float, complex):
        return Number
    return class_ if class_ in (str, bytes, NoneType, tuple, list) else None


def _are_unlike(left: Kind, right: Kind, is_condition: bool) -> bool:
    """True if no value of one kind is equal to one of the other one, as a number to a text, and the
    result is a bool; `is_condition`: only its boolean value is used."""
    families = {_family(left), _family(right)}
    if Scalar in families:  # NumPy compares it with each item of a tuple
        return NoneType in families or (is_condition and not families.isdisjoint((str, bytes)))
    return None not in families and len(families) == 2


def _is_evaluated(node: ast.expr) -> bool:
    """True for an expression whose evaluation does nothing."""
    return isinstance(node, ast.Name | ast.Constant | Known)


def known_comparison(node: ast.Compare, left: Kind, right: Kind) -> bool | None:
    """The value of a comparison that kinds determine; None for others. Raises NotCompilableError
    for one by `is` that they do not."""
    op = node.ops[0]
    if isinstance(op, ast.Eq | ast.NotEq):
        if _has_dtype(left, right):
            return bool(left.value == right.value) == isinstance(op, ast.Eq)  # type: ignore[attr-defined]  # constants
        if _are_comparable(left, right):
            return (left == right) == isinstance(op, ast.Eq)
        is_evaluated = all(map(_is_evaluated, (node.left, *node.comparators)))
        if is_evaluated and _are_unlike(left, right, getattr(node, "is_condition", False)):
            return isinstance(op, ast.NotEq)
    if not isinstance(op, ast.Is | ast.IsNot):
        return None
    if isinstance(right, Constant) and right.value is None:
        is_same = left == right
    elif is_inner(left) or is_inner(right):
        raise NotCompilableError(node, "a function of this function is compared with None alone")
    elif isinstance(left, Constant) and isinstance(right, Constant):
        is_same = left.value is right.value
    else:
        raise NotCompilableError(node, "is compares identity; compare numbers with ==")
    return is_same == isinstance(op, ast.Is)
