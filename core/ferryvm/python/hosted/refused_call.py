# SPDX-License-Identifier: Apache-2.0
"""Functions whose calls are not compiled: how a program names them, and what to write instead."""

from __future__ import annotations

import cmath
import collections
import math
import types

import numpy as np

from ferryvm.python.fault import NO_DICT, NO_SET


def refused_call(function: object) -> str:
    """The message about a call of a function."""
    return f"cannot compile a call of {name_of_function(function)}{advice(function)}"


def name_of_function(function: object) -> str:
    """The name of a function, behind its module where that is not built in."""
    module = _module(function)
    name = getattr(function, "__name__", repr(function))
    return name if module == "builtins" else f"{module}.{name}"


def advice(function: object) -> str:
    """The code to write instead of a function, behind a semicolon; empty if none is known."""
    try:
        known = _ADVICE.get(function)
    except TypeError:  # it cannot be hashed
        known = None
    if known is not None:
        return known
    if hasattr(function, "cache_info"):
        return "; leave the cache out, or store known values in a list"
    module = _module(function)
    root = "random" if module.startswith("numpy.random") else module.partition(".")[0]
    if root in _OF_MODULES or module == "builtins" or not isinstance(function, type):
        return _OF_MODULES.get(root, "")
    return "; there are no instances of classes, pass their numbers"


def is_of_numpy(function: object) -> bool:
    """True for a function of NumPy that is written in Python: its code is not for the subset."""
    return isinstance(function, types.FunctionType) and _module(function).startswith("numpy.")


def _module(function: object) -> str:
    """The module of a function as programs import it."""
    of = getattr(function, "__self__", None)
    found = getattr(function, "__module__", None) or getattr(type(of), "__module__", "builtins")
    return str(found).removeprefix("_")


_ADVICE: dict[object, str] = {
    np.fmin: "; write numpy.minimum, and test numbers by numpy.isnan",
    np.fmax: "; write numpy.maximum, and test numbers by numpy.isnan",
    np.where: "; write a if condition else b",
    np.sum: "; write sum(xs), or a loop",
    np.dot: "; write a loop",
    np.array: "; write numpy.zeros, and store in a loop",
    np.arange: "; write range, or numpy.zeros and a loop",
    np.linspace: "; compute the values in a loop",
    np.mean: "; write sum(xs) / len(xs)",
    np.max: "; write max(xs)",
    np.min: "; write min(xs)",
    np.any: "; write any(xs)",
    np.all: "; write all(xs)",
    np.argmax: "; write max(range(len(xs)), key=lambda i: xs[i])",
    np.argmin: "; write min(range(len(xs)), key=lambda i: xs[i])",
    np.prod: "; write math.prod(xs)",
    np.cumsum: "; write a loop",
    np.sort: "; sort before, or write a loop",
    np.concatenate: "; write a loop",
    math.asinh: "; write math.log(x + math.sqrt(x * x + 1))",
    math.acosh: "; write math.log(x + math.sqrt(x * x - 1))",
    math.atanh: "; write 0.5 * math.log((1 + x) / (1 - x))",
    math.gamma: "; write math.factorial(n - 1) of an integer",
    math.lgamma: "; write the sum of the logarithms of an integer's factors",
    **dict.fromkeys(
        (cmath.asin, cmath.acos, cmath.atan, cmath.asinh, cmath.acosh, cmath.atanh),
        "; write it by cmath.log and cmath.sqrt",
    ),
    np.complex128: "; write complex(x)",
    np.complex64: "; write complex(x)",
    np.float16: "; write numpy.float32(x)",
    hex: "; a text cannot be made, print the number",
    bin: "; a text cannot be made, print the number",
    complex: "; pass two floats",
    dict: NO_DICT,
    collections.Counter: NO_DICT,
    collections.defaultdict: NO_DICT,
    collections.deque: "; write a list, and the index of its first item",
    set: NO_SET,
    frozenset: NO_SET,
    sorted: "; write a loop",
    tuple: "; write the items out, as (xs[0], xs[1]), or go on with the list",
    map: " here; loop over it, or write list(map(...))",
    filter: " here; loop over it, or write list(filter(...))",
    iter: "; write a loop",
    next: "; write a loop",
}
_OF_MODULES = {
    "random": "; draw the numbers before, and pass them as an array",
    "itertools": "; write loops",
    "functools": "; write a loop",
    "operator": "; write a lambda, as lambda a, b: a + b",
    "numpy": "; write a loop",
}
