# SPDX-License-Identifier: Apache-2.0
"""A Python function compared with itself: CPython, and each backend.

check(f, *arguments)  ──>  results and exceptions, and what is in the arrays afterwards, bit for bit
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import struct
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferryvm.engine import TrapError
from ferryvm.errors import FerryError
from ferryvm.failure import shown
from ferryvm.policy import Policy
from ferryvm.python.call.function import PythonFunction
from ferryvm.python.compiled.compiled_version import Version
from ferryvm.python.definition.raised import site_of
from ferryvm.registry import Availability, Registry

_LONGEST_CHAIN = 20
"""Exceptions of a chain that are compared."""


class PythonDifferenceError(FerryError):
    """A backend and CPython disagree about a call."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result or exception of a call, and its arguments afterwards."""

    value: Any
    error: Exception | None = None
    arguments: Sequence[Any] = ()

    def __str__(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}({str(self.error)!r})"
        return f"{self.value!r}"


@dataclasses.dataclass(frozen=True)
class PythonDifference:
    """A difference between the outcomes of a call."""

    text: str
    what: str
    """The kind of difference, the same for calls with one cause."""


class CheckedFunction(PythonFunction[..., Any]):
    """A function on one backend, whose calls are compared with CPython's."""

    def __init__(
        self, function: Callable[..., Any], backend: str | None, policy: Policy | None = None
    ) -> None:
        super().__init__(function, backend, policy, True)
        self._is_over = False
        """True if CPython could not go on: the recursion is deeper than its own."""

    def _trapped(self, version: Version, error: TrapError, values: Sequence[Any]) -> Any:
        site = site_of(error, version.sites)
        is_resumed = isinstance(error.state, list) or not version.has_effects
        self._is_over = site is not None and not is_resumed
        return super()._trapped(version, error, values)

    def difference(self, wanted: Outcome, arguments: Sequence[Any]) -> PythonDifference | None:
        """The difference between CPython's outcome of a call and this one. Raises UnsupportedError
        for a function that cannot be compiled, and what the machine raises."""
        self._is_over = False
        found = outcome_of(self, arguments)
        if isinstance(found.error, FerryError):
            raise found.error
        if self._is_over:
            return None
        one, other = type(found.error), type(wanted.error)
        both = f"{found}; CPython: {wanted}"
        if one is not other:
            return PythonDifference(both, f"{_end(found)}, not {_end(wanted)}")
        if not is_same(wanted.value, found.value):
            return PythonDifference(both, "result")
        if not isinstance(found.error, RecursionError):
            if str(found.error) != str(wanted.error):
                return PythonDifference(both, "message")
            if _chain(found.error) != _chain(wanted.error):
                text = f"{both}; with {_chain(found.error)}; CPython: {_chain(wanted.error)}"
                return PythonDifference(text, "cause or context")
        for number, (a, b) in enumerate(zip(wanted.arguments, found.arguments, strict=True)):
            if not is_same(a, b):
                text = f"argument {number + 1} is {b!r} afterwards; CPython: {a!r}"
                return PythonDifference(text, "argument afterwards")
        return None


def _chain(error: BaseException | None) -> list[str]:
    """The types of an exception and of those that it refers to."""
    found: list[str] = []
    while error is not None and len(found) < _LONGEST_CHAIN:
        found.append(type(error).__name__)
        if error.__cause__ is not None:
            found.append("from")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


def _end(outcome: Outcome) -> str:
    return "result" if outcome.error is None else type(outcome.error).__name__


def usable_backends() -> list[str]:
    """The names of the backends that can run here."""
    found = Registry().listings()
    return [each.name for each in found if each.state is Availability.USABLE]


@functools.lru_cache(maxsize=16)
def _checked(function: Callable[..., Any], backend: str) -> CheckedFunction:
    """The function on a backend, for checks that follow one another."""
    return CheckedFunction(function, backend)


def check(
    function: Callable[..., Any], /, *arguments: Any, backends: Sequence[str] | None = None
) -> Any:
    """The result of a Python function for these arguments, after a comparison of all backends with
    CPython: type and bits of the result, type and message of the exception, and the arrays
    afterwards.

    `backends`: their names; by default all that can run here. Each run has copies of the arguments.
    Raises TypeError if they are one text, PythonDifferenceError, which names the backend and both
    outcomes, and the exception of CPython if all agree on it. Where a number leaves 64 bits, what
    CPython goes on to is compared; where it cannot go on, there is nothing to compare.
    """
    if isinstance(backends, str):
        raise TypeError(f"backends is {backends!r}; names are needed: [{backends!r}]")
    if not isinstance(function, types.FunctionType):
        function = getattr(function, "__ferryvm_function__", function)
    wanted = outcome_of(function, arguments)
    for backend in usable_backends() if backends is None else backends:
        difference = _checked(function, backend).difference(wanted, arguments)
        if difference is not None:
            call = f"{function.__name__}({', '.join(map(shown, arguments))})"
            raise PythonDifferenceError(f"{call} on {backend}: {difference.text}")
    if wanted.error is not None:
        raise wanted.error
    return wanted.value


def outcome_of(function: Callable[..., Any], arguments: Sequence[Any]) -> Outcome:
    """The outcome of a call, which gets copies of the arguments."""
    given = copy.deepcopy(arguments)
    with np.errstate(all="ignore"):
        try:
            return Outcome(function(*given), arguments=given)
        except Exception as error:  # noqa: BLE001  # whatever the function raises
            return Outcome(None, error, given)


def is_same(a: Any, b: Any) -> bool:
    """True for values of one type with the same bits, where any NaN equals any NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, np.ndarray | np.generic):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype.kind == "c":
            return is_same(a.real, b.real) and is_same(a.imag, b.imag)
        if a.dtype.kind == "f":
            both = np.isnan(a) & np.isnan(b)
            return bool(np.all(both | ((a == b) & (np.signbit(a) == np.signbit(b)))))
        return bool(np.array_equal(a, b))
    if isinstance(a, complex):
        return is_same(a.real, b.real) and is_same(a.imag, b.imag)
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or struct.pack("d", a) == struct.pack("d", b)
    return bool(a == b)
