# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy's scalars in the subset of Python that is compiled: they are compiled where
operators and calls need them."""

from __future__ import annotations

from typing import Any


def power(base: Any, exponent: Any) -> Any:
    """The power of two integers, which wraps, by squaring."""
    if exponent < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")
    result = base * 0 + 1
    while exponent > 0:
        if exponent & 1:
            result = result * base
        exponent >>= 1
        base = base * base
    return result
