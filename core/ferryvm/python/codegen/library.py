# SPDX-License-Identifier: Apache-2.0
"""Built-in functions, and those of `math` and NumPy, on numbers.

`math` functions have the bits of ferryvm's own definitions (docs/math.md), which differ from a C
library's by a unit in the last place at some operands.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F32, F64, I64
from ferryvm.python.codegen import complex_code, numpy_function, scalar_code, text_code
from ferryvm.python.codegen.complex_code import is_complex
from ferryvm.python.codegen.known import class_of, is_instance, known_integer
from ferryvm.python.codegen.math_code import (
    FUNCTIONS,
    as_integer,
    classified,
    mathematical,
    of_two,
    rounded,
)
from ferryvm.python.codegen.operation import boolean, convert, is_number
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.hosted.number_function import METHODS
from ferryvm.python.hosted.raw import Raw
from ferryvm.python.hosted.refused_call import name_of_function, refused_call
from ferryvm.python.value.kind import (
    BOOL,
    CHARACTER,
    DTYPES,
    FLOAT,
    INT,
    INTEGERS,
    Array,
    Complex,
    Constant,
    Kind,
    List,
    Number,
    Range,
    Scalar,
    Tuple,
    text_of,
)

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code

_PLAIN: dict[object, str] = {math.fabs: "abs"}
_ROUNDED: dict[object, str] = {math.floor: "floor", math.ceil: "ceil", math.trunc: "trunc"}
_NUMPY: dict[object, str] = {
    getattr(np, name): name
    for name in (
        *("sqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan"),
        *("sinh", "cosh", "tanh", "cbrt", "exp2", "floor", "ceil", "trunc"),
    )
}
_NUMPY[np.rint] = "nearest"
_NUMPY |= {np.arcsin: "asin", np.arccos: "acos", np.arctan: "atan", np.abs: "abs"}
_TYPES: dict[object, Kind] = {int: INT, float: FLOAT, bool: BOOL} | {
    np.dtype(name).type: Scalar(name) for name in DTYPES
}


def call(b: Code, node: ast.Call) -> Kind:
    """Push the value of a call of a known function. Raises NotCompilableError."""
    function = node.func.value  # type: ignore[attr-defined]  # `Known`
    kinds = [b.kind(argument) for argument in node.args]
    result = result_kind(node, function, kinds)
    if isinstance(function, Raw):
        for argument, operand in zip(node.args, function.operands, strict=True):
            b.push_as(argument, operand)
        b.at(node)
        getattr(b.f, function.instruction)()
        return result
    if function in numpy_function.FUNCTIONS:
        numpy_function.call(b, node, function, kinds)
        return result
    emit = _EMITTED.get(function)
    if emit is not None:
        emit(b, node, kinds)
    elif function in FUNCTIONS:
        mathematical(b, node, function)
    elif function in _ROUNDED:
        rounded(b, node, _ROUNDED[function])
    elif function in _NUMPY:
        _numpy(b, node, _NUMPY[function], result)
    elif function in _PLAIN:
        b.push_as(node.args[0], FLOAT)
        getattr(b.f, f"f64_{_PLAIN[function]}")()
    elif function in _TYPES:
        _converted(b, node, kinds[0], result)
    return result


def result_kind(node: ast.Call, function: object, kinds: list[Kind]) -> Kind:
    """The kind of the value of a call. Raises NotCompilableError for what cannot be compiled."""
    if isinstance(function, Raw):
        return function.result
    if _is_hashable(function) and function in numpy_function.FUNCTIONS:
        found = numpy_function.call_kind(node, function, kinds)
        if found is None:
            shown = ", ".join(map(str, kinds))
            symbol = numpy_function.OPERATORS.get(function)
            hint = ""
            if symbol is not None and is_complex(*kinds):
                hint = f"; write {ast.unparse(ast.BinOp(ast.Name('a'), symbol, ast.Name('b')))}"
            raise NotCompilableError(
                node, f"cannot compile {name_of_function(function)}({shown}){hint}"
            )
        return found
    rule = _KINDS.get(function) if _is_hashable(function) else None
    if rule is None:
        raise NotCompilableError(node, refused_call(function))
    wanted, kind_of = rule
    if len(kinds) not in wanted:
        counts = " or ".join(map(str, wanted))
        raise NotCompilableError(
            node, f"{name_of_function(function)} takes {counts} arguments here"
        )
    found = kind_of(kinds)
    if function is range and len(kinds) == 3 and found is not None:
        return Range(known_integer(node.args[2]) or 0)
    if found is None:
        shown = ", ".join(map(str, kinds))
        hint = "; write z.real, or a function of cmath" if is_complex(*kinds) else ""
        raise NotCompilableError(
            node, f"cannot compile {name_of_function(function)}({shown}){hint}"
        )
    return found


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _numbers(result: Kind) -> Callable[[list[Kind]], Kind | None]:
    return lambda kinds: result if all(map(is_number, kinds)) else None


def _of_numpy(kinds: list[Kind]) -> Kind | None:
    return Scalar("float64") if kinds[0] in _WHOLE else _of_numpy_float(kinds)


_WHOLE = (INT, Scalar("int64"), Scalar("int32"))
"""Integers that NumPy's functions of floats take as float64."""


