# SPDX-License-Identifier: Apache-2.0
"""Dataclasses that are created in a twelfth of the time, for modules that every command imports.

    @dataclasses.dataclass(frozen=True)      six methods generated and compiled for each class
    @record.dataclass(frozen=True)           the fields found, and `__init__` generated, for the
                                             first instance; the other methods are shared by all

Half of the classes that a command imports get no instance. Such classes and their instances behave
like those of `dataclasses`, and type checkers treat them alike: `fields`, `replace` and `asdict`
accept them. There is no keyword-only field and no `InitVar`, and a frozen one derives from no other
dataclass.
"""

from __future__ import annotations

import dataclasses
import operator
import reprlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - exported to type checkers
else:

    def dataclass(class_=None, *, frozen=False, eq=True):
        """A class made a dataclass, or a decorator that does so, as `dataclasses.dataclass`."""
        if class_ is None:
            return lambda class_: _dataclass(class_, frozen, eq)
        return _dataclass(class_, frozen, eq)


def _dataclass(class_: type[Any], is_frozen: bool, is_compared: bool) -> type[Any]:
    class_.__doc__ = class_.__doc__ or class_.__name__  # else a signature
    own = vars(class_)
    for name in _COMPLETED:
        if name != "__init__" or name not in own:
            setattr(class_, name, _Placeholder(class_, name, is_frozen))
    shared: dict[str, Any] = {"__repr__": _Methods.__repr__}
    if is_compared:
        shared |= {"__eq__": _Methods.__eq__, "__hash__": _Methods.__hash__ if is_frozen else None}
    if is_frozen:
        shared |= {"__setattr__": _Methods.__setattr__, "__delattr__": _Methods.__delattr__}
    for name, method in shared.items():
        if own.get(name) is None:  # a class may have its own
            setattr(class_, name, method)
    return class_


_COMPLETED = (
    "__dataclass_fields__",
    "__dataclass_params__",
    "__match_args__",
    "__compared__",
    "__init__",
)
"""The attributes of a class that `_complete` makes."""

_completing = threading.RLock()


class _Placeholder:
    """An attribute of a class that is completed when the attribute is looked up."""

    def __init__(self, class_: type[Any], name: str, is_frozen: bool) -> None:
        self._class, self._name, self._is_frozen = class_, name, is_frozen

    def __get__(self, instance: object, class_: type[Any]) -> Any:
        with _completing:
            if vars(self._class)[self._name] is self:  # otherwise another thread was first
                _complete(self._class, self._is_frozen)
        return getattr(class_ if instance is None else instance, self._name)


def _complete(class_: type[Any], is_frozen: bool) -> None:
    """Replace the placeholders of a class, `__init__` last."""
    if isinstance(vars(class_)["__dataclass_fields__"], _Placeholder):
        dataclasses.dataclass(init=False, repr=False, eq=False, match_args=False)(class_)
    class_.__dataclass_params__.frozen = is_frozen  # `dataclasses` checks derived classes by it
    fields = dataclasses.fields(class_)
    class_.__match_args__ = tuple(field.name for field in fields if field.init)  # type: ignore[misc]
    compared = [field.name for field in fields if field.compare]
    class_.__compared__ = operator.attrgetter("__class__", *compared)
    if isinstance(vars(class_)["__init__"], _Placeholder):
        class_.__init__ = _init(class_)


def _init(class_: type[Any]) -> Any:
    """The `__init__` of a class, which stores its arguments past `__setattr__`."""
    parameters, lines = ["self"], ["_values = self.__dict__"]
    names: dict[str, Any] = {"_MISSING": dataclasses.MISSING}
    annotations: dict[str, Any] = {}
    for field in dataclasses.fields(class_):
        name, value, default = field.name, field.name, f"_default_{field.name}"
        if field.default_factory is not dataclasses.MISSING:
            names[default] = field.default_factory
            value = (
                f"{default}() if {name} is _MISSING else {name}" if field.init else f"{default}()"
            )
            parameter = f"{name}=_MISSING"
        elif field.default is not dataclasses.MISSING:
            names[default] = field.default
            parameter = f"{name}={default}"
        else:
            parameter = name
        if field.init:
            parameters.append(parameter)
            annotations[name] = field.type
        if field.init or field.default_factory is not dataclasses.MISSING:
            lines.append(f"_values[{name!r}] = {value}")
    if hasattr(class_, "__post_init__"):
        lines.append("self.__post_init__()")
    text = "\n    ".join([f"def __init__({', '.join(parameters)}):", *lines])
    exec(text, names)  # noqa: S102 - as `dataclasses` does
    made = names["__init__"]
    made.__qualname__, made.__module__ = f"{class_.__qualname__}.__init__", class_.__module__
    made.__annotations__ = {**annotations, "return": None}
    return made


class _Methods:
    """The methods that all such classes share; it has no instances."""

    __compared__: Callable[[object], tuple[object, ...]]
    """The class of an instance, and the values that its equality compares."""

    @reprlib.recursive_repr()
    def __repr__(self) -> str:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]  # in a class that has some
        shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields if f.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        compared = type(self).__compared__
        return compared(self) == compared(other)

    def __hash__(self) -> int:
        return hash(type(self).__compared__(self)[1:])

    def __setattr__(self, name: str, value: object) -> None:
        _refuse(self, "assign to", name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        _refuse(self, "delete", name)
        object.__delattr__(self, name)


def _refuse(instance: object, action: str, name: str) -> None:
    """Raise for a field, and for any attribute unless a derived class may have its own."""
    class_: Any = type(instance)
    if "__dataclass_fields__" in vars(class_) or name in class_.__dataclass_fields__:
        raise dataclasses.FrozenInstanceError(f"cannot {action} field {name!r}")
