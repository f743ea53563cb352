# SPDX-License-Identifier: Apache-2.0
"""Dependencies of compiled Python functions: free names, attributes of modules, and the functions
themselves, whose code or defaults may be replaced.

They are compared in each call, so that code is made again as soon as CPython would do something else.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Iterable, Mapping
from typing import Any

from ferryvm.python.source import MISSING, Source

Attributes = Mapping[tuple[types.ModuleType, str], object]
"""Values of attributes of modules."""


class Dependencies:
    """Values outside of a program that it was made for."""

    def __init__(self) -> None:
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
            self._add_name(source.function, name, value)
        for (module, name), value in attributes.items():
            if name in vars(module):
                self._names.append((vars(module), name, value))
            else:
                self._attributes.append((module, name, value))

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
        if name in cells:
            self._cells.append((cells[name], value))
        elif name in names:
            self._names.append((names, name, value))
        else:  # the module may get a name that hides the built-in one
            self._names += [(names, name, MISSING), (vars(builtins), name, value)]

    @property
    def has_names(self) -> bool:
        """True if there is a free name, or an attribute."""
        return bool(self._names or self._cells or self._attributes)

    def changed(self) -> str:
        """The name of what has changed: a value, or a function."""
        pairs = [(name, names.get(name, MISSING), value) for names, name, value in self._names]
        pairs += [
            (name, getattr(module, name, MISSING), old) for module, name, old in self._attributes
        ]
        for name, found, value in pairs:
            if found is not value and not _is_equal(found, value):
                return name
        for function, code, defaults, named in self._functions:
            now = function.__code__, function.__defaults__, function.__kwdefaults__
            if any(a is not b for a, b in zip(now, (code, defaults, named), strict=True)):
                return function.__name__
        return "a variable of a function around it"

    def are_current(self) -> bool:
        """True if all have these values."""
        for names, name, value in self._names:
            found = names.get(name, MISSING)
            if found is not value and not _is_equal(found, value):
                return False
        for function, code, defaults, named in self._functions:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                return False
            if function.__kwdefaults__ is not named:
                return False
        if self._cells and not _are_equal((_content(cell), value) for cell, value in self._cells):
            return False
        return not self._attributes or _are_equal(
            (getattr(module, name, MISSING), value) for module, name, value in self._attributes
        )


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _are_equal(pairs: Iterable[tuple[object, object]]) -> bool:
    return all(found is value or _is_equal(found, value) for found, value in pairs)


def _is_equal(a: object, b: object) -> bool:
    """True for numbers and texts that no program can tell apart: 0.0 and -0.0 are two."""
    return type(a) is type(b) and isinstance(a, int | float | str) and repr(a) == repr(b)
