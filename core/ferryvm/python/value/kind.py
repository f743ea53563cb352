# SPDX-License-Identifier: Apache-2.0
"""Kinds of values: what a variable is known to hold at a place of a compiled function.

A kind has *slots*, the values of the machine that represent it. A name may have another kind at
another place: code is made for each combination (`ferryvm.python.compiled.version`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import types
from typing import Any

from ferryvm.isa.element import Element
from ferryvm.isa.type import F32, F64, FIRST_DECLARED, I32, I64, Reference, Type, ValueType


class Kind:
    """The base of all kinds. `slots`: their types."""

    slots: tuple[ValueType, ...] = ()


@dataclasses.dataclass(frozen=True)
class Number(Kind):
    """A Python number: `int` (of 64 bits), `float` or `bool`."""

    type: type

    @property
    def word(self) -> Type:
        """The type of its slot."""
        return _OF_PYTHON[self.type]

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return (self.word,)

    def __str__(self) -> str:
        return self.type.__name__


_OF_PYTHON = {int: I64, float: F64, bool: I32}
INT = Number(int)
FLOAT = Number(float)
BOOL = Number(bool)

DTYPES = {
    "float64": Element.F64,
    "float32": Element.F32,
    "int64": Element.I64,
    "int32": Element.I32,
    "int16": Element.I16,
    "int8": Element.I8,
    "uint64": Element.I64,
    "uint32": Element.U32,
    "uint16": Element.U16,
    "uint8": Element.U8,
    "bool": Element.U8,
}
"""The elements of arrays, by the names of NumPy."""

PAIRS = {"complex128": Element.F64, "complex64": Element.F32}
"""The elements of arrays of complex numbers, each of which is a pair of them."""


@dataclasses.dataclass(frozen=True)
class Scalar(Kind):
    """A NumPy scalar: an element of an array, and what is computed from it."""

    dtype: str
    """The name, such as `float64`."""

    @property
    def word(self) -> Type:
        """The type of its slot."""
        return DTYPES[self.dtype].type

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return (self.word,)

    @property
    def is_float(self) -> bool:
        """True for floating-point numbers."""
        return self.word in (F32, F64)

    @property
    def is_full(self) -> bool:
        """True for integers without a sign that need all bits of their slot."""
        return self.dtype in ("uint32", "uint64")

    @property
    def bits(self) -> int:
        """Width of an element in memory."""
        return DTYPES[self.dtype].bits

    def __str__(self) -> str:
        return f"numpy.{self.dtype}"


@dataclasses.dataclass(frozen=True)
class Complex(Kind):
    """A complex number. Slots: the real and the imaginary part."""

    dtype: str = ""
    """The name of a NumPy scalar, such as `complex64`; empty for Python's complex."""

    @property
    def part(self) -> Number | Scalar:
        """The kind of its parts."""
        return Scalar("float32" if self.word is F32 else "float64") if self.dtype else FLOAT

    @property
    def word(self) -> Type:
        """The type of both slots."""
        return F32 if self.dtype == "complex64" else F64

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return (self.word, self.word)

    def __str__(self) -> str:
        return f"numpy.{self.dtype}" if self.dtype else "complex"


COMPLEX = Complex()


def element_kind(dtype: str) -> Scalar | Complex:
    """The kind of the elements of an array, by the name of its dtype."""
    return Complex(dtype) if dtype in PAIRS else Scalar(dtype)


def is_of_numpy(kind: Kind) -> bool:
    """True for NumPy's scalars."""
    return isinstance(kind, Scalar) or (isinstance(kind, Complex) and bool(kind.dtype))


INTEGERS: tuple[Kind, ...] = (
    INT,
    BOOL,
    *(Scalar(name) for name in DTYPES if "int" in name),
)
"""The kinds that an index may have."""


