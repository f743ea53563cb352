# SPDX-License-Identifier: Apache-2.0
"""Dependencies of compiled Python functions: free names, attributes of modules, and the functions
themselves, whose code or defaults may be replaced.

They are compared in each call, so that code is made again as soon as CPython would do something
else.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Iterable, Mapping
from typing import Any

from ferryvm.machine.python_call import ABSENT, Identity, Reader
from ferryvm.python.definition.source import MISSING, Source

Attributes = Mapping[tuple[types.ModuleType, str], object]
"""Values of attributes of modules."""


class Dependencies:
    """Values outside of a program that it was made for."""

    def __init__(self, entry: types.FunctionType | None = None) -> None:
        """`entry`: the function that is called, of which there may be others of the same code and
        module."""
        self._entry = entry
        self._own: list[tuple[int, str, object]] = []
        """Free variables of the entry: number, name, value."""
        self._is_recursive = False
        """True if the entry is among the values."""
        self._names: list[tuple[Mapping[str, object], str, object]] = []
        """Names of modules and of keyword defaults, with their values; MISSING: not defined."""
        self._cells: list[tuple[types.CellType, object]] = []
        self._attributes: list[tuple[types.ModuleType, str, object]] = []
        """Attributes that modules compute."""
        self._functions: list[tuple[types.FunctionType, object, object, object]] = []
        """Functions with their code, defaults, and keyword defaults."""

    def add(self, source: Source, names: Mapping[str, object], attributes: Attributes) -> None:
        """Add a function, the free names that it uses, and attributes of modules."""
        self.add_function(source.function)
        for name, value in names.items():
            self._is_recursive |= value is self._entry
            self._add_name(source.function, name, value)
        self.add_attributes(attributes)

    def add_attributes(self, attributes: Attributes) -> None:
        """Add attributes of modules."""
        for (module, name), value in attributes.items():
            if name in vars(module):
                self._names.append((vars(module), name, value))
            else:
                self._attributes.append((module, name, value))

    def add_free_name(self, function: types.FunctionType, name: str) -> object:
        """Add a free name of a function with its present value, which is returned; MISSING."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        if name in cells:
            value = _content(cells[name])
        else:
            value = function.__globals__.get(name, vars(builtins).get(name, MISSING))
        self._add_name(function, name, value)
        return value

    def add_function(self, function: types.FunctionType) -> None:
        """Add the code and the defaults of a function."""
        if any(known is function for known, *_ in self._functions):
            return
        named = function.__kwdefaults__
        self._functions.append((function, function.__code__, function.__defaults__, named))
        if named:
            self._names += [(named, name, value) for name, value in named.items()]

    def _add_name(self, function: types.FunctionType, name: str, value: object) -> None:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        names = function.__globals__
        if name in cells and function is self._entry:
            self._own.append((function.__code__.co_freevars.index(name), name, value))
        elif name in cells:
            self._cells.append((cells[name], value))
        elif name in names:
            self._names.append((names, name, value))
        else:  # the module may get a name that hides the built-in one
            self._names += [(names, name, MISSING), (vars(builtins), name, value)]

    @property
    def has_names(self) -> bool:
        """True if there is a free name, or an attribute."""
        return bool(self._names or self._own or self._cells or self._attributes)

    def identities(self) -> list[Identity] | None:
        """Objects that have not changed as long as each is in its place, for a call of the entry
        that passes all arguments; None if attributes are computed, so that only `are_current`
        tells."""
        entry = self._entry
        places: list[Mapping[str, object]] = [place for place, *_ in self._names]
        if self._attributes or not all(type(place) is dict for place in places):
            return None
        found = [
            Identity(Reader.NAME, place, name, ABSENT if value is MISSING else value)
            for place, name, value in self._names
        ]
        for function, code, defaults, named in self._functions:
            found.append(Identity(Reader.CODE, function, None, code))
            if function is not entry:
                for reader, value in (
                    (Reader.DEFAULTS, defaults),
                    (Reader.NAMED_DEFAULTS, named),
                ):
                    found.append(
                        Identity(reader, function, None, ABSENT if value is None else value)
                    )
        cells = [*self._cells]
        if self._own:
            assert entry is not None
            assert entry.__closure__ is not None
            cells += [(entry.__closure__[n], value) for n, _, value in self._own]
        found += [
            Identity(Reader.CELL, cell, None, ABSENT if value is MISSING else value)
            for cell, value in cells
        ]
        return found

    def changed_names(self, function: types.FunctionType) -> list[str]:
        """Free names of the entry that have other values in a function of its code."""
        names = function.__globals__
        found = [
            name
            for of, name, value in self._names
            if of is names and not _is_same(names.get(name, MISSING), value)
        ]
        cells = function.__closure__ or ()
        found += [name for n, name, value in self._own if not _is_same(_content(cells[n]), value)]
        used = _names_in(function.__code__)
        return [name for name in dict.fromkeys(found) if name in used]

    def changed(self, function: types.FunctionType) -> str:
        """The name of what has changed: a value, or a function."""
        names = self.changed_names(function)
        if names:
            return names[0]
        pairs = [(name, of.get(name, MISSING), value) for of, name, value in self._names]
        pairs += [
            (name, getattr(module, name, MISSING), old) for module, name, old in self._attributes
        ]
        for name, found, value in pairs:
            if not _is_same(found, value):
                return name
        for each, code, defaults, named in self._functions:
            now = each.__code__, each.__defaults__, each.__kwdefaults__
            if any(a is not b for a, b in zip(now, (code, defaults, named), strict=True)):
                return each.__name__
        return "a variable of a function around it"

    def are_current(self, function: types.FunctionType | None = None) -> bool:
        """True if all have these values; `function`: another one of the code of the entry."""
        entry = self._entry
        if function is None:
            function = entry
        elif function is not entry and self._is_recursive:
            return False
        for names, name, value in self._names:
            found = names.get(name, MISSING)
            if found is not value and not _is_equal(found, value):
                return False
        for each, code, defaults, named in self._functions:
            if each is entry and function is not entry:
                continue  # a call passes the other one's defaults
            if each.__code__ is not code or each.__defaults__ is not defaults:
                return False
            if each.__kwdefaults__ is not named:
                return False
        if self._own:
            cells = function.__closure__ if function is not None else None
            if not _are_equal((_content(cells[n]), value) for n, _, value in self._own):  # type: ignore[index]  # an entry with free variables
                return False
        if self._cells and not _are_equal((_content(cell), value) for cell, value in self._cells):
            return False
        for module, name, value in self._attributes:
            found = getattr(module, name, MISSING)
            if found is not value and not _is_equal(found, value):
                return False
        return True