def _of_numpy_float(kinds: list[Kind]) -> Kind | None:
    """The kind of a function that gives integers for integers."""
    (kind,) = kinds
    if isinstance(kind, Scalar) and kind.is_float:
        return kind
    return Scalar("float64") if kind == FLOAT else None


def _numpy_absolute(kinds: list[Kind]) -> Kind | None:
    return _absolute(kinds) if isinstance(kinds[0], Scalar) else _of_numpy_float(kinds)


def _absolute(kinds: list[Kind]) -> Kind | None:
    (kind,) = kinds
    if isinstance(kind, Complex):
        return kind.part
    if isinstance(kind, Number):
        return INT if kind == BOOL else kind
    return kind if isinstance(kind, Scalar) and kind.dtype != "bool" else None


def _truncated(kinds: list[Kind]) -> Kind | None:
    """`__trunc__` is a method that NumPy's scalars lack, but for a float64, which is a float."""
    (kind,) = kinds
    return INT if isinstance(kind, Number) or kind == Scalar("float64") else None


def _type(kinds: list[Kind]) -> Kind | None:
    class_ = class_of(kinds[0])
    return None if class_ is None else Constant(class_)


def _instance(kinds: list[Kind]) -> Kind | None:
    return None if class_of(kinds[0]) is None else BOOL


def _emit_instance(b: Code, node: ast.Call, kinds: list[Kind]) -> None:
    b.f.i32_const(int(bool(is_instance(node, kinds[0]))))


def _length(kinds: list[Kind]) -> Kind | None:
    if text_of(kinds[0]) is not None:
        return INT
    return INT if isinstance(kinds[0], Array | Tuple | Range | List) else None


def _range(kinds: list[Kind]) -> Kind | None:
    return Range(1) if all(kind in INTEGERS for kind in kinds) else None


def _quotient_and_rest(kinds: list[Kind]) -> Kind | None:
    if not all(isinstance(kind, Number) for kind in kinds):
        return None
    result = FLOAT if FLOAT in kinds else INT
    return Tuple((result, result))


_KINDS: dict[object, tuple[tuple[int, ...], Callable[[list[Kind]], Kind | None]]] = {
    abs: ((1,), _absolute),
    complex: ((1, 2), complex_code.of_parts_kind),
    type: ((1,), _type),
    ord: ((1,), lambda kinds: INT if text_of(kinds[0]) is not None else None),
    chr: ((1,), lambda kinds: CHARACTER if kinds[0] in (INT, BOOL) else None),
    isinstance: ((2,), _instance),
    len: ((1,), _length),
    range: ((1, 2, 3), _range),
    round: (
        (1,),
        lambda kinds: INT if is_number(kinds[0]) and kinds[0] != Scalar("bool") else None,
    ),
    METHODS["conjugate"]: ((1,), complex_code.conjugate_kind),
    math.isnan: ((1,), _numbers(BOOL)),
    math.isinf: ((1,), _numbers(BOOL)),
    math.isfinite: ((1,), _numbers(BOOL)),
    math.copysign: ((2,), _numbers(FLOAT)),
    math.atan2: ((2,), _numbers(FLOAT)),
}
_KINDS |= {function: ((1,), _numbers(FLOAT)) for function in (*FUNCTIONS, *_PLAIN)}
_KINDS |= {function: ((1,), _numbers(INT)) for function in _ROUNDED}
_KINDS |= dict.fromkeys(_NUMPY, ((1,), _of_numpy))
_KINDS |= dict.fromkeys((np.floor, np.ceil, np.trunc, np.rint), ((1,), _of_numpy_float))
_KINDS[np.abs] = ((1,), _numpy_absolute)
_KINDS[math.trunc] = ((1,), _truncated)
_KINDS |= {function: ((1,), _numbers(kind)) for function, kind in _TYPES.items()}
_KINDS[int] = ((1,), lambda kinds: INT if kinds[0] == CHARACTER or is_number(kinds[0]) else None)
_KINDS[bool] = ((1,), lambda kinds: BOOL if is_number(kinds[0]) or is_complex(kinds[0]) else None)


def _numpy(b: Code, node: ast.Call, name: str, result: Kind) -> None:
    """A function of NumPy on a scalar: no exceptions."""
    if name == "abs" and result.slots[0] not in (F32, F64):
        _emit_abs(b, node, [b.kind(node.args[0])])
        return
    b.push_as(node.args[0], result)
    b.at(node)
    getattr(b.f, f"{result.slots[0]}_{name}")()


