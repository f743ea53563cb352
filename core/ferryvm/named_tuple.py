# SPDX-License-Identifier: Apache-2.0
"""Named tuples that are created in a third of the time, for modules that every command imports.

    typing.NamedTuple         compiles each annotation that is a text, to check that it is a type, and
                              generates six methods for each class
    named_tuple.NamedTuple    generates `__new__` for each number of fields, and renames its parameters;
                              the other methods are shared by all

Such classes and their instances behave like those of `typing`, and type checkers treat them alike.
Their annotations remain as they are written.
"""

from __future__ import annotations

import functools
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - exported to type checkers
else:
    from collections import _tuplegetter

    class _Methods(tuple):
        """The methods that all named tuples share; it has no instances of its own."""

        __slots__ = ()

        @classmethod
        def _make(cls, values):
            made = tuple.__new__(cls, values)
            if len(made) != len(cls._fields):
                raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
            return made

        def _replace(self, /, **changes):
            made = self._make(map(changes.pop, self._fields, self))
            if changes:
                raise ValueError(f"Got unexpected field names: {list(changes)!r}")
            return made

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            shown = ", ".join(map("{}={!r}".format, self._fields, self))
            return f"{type(self).__name__}({shown})"

        def __getnewargs__(self):
            return tuple(self)

    class _Maker(type):
        """Makes a subclass of `tuple` of the body of a class that derives from `NamedTuple`."""

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            annotations = body.get("__annotations__", {})
            defaults = {field: body.pop(field) for field in annotations if field in body}
            fields = tuple(annotations)
            getters = {field: _tuplegetter(index, None) for index, field in enumerate(fields)}
            own = {
                "__slots__": (),
                "__new__": _new(name, body, annotations, defaults),
                "__match_args__": fields,
                "_fields": fields,
                "_field_defaults": defaults,
            }
            return type(name, (_Methods,), getters | own | body)

    class NamedTuple(metaclass=_Maker):
        """The base of named tuples, as `typing.NamedTuple`."""


def _new(
    name: str, body: dict[str, Any], annotations: dict[str, Any], defaults: dict[str, Any]
) -> Any:
    """The `__new__` of a class: from its fields to a tuple."""
    if list(defaults) != list(annotations)[len(annotations) - len(defaults) :]:
        raise TypeError(f"{name}: a field without a default follows one with a default")
    code = _constructor(len(annotations)).replace(
        co_varnames=("_cls", *annotations), co_name="__new__", co_filename=f"<{name}>"
    )
    made = FunctionType(code, {"_make": tuple.__new__})
    made.__name__, made.__qualname__ = "__new__", f"{name}.__new__"
    made.__module__ = body["__module__"]
    made.__annotations__ = dict(annotations)
    made.__defaults__ = tuple(defaults.values())
    return made


@functools.cache
def _constructor(count: int) -> CodeType:
    """The code of `__new__` for so many fields, with names of their own."""
    parameters = "".join(f"_{number}, " for number in range(count))
    found: CodeType = eval(f"lambda _cls, {parameters}: _make(_cls, ({parameters}))").__code__
    return found
