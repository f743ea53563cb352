# SPDX-License-Identifier: Apache-2.0
"""Lists as arguments: Python's lists go into a program as arrays of all their items, and what
changes in them there is seen by Python afterwards.

    [[1, 2], [3]]  ──>  headers │ kind 2 … │ kind 1 … │ kind 2+ … │     items │ 1 2 3 │ 0 1 │
                                      a function of the program makes the lists of these

Each list has a number, its origin, so that a list in the program is found to be one of Python's.
Lists in lists come before those that they are in.
"""

from __future__ import annotations

import array
import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ferryvm.build import Function, Local, Program, Struct
from ferryvm.isa.element import Element
from ferryvm.isa.type import F32, F64, I32, I64, ValueType
from ferryvm.python.value.element import dtype_of
from ferryvm.python.value.kind import (
    FLOAT,
    INT,
    LIST,
    NONE,
    Complex,
    Either,
    Kind,
    List,
    Number,
    Scalar,
    Tuple,
    has_list,
)
from ferryvm.python.value.list_layout import Elements, layout_of
from ferryvm.python.value.result import flatten
from ferryvm.python.value.value_kind import MisfitError, kind_of

_HEADER = 7
"""Numbers of a header: the kind of items, the length, and how many elements there are of each
column; -1 where the list has no such column."""
_COLUMNS: tuple[ValueType, ...] = (I64, F64, I32, F32, LIST)
_ITEMS = (("i64", Element.I64), ("f64", Element.F64), ("i32", Element.I32), ("f32", Element.F32))
_DTYPES: dict[ValueType, Any] = {I64: np.int64, F64: np.float64, I32: np.int32, F32: np.float32}

ENTRY = "with lists"
"""The name of the function that takes lists."""

_local = threading.local()


@contextlib.contextmanager
def passing(originals: Sequence[list[Any]]) -> Iterator[None]:
    """State the lists that a call of this thread gets, while it runs."""
    before = passed()
    _local.lists = originals
    try:
        yield
    finally:
        _local.lists = before


def passed() -> Sequence[list[Any]]:
    """The lists that the present call of this thread got, by their origin."""
    found: Sequence[list[Any]] = getattr(_local, "lists", ())
    return found


class LargeItemError(Exception):
    """An item of a list does not fit into 64 bits."""