def _converted(b: Code, node: ast.Call, kind: Kind, result: Kind) -> None:
    """`int(x)`, `float(x)`, `bool(x)`, and NumPy's types."""
    argument = node.args[0]
    if kind == CHARACTER:
        text_code.digit(b, node)
        return
    b.push(argument)
    b.at(node)
    f = b.f
    assert isinstance(result, Number | Scalar)
    if result in (BOOL, Scalar("bool")):
        boolean(b, node, kind)
        return
    assert isinstance(kind, Number | Scalar)
    if result == kind:
        return
    is_to_float = result.word in (F32, F64)
    if result == INT and kind.word in (F32, F64):
        if kind.word is F32:
            f.f64_promote_f32()
        f.f64_trunc()
        as_integer(b, node)
    elif result == Scalar("float32") and kind.word is F64:
        f.f32_demote_f64()
    elif kind.word in (F32, F64) and not is_to_float:
        raise NotCompilableError(node, f"cannot compile {result}({kind}); write int(x) first")
    elif isinstance(kind, Scalar) and isinstance(result, Scalar) and not is_to_float:
        scalar_code.cast(b, kind, result)
    else:
        convert(b, node, kind, result)


def _emit_abs(b: Code, node: ast.Call, kinds: list[Kind]) -> None:
    f = b.f
    result = _absolute(kinds)
    assert result is not None
    if isinstance(kinds[0], Complex):
        complex_code.absolute(b, node, kinds[0])
        return
    b.push_as(node.args[0], result)
    b.at(node)
    word = result.slots[0]
    if word in (F32, F64):
        getattr(f, f"{word}_abs")()
        return
    if isinstance(result, Scalar) and result.dtype[0] == "u":
        return
    value = b.spare(word)  # type: ignore[arg-type]  # a number
    f.local_set(value)
    f.local_get(value)
    getattr(f, f"{word}_const")(0)
    getattr(f, f"{word}_lt_s")()
    with f.if_([word]):
        getattr(f, f"{word}_const")(0)
        f.local_get(value)
        b.trap(node, Trap.INTEGER_OVERFLOW, OverflowError, None, is_limit=True)
        getattr(f, f"{word}_sub" + ("_checked" if result == INT else ""))()
        if isinstance(result, Scalar):
            scalar_code.wrap(b, result.dtype)
        f.else_()
        f.local_get(value)


def _emit_len(b: Code, node: ast.Call, kinds: list[Kind]) -> None:
    f = b.f
    kind = kinds[0]
    if isinstance(kind, Tuple):
        f.i64_const(len(kind.items))
        return
    if isinstance(kind, Array):
        b.push_slot(node.args[0], 2 if kind.is_view else 1)
        return
    if isinstance(kind, List):
        b.push(node.args[0])
        f.struct_get(b.list_struct["length"])
        return
    if text_of(kind) is not None:
        text_code.length(b, node.args[0], kind)
        return
    assert isinstance(kind, Range)
    b.push(node.args[0])
    if kind.step:
        b.range_length(kind.step)
    else:
        b.stepped_length()
    size = b.spare(I64)
    f.local_set(size)
    f.local_get(size)
    f.i64_const(0)
    f.i64_lt_s()
    b.throw_if(node, OverflowError, "a length", is_limit=True)
    f.local_get(size)


def _emit_range(b: Code, node: ast.Call, kinds: list[Kind]) -> None:
    if len(kinds) == 1:
        b.f.i64_const(0)
    for argument in node.args:
        b.push_as(argument, INT)
    if len(kinds) < 3:
        return
    f, step = b.f, b.spare(I64)
    f.local_set(step)
    if known_integer(node.args[2]):
        return
    b.at(node)
    f.local_get(step)
    f.i64_eqz()
    b.throw_if(node, ValueError, "range() arg 3 must not be zero")
    f.local_get(step)


def _emit_nearest(b: Code, node: ast.Call, kinds: list[Kind]) -> None:
    rounded(b, node, "nearest")


_EMITTED: dict[object, Callable[[Code, ast.Call, list[Kind]], None]] = {
    abs: _emit_abs,
    complex: complex_code.of_parts,
    ord: text_code.code_of,
    chr: text_code.character,
    isinstance: _emit_instance,
    METHODS["conjugate"]: complex_code.conjugate,
    type: lambda _b, _node, _kinds: None,  # kinds know it
    len: _emit_len,
    range: _emit_range,
    round: _emit_nearest,
    math.isnan: classified("isnan"),
    math.isinf: classified("isinf"),
    math.isfinite: classified("isfinite"),
    math.copysign: of_two("copysign"),
    math.atan2: of_two("atan2"),
}
