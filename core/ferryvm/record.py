# SPDX-License-Identifier: Apache-2.0
"""Dataclasses that are created in a twelfth of the time, for modules that every command imports.

    @dataclasses.dataclass(frozen=True)      six methods generated and compiled for each class
    @record.dataclass(frozen=True)           the fields found for the first instance, `__init__`
                                             generated for the fifth; the others are shared by all

Half of the classes that a command imports get no instance. Such classes and their instances behave
like those of `dataclasses`, and type checkers treat them alike: `fields`, `replace` and `asdict`
accept them. There is no keyword-only field and no `InitVar`, and a record derives from no other
dataclass. `field` and `replace` are those of `dataclasses`, whose import takes 5 ms: a small run
does without it.
"""

from __future__ import annotations

import functools
import operator
import reprlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

_MISSING = object()
"""The default of a field that has none."""


class Field:
    """A field of a record, as `dataclasses.Field`."""

    __slots__ = ("compare", "default", "default_factory", "init", "name", "repr", "type")

    def __init__(
        self, default: Any, default_factory: Any, init: bool, repr: bool, compare: bool
    ) -> None:
        self.default, self.default_factory = default, default_factory
        self.init, self.repr, self.compare = init, repr, compare
        self.name = ""
        self.type: object = None


if TYPE_CHECKING:
    # exported to type checkers
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - as above
    from dataclasses import field as field  # noqa: PLC0414 - as above
    from dataclasses import replace as replace  # noqa: PLC0414 - as above
else:

    def field(*, default=_MISSING, default_factory=_MISSING, init=True, repr=True, compare=True):
        """A field of a record, with other properties than those of its annotation."""
        return Field(default, default_factory, init, repr, compare)

    def replace(instance, **changes):
        """A record with the fields of another one, except for the changes; a dataclass, too. Raises
        TypeError for an unknown field."""
        fields = getattr(type(instance), _FIELDS, None)
        if fields is None:
            import dataclasses

            return dataclasses.replace(instance, **changes)
        for name, each in fields.items():
            if each.init:
                changes.setdefault(name, getattr(instance, name))
            elif name in changes:
                raise ValueError(f"field {name!r} has no parameter, so it cannot be replaced")
        return type(instance)(**changes)

    def dataclass(class_=None, *, frozen=False, eq=True):
        """A class made a dataclass, or a decorator that does so, as `dataclasses.dataclass`."""
        if class_ is None:
            return lambda class_: _dataclass(class_, frozen, eq)
        return _dataclass(class_, frozen, eq)


def _dataclass(class_: type[Any], is_frozen: bool, is_compared: bool) -> type[Any]:
    class_.__doc__ = class_.__doc__ or class_.__name__  # else a signature
    own = vars(class_)
    for base in class_.__mro__[1:-1]:
        if "__dataclass_fields__" in vars(base) and _FIELDS not in vars(base):
            raise TypeError(f"record {class_.__name__} derives from {base.__name__}, a dataclass")
    for name, make in _MADE_LATER.items():
        setattr(class_, name, _Placeholder(class_, name, make, is_frozen))
    if "__init__" not in own:
        class_.__init__ = _Initialiser(class_, "__init__", _init, is_frozen)
    shared: dict[str, Any] = {"__repr__": _Methods.__repr__}
    if is_compared:
        shared |= {"__eq__": _Methods.__eq__, "__hash__": _Methods.__hash__ if is_frozen else None}
    if is_frozen:
        shared |= {"__setattr__": _Methods.__setattr__, "__delattr__": _Methods.__delattr__}
    for name, method in shared.items():
        if own.get(name) is None:  # a class may have its own
            setattr(class_, name, method)
    return class_


_FIELDS = "__record_fields__"
"""The attribute with the fields of a class by their names. That of `dataclasses` takes four times
as long to make, so it is made only for the functions of that module."""

_making = threading.RLock()


class _Placeholder:
    """An attribute of a class that is made when it is looked up."""

    def __init__(
        self, class_: type[Any], name: str, make: Callable[[type[Any]], object], is_frozen: bool
    ) -> None:
        self._class, self._name, self._make, self.is_frozen = class_, name, make, is_frozen

    def __get__(self, instance: object, class_: type[Any]) -> Any:
        with _making:
            if vars(self._class)[self._name] is self:  # otherwise another thread was first
                setattr(self._class, self._name, self._make(self._class))
        return getattr(class_ if instance is None else instance, self._name)


_FIRST = 4
"""Instances of a class until its `__init__` is generated, which takes a tenth of a millisecond."""


