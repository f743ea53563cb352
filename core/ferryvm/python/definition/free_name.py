# SPDX-License-Identifier: Apache-2.0
"""Free names of a Python function that are arguments of its code, since their values change.

    map(lambda x: x * k, xs)     k is a constant of the code, until it has another value;
                                 then the code takes k as a further argument, for good

A constant makes better code, so names begin as one. Functions of the same code, such as a lambda
that each iteration of a loop makes anew, share their versions.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from ferryvm.python.value.kind import Array, Complex, Kind, Number, Scalar, Tuple
from ferryvm.python.value.value_kind import MisfitError, kind_of


class FreeNames:
    """Free names of one function."""

    def __init__(self, names: tuple[str, ...] = (), code: types.CodeType | None = None) -> None:
        """`code`: of the function."""
        cells = () if code is None else code.co_freevars
        self.names = names
        self._places = [(cells.index(name) if name in cells else None, name) for name in self.names]

    def values(self, function: types.FunctionType) -> tuple[Any, ...]:
        """Their values, in a function of this code. Raises KeyError or ValueError if one has
        none."""
        if not self.names:
            return ()
        cells, names = function.__closure__ or (), function.__globals__
        return tuple(
            names[name] if cell is None else cells[cell].cell_contents
            for cell, name in self._places
        )

    def kinds(self, function: types.FunctionType) -> tuple[Kind, ...] | None:
        """The kinds of their values; None if one cannot be an argument."""
        try:
            found = tuple(map(kind_of, self.values(function)))
        except (KeyError, ValueError, MisfitError):
            return None
        return found if all(map(_is_argument, found)) else None

    def with_arguments(self, names: Iterable[str], function: types.FunctionType) -> FreeNames:
        """These names, and those of others whose values in a function can be arguments."""
        code = function.__code__
        found = [name for name in names if FreeNames((name,), code).kinds(function) is not None]
        return FreeNames((*self.names, *found), code) if found else self


NO_NAMES = FreeNames()


def _is_argument(kind: Kind) -> bool:
    """True for the kind of a value that code takes as it takes a constant."""
    if isinstance(kind, Tuple):
        return all(map(_is_argument, kind.items))
    return isinstance(kind, Number | Scalar | Complex | Array)
