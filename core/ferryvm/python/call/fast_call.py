# SPDX-License-Identifier: Apache-2.0
"""Calls of a Python function with numbers of the types for which it was compiled first.

    f(a, b) ──> type(a) is float and type(b) is float ──> the compiled function
                                  │ else
                                  └─> PythonFunction.__call__, which finds the version

The method is written out for the number of arguments and their types: it makes no tuple of types.
After some hundred calls a built-in function takes its place, which does the same in native code
(`ferryvm.engine.built_in`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

from ferryvm.engine.built_in import built_in
from ferryvm.machine.python_call import ArmedWord, Boxed
from ferryvm.python.compiled.compiled_version import Version
from ferryvm.python.value.kind import BOOL, FLOAT, INT, Constant, Kind

_MISSING = object()

CALLS_BEFORE = 256
"""Calls by the method before a built-in function is made: at once would be too early for LLVM,
which takes longer to import than most scripts run."""

Left = Callable[[Any, Any, Any, tuple[Any, ...]], Any]
"""The end of a call that raised an error: the function, the version, the error, the arguments."""

_OF_PYTHON = {float: Boxed.FLOAT, int: Boxed.INT, bool: Boxed.BOOL}
_OF_KIND: dict[Kind, Boxed] = {
    FLOAT: Boxed.FLOAT,
    INT: Boxed.INT,
    BOOL: Boxed.BOOL,
    Constant(None): Boxed.NONE,
}


def result_of(version: Version) -> Boxed | None:
    """The type of all results of a version, if they are simple objects of one type."""
    results = version.results or []
    return _OF_KIND.get(results[0]) if len(results) == 1 else None


def method(
    types: tuple[type, ...],
    python: FunctionType,
    version: Version,
    left: Left,
    otherwise: Callable[..., Any],
    often: Callable[[], object],
) -> Callable[..., Any]:
    """The method that calls the function of a version, with arguments of exactly these types, and
    `otherwise` with all others, and where the Python function has other code. `left`: called where
    the compiled function raises; `often`: called once, after `CALLS_BEFORE` calls."""
    is_bool = result_of(version) is Boxed.BOOL
    make = _maker(tuple(each.__name__ for each in types), is_bool, version.has_names)
    made: Callable[..., Any] = make(
        python, python.__code__, version, left, otherwise, often, _MISSING, *types
    )
    return made


def built_in_method(
    types: tuple[type, ...],
    version: Version,
    left: Callable[[Version, BaseException, tuple[Any, ...]], Any],
    otherwise: Callable[..., Any],
) -> tuple[Callable[..., Any] | None, str]:
    """The built-in function that does what the method does; None with the reason that there is
    none. `left`, `otherwise`: bound to the Python function."""
    result = result_of(version)
    if result is None:
        shown = " or ".join(sorted(map(str, version.results or []))) or "nothing"
        return None, f"the result is {shown}"
    compiled = version.function
    identities = version.dependencies.identities()
    if identities is None:
        return None, "it depends on attributes that a module computes"
    calls, _ = compiled.__ferryvm__
    go_on, armed, taken = compiled.__ferryvm_left__, calls.armed, ArmedWord.TAKEN

    def finish(arguments: tuple[Any, ...], error: BaseException | None) -> Any:
        try:
            found = go_on(error)
            return found if version.read is None else version.read(found)
        except BaseException as raised:
            if not armed[taken]:  # a signal handler's, before the call was taken
                raise
            another = raised
        return left(version, another, arguments)

    parameters = tuple(_OF_PYTHON[each] for each in types)
    return built_in(compiled, parameters, result, identities, otherwise, finish)


@functools.cache
def _maker(types: tuple[str, ...], is_bool: bool, has_names: bool) -> Callable[..., Any]:
    numbers = range(len(types))
    given = ", ".join(f"x{n}" for n in numbers)
    taken = "".join(f"x{n}=missing, " for n in numbers)
    tests = " and ".join([f"type(x{n}) is t{n}" for n in numbers])
    if has_names:
        tests += " and is_current()"
    call = f"compiled({given})"
    text = f"""
def make(python, code, version, left, otherwise, often, missing, {", ".join(f"t{n}" for n in numbers)}):
    compiled, is_current, calls_left = version.function, version.is_current, {CALLS_BEFORE}
    def __call__(self, {taken}/, *rest, **named):
        nonlocal calls_left
        if {tests} and python.__code__ is code and not rest and not named:
            calls_left -= 1
            if not calls_left:
                often()
            try:
                return {f"bool({call})" if is_bool else call}
            except BaseException as raised:
                found = raised
            return left(self, version, found, ({given},))
        values = [each for each in ({given},) if each is not missing]
        return otherwise(self, *values, *rest, **named)
    return __call__
"""
    scope: dict[str, Any] = {}
    exec(compile(text, "<call>", "exec"), scope)  # noqa: S102  # made of numbers
    found: Callable[..., Any] = scope["make"]
    return found
