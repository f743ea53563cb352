# SPDX-License-Identifier: Apache-2.0
"""Structs and arrays of references as Python sees them: views, which keep their object alive.

    view │ references │ handle │ ──> Handles ──> reference ──> object

A view copies nothing: each access reads or writes the object. There is one view of an object at a
time, so `is` compares objects as `ref.eq` does. Views of arrays of numbers are ndarrays, see
`ferryvm.engine.array_argument`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ferryvm.isa.type import with_article

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["ArrayView", "StructView", "type_name"]

Item: TypeAlias = "int | float | npt.NDArray[Any] | StructView | ArrayView | None"
"""A value that a program gives to Python."""


class Objects(Protocol):
    """Access to the objects of views: `ferryvm.engine.reference.References`."""

    def release(self, handle: int) -> None:
        """Give a handle back; any thread may do so at any time."""

    def type_name(self, number: int) -> str:
        """The name of a type."""

    def text(self, view: ObjectView) -> str:
        """The text of an object."""

    def field_names(self, number: int) -> list[str]:
        """The names of the fields of a struct type."""

    def field(self, view: StructView, name: str) -> Item:
        """The value of a field. Raises KeyError."""

    def set_field(self, view: StructView, name: str, value: object) -> None:
        """Set a field. Raises KeyError, CallError for a value of another type."""

    def length(self, view: ArrayView) -> int:
        """The number of elements."""

    def element(self, view: ArrayView, index: object) -> Item:
        """The element at an index. Raises IndexError, TypeError."""

    def set_element(self, view: ArrayView, index: object, value: object) -> None:
        """Set the element at an index. Raises IndexError, TypeError, CallError for a value of
        another type."""


class ObjectView:
    """A view of one object."""

    __slots__ = ("__weakref__", "_handle", "_references", "_type")

    _references: Objects
    _handle: int
    _type: int

    def __init__(self, references: Objects, handle: int, type_: int) -> None:
        """`handle`: one that belongs to this view; `type_`: the type number of the object."""
        object.__setattr__(self, "_handle", handle)
        object.__setattr__(self, "_type", type_)
        object.__setattr__(self, "_references", references)

    def __del__(self) -> None:
        self._references.release(self._handle)

    def __repr__(self) -> str:
        return self._references.text(self)

    def __copy__(self) -> ObjectView:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        name = self._references.type_name(self._type)
        raise TypeError(f"{with_article(name)} of a program cannot be copied or pickled")


class StructView(ObjectView):
    """A struct of a program: its fields are attributes, and items by their names.

    A field that is a struct, an array, or null is a StructView, an ndarray or ArrayView, or None.
    Fields are typed: a value of another type is a CallError. It keeps the struct, and the instance,
    alive. `ferryvm.type_name` has the name of its type.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        try:
            return self._references.field(self, name)
        except KeyError:
            raise AttributeError(self._missing(name)) from None

    def __setattr__(self, name: str, value: object) -> None:
        try:
            self._references.set_field(self, name, value)
        except KeyError:
            raise AttributeError(self._missing(name)) from None

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"the fields of {with_article(type_name(self))} cannot be deleted")

    def __getitem__(self, name: str) -> Any:
        try:
            return self._references.field(self, name)
        except KeyError:
            raise KeyError(self._missing(name)) from None

    def __setitem__(self, name: str, value: object) -> None:
        try:
            self._references.set_field(self, name, value)
        except KeyError:
            raise KeyError(self._missing(name)) from None

    def __iter__(self) -> Iterator[str]:
        raise TypeError(
            f"{with_article(type_name(self))} is no sequence; it has the fields {self._listed()}"
        )

    def __dir__(self) -> Sequence[str]:
        return self._references.field_names(self._type)

    def _missing(self, name: str) -> str:
        return f"{with_article(type_name(self))} has no field {name!r}; it has {self._listed()}"

    def _listed(self) -> str:
        return ", ".join(self._references.field_names(self._type)) or "none"


class ArrayView(ObjectView, Sequence["Item"]):
    """An array of references of a program, as a sequence whose elements can be set.

    Its elements are StructViews, ndarrays, ArrayViews, or None. A value of another type is a
    CallError. It keeps the array, and the instance, alive.
    """

    __slots__ = ()

    def __len__(self) -> int:
        return self._references.length(self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        return self._references.element(self, index)

    def __setitem__(self, index: int, value: object) -> None:
        self._references.set_element(self, index, value)


def type_name(view: StructView | ArrayView) -> str:
    """The name that a program gives to the type of a struct or an array of references."""
    return view._references.type_name(view._type)
