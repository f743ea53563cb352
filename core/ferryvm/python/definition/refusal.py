# SPDX-License-Identifier: Apache-2.0
"""Refusals of Python functions that CPython runs then, remembered as long as nothing has
changed."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator

from ferryvm.python.definition.dependency import Dependencies
from ferryvm.python.definition.source import MISSING
from ferryvm.python.fault import UnsupportedError
from ferryvm.python.value.kind import Constant, Kind

_PLACE = re.compile(r"argument \d+ \((\w+)\)")


def without_numbers(message: str) -> str:
    """A message about arguments of a compiled function, with their names alone."""
    _, _, said = message.rpartition(" of function: ")
    return _PLACE.sub(r"argument \1", said.removeprefix("function: "))


class Refusal:
    """The error for a function, and what else could be compiled may depend on: all names in the
    codes of the function and of those that it calls."""

    def __init__(
        self, error: UnsupportedError, function: types.FunctionType, kinds: tuple[Kind, ...] = ()
    ) -> None:
        self.error, self._function = error, function
        self._dependencies = Dependencies()
        waiting, seen = [function], set[types.FunctionType]()
        for kind in kinds:
            value = kind.value if isinstance(kind, Constant) else None
            value = getattr(value, "__ferryvm_function__", value)
            if isinstance(value, types.FunctionType):
                waiting.append(value)
        while waiting:
            each = waiting.pop()
            if each in seen:
                continue
            seen.add(each)
            self._dependencies.add_function(each)
            names = {*_names(each.__code__)}
            for name in names | {*each.__code__.co_freevars}:
                value = self._dependencies.add_free_name(each, name)
                value = getattr(value, "__ferryvm_function__", value)
                if isinstance(value, types.FunctionType):
                    waiting.append(value)
                elif isinstance(value, types.ModuleType):
                    found = {(value, n): vars(value).get(n, MISSING) for n in names}
                    self._dependencies.add_attributes(found)

    def is_current(self, function: types.FunctionType) -> bool:
        """True if a function would be refused again."""
        return function is self._function and self._dependencies.are_current()


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _names(each)