def are_alike(one: object, other: object) -> bool:
    """True if two functions are one, or have the same code, module, defaults, and free
    variables."""
    if one is other:
        return True
    if not (isinstance(one, types.FunctionType) and isinstance(other, types.FunctionType)):
        return False
    if one.__code__ is not other.__code__ or one.__globals__ is not other.__globals__:
        return False
    mine, its = _surroundings(one), _surroundings(other)
    return mine.keys() == its.keys() and _are_equal((mine[name], its[name]) for name in mine)


def _surroundings(function: types.FunctionType) -> dict[object, object]:
    """The defaults of a function by their numbers or names, and its free variables."""
    found: dict[object, object] = dict(enumerate(function.__defaults__ or ()))
    found.update(function.__kwdefaults__ or {})
    found.update((("cell", n), _content(cell)) for n, cell in enumerate(function.__closure__ or ()))
    return found


def _names_in(code: types.CodeType) -> set[str]:
    """Names that a function uses, and the functions in it."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return {*code.co_names, *code.co_freevars}.union(*map(_names_in, inner))


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _are_equal(pairs: Iterable[tuple[object, object]]) -> bool:
    return all(_is_same(found, value) for found, value in pairs)


def _is_same(found: object, value: object) -> bool:
    return found is value or _is_equal(found, value)


def _is_equal(a: object, b: object) -> bool:
    """True for numbers and texts that no program can tell apart: 0.0 and -0.0 are two."""
    return type(a) is type(b) and isinstance(a, int | float | str) and repr(a) == repr(b)