class ListTable:
    """The lists in the arguments of one call."""

    def __init__(self) -> None:
        self.originals: list[list[Any]] = []
        """The lists, by their number."""
        self._known: dict[int, tuple[int, List]] = {}
        self._headers: list[int] = []
        self._items: dict[ValueType, list[Any]] = {each: [] for each in _DTYPES}

    def slots(self, kind: Kind, value: Any, found: list[Any]) -> None:
        """Append the slots of an argument: of a list its number. Raises MisfitError,
        LargeItemError."""
        if isinstance(kind, List):
            found.append(self._number(kind, value))
        elif isinstance(kind, Tuple) and has_list(kind):
            for item, each in zip(kind.items, value, strict=True):
                self.slots(item, each, found)
        else:
            flatten(kind, value, found)

    def arrays(self) -> list[Any]:
        """The arrays with all lists, after `slots` of all arguments."""
        found: list[Any] = [np.array([len(self.originals), *self._headers], np.int64)]
        for parts in self._items.values():
            joined = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else None
            found.append(joined if joined is None or joined.size else None)
        return found

    def _number(self, kind: List, value: list[Any]) -> int:
        known = self._known.get(id(value))
        if known is not None:
            number, before = known
            if kind.item is not None and kind != before:
                raise MisfitError("a list stands for lists of several types; pass a list for each")
            return number
        slots = [] if kind.item is None else self._columns(kind.item, value)
        layout = None if kind.item is None else layout_of(kind.item)
        sizes = [-1] * len(_COLUMNS)
        for column in layout.columns if layout else ():
            mine = [slots[n] for n, slot in enumerate(layout.slots) if slot is column.type]  # type: ignore[union-attr]  # it has columns
            rows = mine[0] if len(mine) == 1 else np.stack(mine, axis=1).reshape(-1)
            sizes[_COLUMNS.index(column.type)] = rows.size
            self._items[I64 if column.type is LIST else column.type].append(rows)
        self._order(layout, sizes)
        self._headers += [kind.number, len(value), *sizes]
        number = len(self.originals)
        self._known[id(value)] = number, kind
        self.originals.append(value)
        return number

    def _order(self, layout: Any, sizes: list[int]) -> None:
        """Numbers of lists come behind the integers of a list in the array of both."""
        if layout is None or sizes[0] < 0 or sizes[-1] < 0:
            return
        names = [column.type for column in layout.columns]
        if names.index(LIST) < names.index(I64):
            items = self._items[I64]
            items[-2], items[-1] = items[-1], items[-2]

    def _columns(self, kind: Kind, values: Sequence[Any]) -> list[Any]:
        """An array for each slot of items."""
        if isinstance(kind, Either):
            return self._mixed_columns(kind, values)
        if kind == NONE:
            return []
        if isinstance(kind, Tuple):
            by_item = zip(*values, strict=True) if values else [()] * len(kind.items)
            parts = zip(kind.items, by_item, strict=True)
            return [column for item, each in parts for column in self._columns(item, each)]
        if isinstance(kind, List):
            return [np.array([self._number(kind, each) for each in values], np.int64)]
        if isinstance(kind, Complex):
            pairs = np.array(values, kind.dtype or "complex128")
            return [pairs.real.copy(), pairs.imag.copy()]
        if kind in (INT, FLOAT):  # they raise for values of other types
            try:
                return [
                    np.frombuffer(
                        array.array("q" if kind == INT else "d", values), _DTYPES[kind.slots[0]]
                    )
                ]
            except OverflowError:
                raise LargeItemError from None
        assert isinstance(kind, Number | Scalar)
        found = np.array(values, dtype_of(kind))
        return [found.astype(_DTYPES[kind.word], copy=False)]

    def _mixed_columns(self, kind: Either, values: Sequence[Any]) -> list[Any]:
        """The columns of items of several kinds: the numbers of their kinds, and an array for each
        slot, with zeros for items of other kinds."""
        numbers = np.array([kind.kinds.index(kind_of(value)) for value in values], np.int64)
        found = [numbers]
        for number, each in enumerate(kind.kinds):
            places = np.flatnonzero(numbers == number)
            for column in self._columns(each, [values[n] for n in places.tolist()]):
                whole = np.zeros(len(values), column.dtype)
                whole[places] = column
                found.append(whole)
        return found


def passer(kinds: Sequence[Kind]) -> Any:
    """The function from the arguments of a Python function to those of the compiled one, and the
    lists among them by their origin."""

    def passed(values: Sequence[Any]) -> tuple[list[Any], Sequence[list[Any]]]:
        table, found = ListTable(), list[Any]()
        for kind, value in zip(kinds, values, strict=True):
            table.slots(kind, value, found)
        return [*found, *table.arrays()], table.originals

    return passed


# --- in the program -----------------------------------------------------------------------------


def entry(
    program: Program, struct: Struct, function: Function, kinds: Sequence[Kind]
) -> tuple[Function, Local]:
    """The function that takes arguments as `passer` has them, calls another one, and returns its
    results and an array of all lists; and the local with that array."""
    slots = [slot for kind in kinds for slot in kind.slots]
    given = {f"slot {n}": I64 if slot is LIST else slot for n, slot in enumerate(slots)}
    arrays = {"headers": Element.I64.array} | {name: each.array for name, each in _ITEMS}
    results = [*function.signature.results, struct.array]
    f = program.function(ENTRY, {**given, **arrays}, results)
    *arguments, headers, i64, f64, i32, f32 = f.parameters
    made = f.local("made", struct.array)
    for each in (headers, i64, f64, i32, f32):
        f.local_get(each)
    f.call(_maker(program, struct))
    f.local_set(made)
    for slot, argument in zip(slots, arguments, strict=True):
        if slot is LIST:
            f.local_get(made)
            f.local_get(argument)
            f.array_get_ref(struct.array)
        else:
            f.local_get(argument)
    f.call(function)
    f.local_get(made)
    return f, made


