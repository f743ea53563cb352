# SPDX-License-Identifier: Apache-2.0
"""The compiled functions of Python functions that are mapped as they are.

    lambda x: x * k  ──> its code and module ──> one `PythonFunction` for all functions made of it

A lambda that is written in a loop is another function in each iteration, with the same code.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ferryvm.failure import shown
from ferryvm.python.call.function import PythonFunction
from ferryvm.python.definition.defined_text import defined
from ferryvm.python.definition.given_function import is_function
from ferryvm.python.definition.source import CALLING
from ferryvm.python.group.kernel import Kernel

if TYPE_CHECKING:
    from ferryvm.python.call.explanation import FunctionExplanation

_functions: dict[tuple[int, int], PythonFunction[..., Any]] = {}
"""By the addresses of code and module, which they refer to. Equal codes may stand in different
files."""


_called: dict[tuple[int, int], tuple[Any, PythonFunction[..., Any]]] = {}
"""Built-in functions, and functions that call them, by their addresses and numbers of arguments."""


def python_function(form: str, function: Any, count: int) -> PythonFunction[..., Any]:
    """The compiled function of a Python function, for an operation; of a built-in one, that of a
    function that calls it with so many arguments. Raises TypeError."""
    if isinstance(function, PythonFunction):
        return function
    if not isinstance(function, types.FunctionType) and is_function(function):
        return _calling(function, count)
    if not isinstance(function, types.FunctionType):
        wanted = "a Python function, or a function of an instance, such as instance.f"
        raise TypeError(f"{form} takes {wanted}; found {shown(function)}")
    key = id(function.__code__), id(function.__globals__)
    found = _functions.get(key)
    if found is None or found.__ferryvm_function__.__code__ is not function.__code__:
        found = _functions[key] = PythonFunction(function, None, None, True)
    return found


def _calling(function: Any, count: int) -> PythonFunction[..., Any]:
    key = id(function), count
    if key not in _called:
        name = getattr(function, "__name__", "called")
        names = ", ".join(f"x{number}" for number in range(count))
        text = f"def {name}({names}):\n    return called({names})"
        made = PythonFunction(
            defined(text, {"called": function, "__name__": CALLING}), None, None, True
        )
        _called[key] = function, made
    return _called[key][1]


def explain(function: Callable[..., Any]) -> FunctionExplanation:
    """The history of a Python function that was called by `ferryvm.function`, mapped, or launched:
    the versions by the types of arguments, what the engine compiled of each, where and how long it
    ran, and the calls that CPython ran or that were refused, with the reasons.

    It prints as text, and a notebook shows it as HTML. Raises TypeError for anything else than a
    Python function, and for one that was neither called nor mapped by ferryvm.
    """
    if isinstance(function, PythonFunction | Kernel):
        return function.explain()
    found = None
    if isinstance(function, types.FunctionType):
        found = _functions.get((id(function.__code__), id(function.__globals__)))
    if found is None:
        wanted = "a function of ferryvm.function, a kernel, or a function that was mapped"
        raise TypeError(f"explain takes {wanted}; found {shown(function)}")
    return found.explain()


_MISSING = object()


def bound(
    function: types.FunctionType,
    names: Sequence[str],
    given: Sequence[Any],
    named: Mapping[str, Any],
) -> list[Any]:
    """The argument of each parameter, `names`, in a call of a function. Raises TypeError."""
    code, rest = function.__code__, names[len(given) :]
    is_plain = not (code.co_kwonlyargcount or code.co_posonlyargcount)
    if not is_plain or len(given) > len(names) or not named.keys() <= set(rest):
        return _checked(function, given, named)
    defaults = function.__defaults__ or ()
    of_default = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    found = [*given]
    for name in rest:
        value = named.get(name, _MISSING)
        if value is _MISSING:
            value = of_default.get(name, _MISSING)
        if value is _MISSING:
            return _checked(function, given, named)
        found.append(value)
    return found


def _checked(
    function: types.FunctionType, given: Sequence[Any], named: Mapping[str, Any]
) -> list[Any]:
    """The same by Python's own rules. Raises TypeError."""
    found = inspect.signature(function, follow_wrapped=False).bind(*given, **named)
    found.apply_defaults()
    return [*found.arguments.values()]