class _Initialiser(_Placeholder):
    """The `__init__` of a class, which initialises the first instances itself."""

    _left = _FIRST

    def __get__(self, instance: object, class_: type[Any]) -> Any:
        if instance is None or not self._left:
            return super().__get__(instance, class_)
        self._left -= 1
        return functools.partial(self._initialise, instance)

    def _initialise(self, instance: Any, *arguments: object, **named: object) -> None:
        """As the `__init__` that is generated, which refuses wrong arguments."""
        names = _positional(self._class)
        given = dict(zip(names, arguments, strict=False)) | named
        values: dict[str, object] = {}
        is_complete = len(given) == len(arguments) + len(named) and given.keys() <= set(names)
        for name, field in getattr(self._class, _FIELDS).items():
            if name in given:
                values[name] = given[name]
            elif field.default_factory is not _MISSING:
                values[name] = field.default_factory()
            elif field.init:
                values[name] = field.default
                is_complete = is_complete and field.default is not _MISSING
        if not is_complete:
            super().__get__(instance, self._class)(*arguments, **named)
            return
        instance.__dict__.update(values)
        if hasattr(self._class, "__post_init__"):
            instance.__post_init__()


def _fields(class_: type[Any]) -> dict[str, Field]:
    """The fields of a class, found in its annotations; its attributes are their defaults from then
    on."""
    found: dict[str, Field] = {}
    for base in class_.__mro__[-1:0:-1]:
        found |= getattr(base, _FIELDS, {})
    for name, annotation in vars(class_).get("__annotations__", {}).items():
        if str(annotation).startswith(("ClassVar", "typing.ClassVar")):
            continue
        field = vars(class_).get(name, _MISSING)
        if type(field).__module__ == "dataclasses":
            raise TypeError(f"{class_.__name__}.{name}: record.field makes the fields of records")
        if not isinstance(field, Field):
            field = Field(field, _MISSING, True, True, True)
        elif field.default is _MISSING:
            delattr(class_, name)
        else:
            setattr(class_, name, field.default)
        field.name, field.type = name, annotation
        found[name] = field
    return found


def _standard(class_: type[Any]) -> type[Any]:
    """A dataclass of the standard library that has the fields of a class."""
    import dataclasses

    body: dict[str, Any] = {"__module__": class_.__module__, "__annotations__": {}}
    for name, field in getattr(class_, _FIELDS).items():
        properties: dict[str, Any] = {
            key: getattr(field, key)
            for key in ("default", "default_factory", "init", "repr", "compare")
            if getattr(field, key) is not _MISSING
        }
        body[name] = dataclasses.field(**properties)
        body["__annotations__"][name] = field.type
    made: type[Any] = type(class_.__name__, (), body)
    return dataclasses.dataclass(init=False, repr=False, eq=False, match_args=False)(made)


def _standard_fields(class_: type[Any]) -> object:
    return _standard(class_).__dataclass_fields__


def _standard_parameters(class_: type[Any]) -> object:
    """The arguments of `dataclass`, which it looks at for derived classes."""
    found = _standard(class_).__dataclass_params__
    found.frozen = vars(class_)["__dataclass_params__"].is_frozen
    return found


def _positional(class_: type[Any]) -> tuple[str, ...]:
    return tuple(name for name, field in getattr(class_, _FIELDS).items() if field.init)


def _compared(class_: type[Any]) -> Callable[[object], tuple[object, ...]]:
    """A function from an instance to its class and the values of its compared fields."""
    names = [name for name, field in getattr(class_, _FIELDS).items() if field.compare]
    return operator.attrgetter("__class__", *names)


def _init(class_: type[Any]) -> Any:
    """The `__init__` of a class, which stores its arguments past `__setattr__`."""
    parameters, lines = ["self"], ["_values = self.__dict__"]
    names: dict[str, Any] = {"_MISSING": _MISSING}
    annotations: dict[str, Any] = {}
    for name, field in getattr(class_, _FIELDS).items():
        value, default = name, f"_default_{name}"
        if field.default_factory is not _MISSING:
            names[default] = field.default_factory
            value = (
                f"{default}() if {name} is _MISSING else {name}" if field.init else f"{default}()"
            )
            parameter = f"{name}=_MISSING"
        elif field.default is not _MISSING:
            names[default] = field.default
            parameter = f"{name}={default}"
        else:
            parameter = name
        if field.init:
            parameters.append(parameter)
            annotations[name] = field.type
        if field.init or field.default_factory is not _MISSING:
            lines.append(f"_values[{name!r}] = {value}")
    if hasattr(class_, "__post_init__"):
        lines.append("self.__post_init__()")
    text = "\n    ".join([f"def __init__({', '.join(parameters)}):", *lines])
    exec(text, names)  # noqa: S102 - as `dataclasses` does
    made = names["__init__"]
    made.__qualname__, made.__module__ = f"{class_.__qualname__}.__init__", class_.__module__
    made.__annotations__ = {**annotations, "return": None}
    return made


_MADE_LATER: dict[str, Callable[[type[Any]], object]] = {
    _FIELDS: _fields,
    "__dataclass_fields__": _standard_fields,
    "__dataclass_params__": _standard_parameters,
    "__match_args__": _positional,
    "__compared__": _compared,
}
"""The attributes of a class that are made when they are looked up."""


class _Methods:
    """The methods that all such classes share; it has no instances."""

    __compared__: Callable[[object], tuple[object, ...]]
    """The class of an instance, and the values that its equality compares."""

    @reprlib.recursive_repr()
    def __repr__(self) -> str:
        fields = getattr(type(self), _FIELDS).values()
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
        import dataclasses

        raise dataclasses.FrozenInstanceError(f"cannot {action} field {name!r}")