@dataclasses.dataclass(frozen=True)
class Constant(Kind):
    """A value that is known: None, a string, a function, a module, a type."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and _same(self.value, other.value)

    def __hash__(self) -> int:
        return hash(self.value) if isinstance(self.value, str | bytes) else id(self.value)

    def __str__(self) -> str:
        is_python = isinstance(self.value, types.FunctionType)
        return f"function {self.value.__name__}" if is_python else repr(self.value)


def _same(a: object, b: object) -> bool:
    return a is b or (type(a) is type(b) and isinstance(a, str | bytes) and a == b)


NONE = Constant(None)


@dataclasses.dataclass(frozen=True)
class Tuple(Kind):
    """A tuple; its slots are those of its items."""

    items: tuple[Kind, ...]

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return tuple(slot for item in self.items for slot in item.slots)

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.items))}{',' * (len(self.items) == 1)})"


@dataclasses.dataclass(frozen=True)
class Closure(Kind):
    """An inner function that another function got as an argument. Slots: those of the variables of
    the function around it that it uses, with the values that they had at the call."""

    function: Any
    """An `InnerFunction`."""
    items: tuple[Kind, ...]

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return tuple(slot for item in self.items for slot in item.slots)

    @property
    def depth(self) -> int:
        """The number of closures in one another."""
        inner = (each.depth for each in self.items if isinstance(each, Closure))
        return 1 + max(inner, default=0)

    def __str__(self) -> str:
        return f"function {self.function.name}"


@dataclasses.dataclass(frozen=True)
class Array(Kind):
    """A NumPy array. Slots of one with contiguous elements: the array, and its lengths in each
    dimension; of a view: the array, the number of the first element, lengths, strides in
    elements."""

    dtype: str
    dimensions: int
    is_view: bool = False

    @property
    def element(self) -> Element:
        """The kind of its elements in memory: for complex numbers, that of their parts."""
        return PAIRS[self.dtype] if self.dtype in PAIRS else DTYPES[self.dtype]

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        numbers = 2 * self.dimensions + 1 if self.is_view else self.dimensions
        return (self.element.array, *(I64,) * numbers)

    def __str__(self) -> str:
        return f"array of {self.dtype}, {self.dimensions}-d"


@dataclasses.dataclass(frozen=True)
class Text(Kind):
    """A text, or bytes. Slots: those of a view of an array of one dimension, of code points or
    bytes."""

    type: type
    """`str` or `bytes`."""

    @property
    def array(self) -> Array:
        """The kind of its array."""
        return Array("uint8" if self.type is bytes else "int32", 1, is_view=True)

    @property
    def item(self) -> Kind:
        """The kind of its items."""
        return INT if self.type is bytes else CHARACTER

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return self.array.slots

    def __str__(self) -> str:
        return self.type.__name__


@dataclasses.dataclass(frozen=True)
class Character(Kind):
    """A text of one character. Slot: its code point."""

    slots = (I32,)

    def __str__(self) -> str:
        return "str of one character"


CHARACTER = Character()


def text_of(kind: Kind) -> Text | None:
    """The kind of text that a value is, or can become; None for other values."""
    if isinstance(kind, Text):
        return kind
    if kind == CHARACTER:
        return Text(str)
    known = kind.value if isinstance(kind, Constant) else None
    return Text(type(known)) if isinstance(known, str | bytes) else None


LIST = Reference(FIRST_DECLARED, "list")
"""The struct type of lists: the first type of a program that has some."""


@dataclasses.dataclass(frozen=True)
class List(Kind):
    """A list of items of one kind; that of an empty one may not be known yet. Slots: the list."""

    item: Kind | None
    slots = (LIST,)

    @property
    def number(self) -> int:
        """The number of the kind of items in the list itself; 0 if it is not known."""
        return 0 if self.item is None else _number_of_item(self.item)

    def __str__(self) -> str:
        return "list" if self.item is None else f"list of {self.item}"


@dataclasses.dataclass(frozen=True)
class Either(Kind):
    """An item of a list whose items have several kinds: no variable has it. Slots: the number of
    the kind among `kinds`, then the slots of each of them."""

    kinds: tuple[Kind, ...]

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return (I64, *(slot for kind in self.kinds for slot in kind.slots))

    def __str__(self) -> str:
        return " or ".join(map(str, self.kinds))


def either(*kinds: Kind) -> Either:
    """The kind of items that have one of some kinds."""
    found = {
        each for kind in kinds for each in (kind.kinds if isinstance(kind, Either) else [kind])
    }
    return Either(tuple(sorted(found, key=str)))


def is_mixed(kind: Kind) -> bool:
    """True for a kind that items of a list may have beside items of other kinds."""
    if isinstance(kind, Tuple):
        return all(map(is_mixed, kind.items))
    return isinstance(kind, Number | Scalar | Complex | Character | Either) or kind == NONE


LIST_ITEMS: tuple[Number | Scalar, ...] = (INT, FLOAT, BOOL, *(Scalar(name) for name in DTYPES))
"""The kinds of numbers that items of lists may have."""
_numbered: dict[int, Kind] = dict(enumerate(LIST_ITEMS, 1))
_numbers: dict[Kind, int] = {kind: number for number, kind in _numbered.items()}


def _number_of_item(kind: Kind) -> int:
    """The number of a kind of items: that of a tuple or a list is a digest of it, so that programs
    do not depend on what was compiled before."""
    found = _numbers.get(kind)
    if found is None:
        digest = hashlib.blake2b(repr(kind).encode(), digest_size=8).digest()
        found = int.from_bytes(digest, "little") >> 2
        assert found not in _numbered
        _numbers[kind], _numbered[found] = found, kind
    return found


def item_of_number(number: int) -> Kind | None:
    """The kind of items with a number; None for 0."""
    return _numbered.get(number)


def is_item(kind: Kind) -> bool:
    """True for a kind that items of a list may have: numbers, lists, and tuples of them."""
    if isinstance(kind, Tuple):
        return all(map(is_item, kind.items))
    return is_mixed(kind) or isinstance(kind, List)


def has_list(kind: Kind) -> bool:
    """True for a list, for a tuple with one, and for a function that uses one."""
    if isinstance(kind, Tuple | Closure):
        return any(map(has_list, kind.items))
    return isinstance(kind, List)


def united(one: Kind, other: Kind) -> Kind | None:
    """The kind of both of two values; lists whose items are not known yet get those of the other
    one. None if there is none."""
    if one == other:
        return one
    if isinstance(one, Either) or isinstance(other, Either):
        both = either(one, other)
        return both if both in (one, other) else None
    if isinstance(one, List) and isinstance(other, List):
        if one.item is None or other.item is None:
            return one if other.item is None else other
        if isinstance(one.item, Either) or isinstance(other.item, Either):
            return None  # items of one would have to change
        item = united(one.item, other.item)
        return None if item is None else List(item)
    if isinstance(one, Tuple) and isinstance(other, Tuple) and len(one.items) == len(other.items):
        items = [united(a, b) for a, b in zip(one.items, other.items, strict=True)]
        return None if None in items else Tuple(tuple(each for each in items if each is not None))
    return None


def less_known(kind: Kind) -> list[Kind]:
    """The kinds with the same values of which less is known: lists in it have any items."""
    if isinstance(kind, List):
        items = [] if kind.item is None else less_known(kind.item)
        known: list[Kind] = [List(item) for item in items]
        return known if kind.item is None else [List(None), *known]
    if isinstance(kind, Tuple):
        choices = [[item, *less_known(item)] for item in kind.items]
        return [Tuple(items) for items in [*itertools.product(*choices)][1:]]
    return []


@dataclasses.dataclass(frozen=True)
class Range(Kind):
    """A range. Slots: start, stop, and the step, unless that is known."""

    step: int
    """0: it is not known."""

    @property
    def slots(self) -> tuple[ValueType, ...]:  # type: ignore[override]  # derived
        return (I64, I64) if self.step else (I64, I64, I64)

    def __str__(self) -> str:
        return "range"


@dataclasses.dataclass(frozen=True)
class Raised(Kind):
    """An exception that is caught. Slots: the numbers of its site and of its type, and that of the
    site of the call that raised it, or -1."""

    slots = (I64, I64, I64)

    def __str__(self) -> str:
        return "exception"
