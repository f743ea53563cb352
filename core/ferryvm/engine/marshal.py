# SPDX-License-Identifier: Apache-2.0
"""Arguments and results of calls from Python: the values that fit a type, and their words.

A frame that is entered from outside is written by one `struct` call:

    │ arguments … │ return pc │ distance │         "<" then q, d, i4x or f4x for each argument, then QQ
"""

from __future__ import annotations

import functools
import operator
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from ferryvm.errors import FerryError
from ferryvm.failure import shown
from ferryvm.float_environment import call_in_ours
from ferryvm.isa.type import Reference, Type, ValueType, as_number, to_python, with_article
from ferryvm.program import Signature

if TYPE_CHECKING:
    from ferryvm.engine.object_view import Item

_FORMATS: dict[ValueType, str] = {Type.I64: "q", Type.F64: "d", Type.I32: "i4x", Type.F32: "f4x"}


_pack_f64 = struct.Struct("<d").pack


class CallError(FerryError, TypeError):
    """A call from Python that is not possible; the instance is as before."""


@functools.cache
def frame_struct(signature: Signature) -> struct.Struct:
    """The layout of a signature's arguments, return pc and distance, as words of the stack."""
    return struct.Struct(values_struct(tuple(signature.parameters)).format + "QQ")


@functools.cache
def values_struct(types: tuple[ValueType, ...]) -> struct.Struct:
    """The layout of values of these types, as words of the stack."""
    return struct.Struct("<" + "".join(_FORMATS.get(t, "Q") for t in types))


def check(
    name: str, names: Sequence[str], signature: Signature, arguments: Sequence[object]
) -> None:
    """Raise CallError for arguments that do not fit a function, references excepted (see
    `ferryvm.engine.reference`); `names`: the names of its parameters, as far as they are
    known."""
    types = signature.parameters
    if len(arguments) != len(types):
        described = f"{name}{described_parameters(names, signature)}"
        count = f"{len(types)} argument{'s' * (len(types) != 1)}"
        raise CallError(f"{described} takes {count}, found {len(arguments)}")
    for number, (t, argument) in enumerate(zip(types, arguments, strict=True)):
        if not isinstance(t, Reference) and not fits(t, argument):
            parameter = f" ({names[number]})" if number < len(names) and names[number] else ""
            raise CallError(
                f"{name}: argument {number + 1}{parameter} is {shown(argument)}; "
                f"{expected(t)} is expected"
            )


def fits(t: ValueType, value: object) -> bool:
    """True if a Python value can become a value of the type."""
    try:
        if t.is_float:
            if isinstance(value, (str, bytes)):
                return False
            call_in_ours(struct.pack, "<d" if t is Type.F64 else "<f", value)
            return True
        number = operator.index(value)  # type: ignore[arg-type]  # it says so by TypeError
        half = 1 << (t.bits - 1)
        return -half <= number < half
    except (TypeError, ValueError, OverflowError, struct.error):
        return False


def described_parameters(names: Sequence[str], signature: Signature) -> str:
    """The parameters and results of a function, as in `(a: i64, b: f64) -> f64`."""
    parts = []
    for number, t in enumerate(signature.parameters):
        known = names[number] if number < len(names) else ""
        parts.append(f"{known}: {t}" if known else str(t))
    results = ", ".join(str(t) for t in signature.results)
    if len(signature.results) > 1:
        results = f"({results})"
    return f"({', '.join(parts)}){f' -> {results}' if results else ''}"


Value: TypeAlias = "Item | tuple[Item, ...]"
"""The result of a call: None, a number, an array, a struct, or several."""


def numbers(types: Sequence[ValueType], words: Sequence[int]) -> list[Item]:
    """The Python numbers of results."""
    return [to_python(as_number(t), word & t.mask) for t, word in zip(types, words, strict=True)]


def value(found: Sequence[Item]) -> Value:
    """The value of a call with these results."""
    if not found:
        return None
    return found[0] if len(found) == 1 else tuple(found)


def bits_of(t: ValueType, value: object, what: str) -> int:
    """The bits of a value of the type. Raises CallError for a value that does not fit; `what` names
    its purpose."""
    kind = type(value)
    if kind is float and t is Type.F64:  # no arithmetic, and nearly all values are of these two
        return int.from_bytes(_pack_f64(value), "little")
    if kind is int and not t.is_float:
        half = 1 << (t.bits - 1)
        if -half <= value < half:  # type: ignore[operator]  # an int, as its type says
            return value & t.mask  # type: ignore[operator]  # as above
    if not fits(t, value):
        raise CallError(f"{what} is {shown(value)}; {expected(t)} is expected")
    packed = call_in_ours(struct.pack, "<" + _FORMATS[t], value)
    return int.from_bytes(packed, "little")


def expected(t: ValueType) -> str:
    """The Python values that can become a value of the type, in words."""
    if t.is_float:
        return f"a number for {with_article(t)}"
    half = 1 << (t.bits - 1)
    return f"an int from {-half} to {half - 1} for an {t}"