def _maker(program: Program, struct: Struct) -> Function:
    """headers, items -> array: the lists that a call gets."""
    arrays = {"headers": Element.I64.array} | {name: each.array for name, each in _ITEMS}
    f = program.function("make lists", arrays, [struct.array])
    headers, *items = f.parameters
    made, of = f.local("made", struct.array), f.local("list", struct)
    number, at, size = f.local("number", I64), f.local("at", I64), f.local("size", I64)
    nexts = [f.local(f"next {name}", I64) for name, _ in _ITEMS]

    def header(place: int) -> None:
        f.local_get(headers)
        f.local_get(at)
        f.i64_const(place)
        f.i64_add()
        f.array_get_i64()

    def step(local: Local, by: int) -> None:
        f.local_get(local)
        f.i64_const(by)
        f.i64_add()
        f.local_set(local)

    f.local_get(headers)
    f.i64_const(0)
    f.array_get_i64()
    f.array_new_default_ref(struct.array)
    f.local_set(made)
    f.i64_const(1)
    f.local_set(at)
    with f.block() as done, f.loop() as again:
        f.local_get(number)
        f.local_get(made)
        f.array_length()
        f.i64_ge_s()
        f.br_if(done)
        f.struct_new_default(struct)
        f.local_set(of)
        f.local_get(made)
        f.local_get(number)
        f.local_get(of)
        f.array_set_ref(struct.array)
        step(number, 1)
        f.local_get(of)
        f.local_get(number)
        f.struct_set(struct["origin"])
        for place, name in enumerate(("kind", "length")):
            f.local_get(of)
            header(place)
            f.struct_set(struct[name])
        for place, (name, _) in enumerate(_ITEMS):
            elements = Elements(f, struct, _COLUMNS[place])
            header(2 + place)
            f.local_set(size)
            f.local_get(size)
            f.i64_const(0)
            f.i64_ge_s()
            with f.if_():
                f.local_get(of)
                f.local_get(size)
                elements.new()
                f.struct_set(struct[name])
                f.local_get(size)
                with_items(f, struct, of, name, items[place], nexts[place], size, elements)
        header(2 + len(_ITEMS))
        f.local_set(size)
        f.local_get(size)
        f.i64_const(0)
        f.i64_ge_s()
        with f.if_():
            _add_lists(f, struct, of, made, items[0], nexts[0], size)
        step(at, _HEADER)
        f.br(again)
    f.local_get(made)
    return f


def with_items(
    f: Function,
    struct: Struct,
    of: Local,
    name: str,
    items: Local,
    next_: Local,
    size: Local,
    elements: Elements,
) -> None:
    """Copy so many elements, a number that is on the stack, too, into a column, and go on behind
    them."""
    f.i64_const(0)
    f.i64_ne()
    with f.if_():
        f.local_get(of)
        f.struct_get(struct[name])
        f.i64_const(0)
        f.local_get(items)
        f.local_get(next_)
        f.local_get(size)
        elements.copy()
        f.local_get(next_)
        f.local_get(size)
        f.i64_add()
        f.local_set(next_)


def _add_lists(
    f: Function, struct: Struct, of: Local, made: Local, items: Local, next_: Local, size: Local
) -> None:
    """Make the column with lists, of their numbers."""
    lists, place = f.local("lists", struct.array), f.local("place", I64)
    f.local_get(size)
    f.array_new_default_ref(struct.array)
    f.local_set(lists)
    f.local_get(of)
    f.local_get(lists)
    f.struct_set(struct["lists"])
    f.i64_const(0)
    f.local_set(place)
    with f.block() as done, f.loop() as again:
        f.local_get(place)
        f.local_get(size)
        f.i64_ge_s()
        f.br_if(done)
        f.local_get(lists)
        f.local_get(place)
        f.local_get(made)
        f.local_get(items)
        f.local_get(next_)
        f.array_get_i64()
        f.array_get_ref(struct.array)
        f.array_set_ref(struct.array)
        for local in (place, next_):
            f.local_get(local)
            f.i64_const(1)
            f.i64_add()
            f.local_set(local)
        f.br(again)
