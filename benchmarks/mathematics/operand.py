# SPDX-License-Identifier: Apache-2.0
"""Operands of mathematical functions: random numbers of an ordinary range, in a cache."""

from __future__ import annotations

import dataclasses

import numpy

from benchmarks.mathematics.repeated import CHUNK_BYTES, Array, repeated
from benchmarks.parallel.program import uniform
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import F32, Type

_RANGES: dict[str, tuple[float, float]] = {
    "log": (1e-3, 1e3),
    "log2": (1e-3, 1e3),
    "log10": (1e-3, 1e3),
    "log1p": (-0.9, 1e2),
    "asin": (-1.0, 1.0),
    "acos": (-1.0, 1.0),
    "pow": (1e-2, 1e2),
    "cbrt": (-1e3, 1e3),
    "erf": (-4.0, 4.0),
    "erfc": (-4.0, 4.0),
    "sinh": (-5.0, 5.0),
    "cosh": (-5.0, 5.0),
    "tanh": (-5.0, 5.0),
}
"""Ranges of the first operand, by the function's name without a type."""

_OTHERS = -10.0, 10.0
"""The range of other first operands, and of all second ones."""


@dataclasses.dataclass(frozen=True)
class Operands:
    """Arrays of operands, one for each parameter."""

    type: Type
    arrays: tuple[Array, ...]

    @property
    def count(self) -> int:
        """Elements of an array."""
        return int(self.arrays[0].size)

    def results(self) -> Array:
        """An array for the results, in a cache, too."""
        chunk = numpy.zeros(CHUNK_BYTES // self.arrays[0].itemsize, self.arrays[0].dtype)
        return repeated(chunk, self.count // chunk.size)


def ordinary(function: PureFunction, count: int) -> tuple[Array, ...]:
    """Arrays of random operands in an ordinary range."""
    name = function.name.partition(".")[2]
    dtype = numpy.float32 if function.result is F32 else numpy.float64
    ranges = [_RANGES.get(name, _OTHERS), _OTHERS]
    return tuple(
        uniform(count, *ranges[place], place).astype(dtype)
        for place in range(len(function.parameters))
    )


def operands(function: PureFunction, least: int) -> Operands:
    """At least so many operands."""
    size = CHUNK_BYTES // (function.result.bits // 8)
    chunks = ordinary(function, size)
    return Operands(function.result, tuple(repeated(chunk, -(-least // size)) for chunk in chunks))
