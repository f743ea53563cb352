# SPDX-License-Identifier: Apache-2.0
"""Planted faults of calls from Python: a test of the generated callers is left out.

A caller (`ferryvm_backends._llvm.python_caller`) serves the common call, and hands every other one
to Python code before anything has changed. Each test decides that for one reason, so a call with
that reason shows that it is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple
from unittest import mock

from ferryvm.engine import built_in
from ferryvm.machine.python_call import Boxed
from ferryvm_backends._llvm import python_caller
from ferryvm_backends._llvm.build import compile_loops
from ferryvm_backends._llvm.codegen import ObjectCode

from ..python.native_call import natively, outcome

FACTOR = 3


class CallFault(NamedTuple):
    """A caller of two arguments without one of its tests."""

    name: str
    about: str
    number: int
    """The number of the test in the order in which they are generated."""
    is_wrong: Callable[[], bool]
    """Makes a call for which the test is; True if the outcome is not CPython's."""


def _added(a: Any, b: Any) -> Any:
    return a + b


def _scaled(a: Any, b: Any) -> Any:
    return a * FACTOR - b


def _less(a: Any, b: Any) -> Any:
    return a < b


def _is_wrong_with_names() -> bool:
    return outcome(natively(_added, 1, 2), 1, 2, c=3)[0] != "TypeError"


def _is_wrong_with_another_type() -> bool:
    return outcome(natively(_added, 1, 2), 1.5, 2) != ("float", "3.5")


def _is_wrong_with_another_factor() -> bool:
    function = natively(_scaled, 1, 2)
    with mock.patch.dict(globals(), FACTOR=9):
        return outcome(function, 5, 1) != ("int", "44")


def _is_wrong_with_a_large_number() -> bool:
    return outcome(natively(_less, 1, 2), 2**64 + 5, 3) != ("bool", "False")


def _is_wrong_in_use() -> bool:
    function, otherwise = natively(_added, 1, 2), []
    (calls,) = function._plain[int, int]._calls
    call, _ = built_in.built_in(
        function._plain[int, int].function,
        (Boxed.INT, Boxed.INT),
        Boxed.INT,
        [],
        lambda *given: otherwise.append(given),
        lambda _given, error: error,
    )
    assert call is not None
    calls.alone(lambda _: call(1, 2))
    return otherwise != [(1, 2)]


FAULTS = (
    CallFault(
        "call-with-names-taken",
        "Arguments by name are not looked at.",
        0,
        _is_wrong_with_names,
    ),
    CallFault(
        "call-of-another-type-taken",
        "The type of the first argument is not compared.",
        2,
        _is_wrong_with_another_type,
    ),
    CallFault(
        "call-with-changed-name-taken",
        "Objects that the code depends on are not compared.",
        6,
        _is_wrong_with_another_factor,
    ),
    CallFault(
        "call-with-large-integer-taken",
        "An integer that leaves 64 bits is taken as -1.",
        7,
        _is_wrong_with_a_large_number,
    ),
    CallFault(
        "call-of-instance-in-use",
        "An instance that somebody uses is entered.",
        9,
        _is_wrong_in_use,
    ),
)

_CODE: list[ObjectCode] = []
"""Code with faults, which built-in functions refer to by address."""


def planted(fault: CallFault) -> AbstractContextManager[Any]:
    """Context in which callers are generated with the fault."""
    require, count = python_caller._Caller._require, 0

    def some(self: Any, holds: Any) -> None:
        nonlocal count
        count += 1
        if count != fault.number + 1:
            require(self, holds)

    def code(form: Any) -> ObjectCode:
        nonlocal count
        count = 0
        with mock.patch.object(python_caller._Caller, "_require", some):
            found = ObjectCode(compile_loops(python_caller.module(form)))
        _CODE.append(found)
        return found

    return mock.patch.object(python_caller, "_loaded", code)
