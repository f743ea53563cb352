# SPDX-License-Identifier: Apache-2.0
"""Functions of this package that are compiled in the place of built-in ones, and of operators.

They have no effects, so CPython calls the built-in function, or does the operation, where one of them
stops. Nobody replaces them, so no code depends on their names.
"""

from __future__ import annotations

import types

from ferryvm.python import builtin, complex_function, number_function

_MODULES = frozenset({builtin.__name__, complex_function.__name__, number_function.__name__})


def is_hosted(function: types.FunctionType) -> bool:
    """True for a function that stands for a built-in one, or for an operator."""
    return function.__module__ in _MODULES
