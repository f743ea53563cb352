# SPDX-License-Identifier: Apache-2.0
"""A Python function compared with itself: CPython, and each backend.

check(f, *arguments)  ──>  results and exceptions, and what is in the arrays afterwards, bit for bit
"""

from __future__ import annotations

import copy
import dataclasses
import math
import struct
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ferryvm.engine import TrapError
from ferryvm.errors import FerryError
from ferryvm.failure import shown
from ferryvm.python.function import PythonFunction, Version
from ferryvm.python.raised import site_of
from ferryvm.registry import Availability, Registry


class PythonDifferenceError(FerryError):
    """A backend and CPython disagree about a call."""


@dataclasses.dataclass(frozen=True)
class _Outcome:
    """The result or exception of a call, and its arguments afterwards."""

    value: Any
    error: type[BaseException] | None
    is_limit: bool = False
    """True if a number left 64 bits."""
    arguments: Sequence[Any] = ()

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.error.__name__}{' (64 bits)' if self.is_limit else ''}"
        return f"{self.value!r}"


class _LeftError(Exception):
    """A compiled function left, where CPython would take over."""

    def __init__(self, error: type[BaseException] | None, is_limit: bool, reason: str) -> None:
        self.error, self.is_limit = error, is_limit
        super().__init__(reason)


class _Alone(PythonFunction[..., Any]):
    """A function that CPython never takes over."""

    def _trapped(self, version: Version, error: TrapError, values: Sequence[Any]) -> Any:
        site = site_of(error, version.sites)
        if site is None:
            raise error
        raise _LeftError(site.type, site.is_limit, str(error))

    def python(self, values: Sequence[Any], reason: str) -> Any:
        raise _LeftError(None, True, reason)


def usable_backends() -> list[str]:
    """The names of the backends that can run here."""
    found = Registry().listings()
    return [each.name for each in found if each.state is Availability.USABLE]


def check(
    function: Callable[..., Any], /, *arguments: Any, backends: Sequence[str] | None = None
) -> Any:
    """The result of a Python function for these arguments, after a comparison of all backends with
    CPython: type and bits of the result, the type of the exception, and the arrays afterwards.

    `backends`: their names; by default all that can run here. Each run has copies of the arguments.
    Raises PythonDifferenceError, which names the backend and both outcomes, and the exception of
    CPython if all agree on it. Where a number leaves 64 bits, a backend has nothing to compare.
    """
    if not isinstance(function, types.FunctionType):
        function = getattr(function, "__ferryvm_function__", function)
    wanted, raised = _by_python(function, arguments)
    for backend in usable_backends() if backends is None else backends:
        found = _by_backend(function, arguments, backend)
        difference = _difference(wanted, found)
        if difference:
            shown_ = ", ".join(map(shown, arguments))
            raise PythonDifferenceError(f"{function.__name__}({shown_}) on {backend}: {difference}")
    if raised is not None:
        raise raised
    return wanted.value


def _by_python(
    function: Callable[..., Any], arguments: Sequence[Any]
) -> tuple[_Outcome, BaseException | None]:
    given = copy.deepcopy(arguments)
    with np.errstate(all="ignore"):
        try:
            return _Outcome(function(*given), None, arguments=given), None
        except Exception as error:  # noqa: BLE001  # whatever the function raises
            return _Outcome(None, type(error), arguments=given), error


def _by_backend(function: Callable[..., Any], arguments: Sequence[Any], backend: str) -> _Outcome:
    given = copy.deepcopy(arguments)
    try:
        return _Outcome(_Alone(function, backend, None, True)(*given), None, arguments=given)
    except _LeftError as left:
        return _Outcome(None, left.error, left.is_limit, given)


def _difference(wanted: _Outcome, found: _Outcome) -> str:
    """The difference of two outcomes; empty if there is none."""
    if found.is_limit:
        return ""
    if wanted.error is not found.error or not is_same(wanted.value, found.value):
        return f"{found}; CPython: {wanted}"
    for number, (a, b) in enumerate(zip(wanted.arguments, found.arguments, strict=True)):
        if not is_same(a, b):
            return f"argument {number + 1} is {b!r} afterwards; CPython: {a!r}"
    return ""


def is_same(a: Any, b: Any) -> bool:
    """True for values of one type with the same bits, where any NaN equals any NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, np.ndarray | np.generic):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype.kind == "f":
            both = np.isnan(a) & np.isnan(b)
            return bool(np.all(both | ((a == b) & (np.signbit(a) == np.signbit(b)))))
        return bool(np.array_equal(a, b))
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or struct.pack("d", a) == struct.pack("d", b)
    return bool(a == b)
