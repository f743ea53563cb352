# SPDX-License-Identifier: Apache-2.0
"""Functions of this package that are compiled in the place of built-in ones, and of operators.

They have no effects before they end, so CPython calls the built-in function, or does the operation,
where one of them stops. Nobody replaces them, so no code depends on their names.
"""

from __future__ import annotations

import types

from ferryvm.python.hosted import (
    builtin,
    builtin_array,
    builtin_list,
    builtin_text,
    cmath_function,
    complex_function,
    number_function,
    scalar_function,
)

_MODULES = frozenset(
    each.__name__
    for each in (
        builtin,
        builtin_array,
        builtin_list,
        builtin_text,
        cmath_function,
        complex_function,
        number_function,
        scalar_function,
    )
)


def is_hosted(function: types.FunctionType) -> bool:
    """True for a function that stands for a built-in one, or for an operator."""
    return function.__module__ in _MODULES
