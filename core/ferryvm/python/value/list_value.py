# SPDX-License-Identifier: Apache-2.0
"""Lists of a program as Python's lists: new ones, or those that a call got, with what is in them
now."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ferryvm.engine.object_view import ArrayView, StructView
from ferryvm.isa.type import F32, F64, I32, I64, ValueType
from ferryvm.python.value.kind import (
    BOOL,
    LIST,
    NONE,
    Character,
    Complex,
    Either,
    Kind,
    List,
    Number,
    Scalar,
    Tuple,
    item_of_number,
)
from ferryvm.python.value.list_layout import FIELDS, Layout, layout_of

if TYPE_CHECKING:
    from ferryvm.engine.reference import References

_NAMES: dict[ValueType, str] = {I64: "i64", F64: "f64", I32: "i32", F32: "f32", LIST: "lists"}


class ListReader:
    """Reads lists of one machine, for a caller that excludes other threads. Each is one object,
    however often it is read."""

    def __init__(
        self,
        references: References,
        originals: Sequence[list[Any]] = (),
        changed: Container[int] | None = None,
    ) -> None:
        """`originals`: the lists of Python by their origin; `changed`: the numbers of the kinds of
        items of those that may have changed, None if all may have."""
        self._references, self._originals, self._changed = references, originals, changed
        self._made: dict[int, list[Any]] = {}

    def read(self, word: int) -> list[Any]:
        """The list of a reference; one that a call got has its items replaced."""
        found = self._made.get(word)
        if found is None:
            fields = dict(zip(FIELDS, self._references.fields_at(word, len(FIELDS)), strict=True))
            origin = fields["origin"]
            found = self._made[word] = self._originals[origin - 1] if origin else []
            if not origin or self._changed is None or fields["kind"] in self._changed:
                item = item_of_number(fields["kind"])
                found[:] = [] if item is None else self._items(item, fields)
        return found

    def read_all(self, word: int) -> None:
        """Read all lists of an array."""
        for each in self._references.elements_at(word):
            self.read(each)

    def _items(self, item: Kind, fields: dict[str, int]) -> Sequence[Any]:
        layout, length = layout_of(item), fields["length"]
        slots = [self._slot(layout, n, fields) for n in range(len(layout.slots))]
        return self._values(item, length, slots)

    def _slot(self, layout: Layout, number: int, fields: dict[str, int]) -> Any:
        """The values of one slot of all items."""
        column, place = layout.places()[number]
        length, word = fields["length"], fields[column.name]
        if not length:
            return ()
        if column.type is LIST:
            words = self._references.elements_at(word, length * column.stride)
            return [self.read(each) for each in words[place :: column.stride]]
        array = self._references.value(word)
        return array[: length * column.stride][place :: column.stride]  # type: ignore[index]  # an array

    def _values(self, kind: Kind, length: int, slots: list[Any]) -> Sequence[Any]:
        """The items of a kind, of the values of their slots; those are removed."""
        if isinstance(kind, Either):
            numbers = slots.pop(0)
            parts = [self._values(each, length, slots) for each in kind.kinds]
            return [parts[number][n] for n, number in enumerate(numbers)]
        if kind == NONE:
            return [None] * length
        if isinstance(kind, Tuple):
            parts = [self._values(item, length, slots) for item in kind.items]
            return [*zip(*parts, strict=True)] if parts else [()] * length
        if isinstance(kind, Complex):
            parts = [self._values(kind.part, length, slots) for _ in range(2)]
            found = [complex(*each) for each in zip(*parts, strict=True)]
            return [*np.array(found, kind.dtype)] if kind.dtype else found
        values = slots.pop(0)
        if not length or isinstance(kind, List):
            return values  # type: ignore[no-any-return]  # a sequence
        if isinstance(kind, Character):
            return [*map(chr, values.tolist())]
        if isinstance(kind, Scalar):
            return [*values.astype(kind.dtype)]
        assert isinstance(kind, Number)
        objects: list[Any] = values.tolist()
        return [bool(each) for each in objects] if kind == BOOL else objects


class ViewReader:
    """Reads lists that a call has returned."""

    def __init__(
        self, originals: Sequence[list[Any]] = (), changed: Container[int] | None = None
    ) -> None:
        """As of `ListReader`."""
        self._originals, self._changed = originals, changed
        self._reader: ListReader | None = None

    def read(self, view: StructView) -> list[Any]:
        """The list of a view."""
        references: References = view._references  # type: ignore[assignment]  # that is the class
        return references.look(view, lambda word: self._of(references).read(word))

    def update(self, view: ArrayView) -> None:
        """Read all lists that the call got."""
        references: References = view._references  # type: ignore[assignment]  # that is the class
        references.look(view, lambda word: self._of(references).read_all(word))

    def _of(self, references: References) -> ListReader:
        if self._reader is None:
            self._reader = ListReader(references, self._originals, self._changed)
        return self._reader
