# SPDX-License-Identifier: Apache-2.0
"""The meanings of the f32 functions, by name."""

from __future__ import annotations

import inspect

from ferryvm.isa.mathematics.single import (
    angle,
    error,
    exponential,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    remainder,
    root,
    trigonometric,
)
from ferryvm.isa.pure_function import Meaning

_MODULES = (
    exponential,
    logarithm,
    power,
    trigonometric,
    inverse_trigonometric,
    hyperbolic,
    root,
    error,
    angle,
    remainder,
)

FUNCTIONS: dict[str, Meaning] = {
    name: meaning
    for module in _MODULES
    for name, meaning in vars(module).items()
    if name.endswith("_f32")
}


def operand_count(name: str) -> int:
    """Number of operands of a function."""
    return len(inspect.signature(FUNCTIONS[name]).parameters) - 1
