# SPDX-License-Identifier: Apache-2.0
"""A kernel of items that cooperate in groups: its text in Skiff, its sizes, its arrays and its
oracle.

The texts are in benchmarks/programs/groups, written as vendors of GPUs write samples: arrays of
groups, barriers, loops with barriers. Each exports `work`, which stores its results into arrays.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy

from benchmarks.benchmark import PROGRAMS as FOLDER
from benchmarks.parallel.program import Argument, Array, Call, Work
from ferryvm.program import Program

__all__ = ["Array", "Call", "Sample", "Sizes", "Work"]

Sizes = Mapping[str, int]
"""Constants of the text, in capitals, and sizes of arrays."""

SEED = 20261126
"""Of the numbers in arrays."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """A kernel with what it needs to be run and checked."""

    name: str
    make: Callable[[Sizes], Work]
    """The arguments of `work`."""
    oracle: Callable[[Work, Sizes], Sequence[Array]]
    """The results, in the order of `Work.results`, from the arguments as they are at the start."""
    tiny: Sizes
    """What tests run."""
    full: Sizes
    """What is measured."""
    tolerance: float = 0.0
    """The largest difference from the oracle, relative to the largest result in magnitude; 0.0: all
    bits are equal."""

    kernels: Callable[[Work, Sizes], list[Call]] | None = None
    """The calls of the kernels that are written by hand in OpenCL C, where there are any."""

    def __str__(self) -> str:
        return self.name

    def path(self, suffix: str = "skiff") -> Path:
        """Where the kernel is, in Skiff or in another language."""
        return FOLDER / "groups" / f"{self.name}.{suffix}"

    def text(self, sizes: Sizes) -> str:
        """The text in Skiff with constants of these sizes. Raises ValueError if it lacks one of
        them."""
        found = self.path().read_text(encoding="utf-8")
        for name, value in sizes.items():
            if name.isupper():
                stated = re.compile(rf"\(define-constant {name} \d+\)")
                found, times = stated.subn(f"(define-constant {name} {value})", found)
                if times != 1:
                    raise ValueError(f"{self.path().name} does not define the constant {name} once")
        return found

    def program(self, sizes: Sizes) -> Program:
        """The program of these sizes."""
        from ferryvm.skiff import compile

        return compile(self.text(sizes), str(self.path()))

    def whole(self, sizes: Sizes) -> Program:
        """A program that makes the arrays, and calls `work` with them."""
        from ferryvm.skiff import compile

        values = " ".join(_literal(argument) for argument in self.make(sizes).arguments)
        return compile(f"{self.text(sizes)}\n(work {values})\n", self.name)

    def difference(self, found: Sequence[Array], expected: Sequence[Array]) -> str:
        """In which result there is a difference beyond the tolerance, and how large; empty if in
        none."""
        for number, (mine, other) in enumerate(zip(found, expected, strict=True)):
            if (mine.dtype, mine.shape) != (other.dtype, other.shape):
                return f"result {number} is {other.dtype} {other.shape}, found {mine.dtype} {mine.shape}"
            if self.tolerance == 0.0:
                at = numpy.flatnonzero(
                    mine.view(f"u{mine.itemsize}") != other.view(f"u{mine.itemsize}")
                )
            else:
                most = self.tolerance * float(numpy.abs(other).max(initial=0))
                at = numpy.flatnonzero(~(numpy.abs(mine - other) <= most))
            if len(at):
                first = int(at[0])
                return (
                    f"result {number} differs in {len(at)} of {len(mine)} elements: "
                    f"element {first} is {mine[first]!r}, expected {other[first]!r}"
                )
        return ""


def _literal(argument: Argument) -> str:
    if isinstance(argument, numpy.ndarray):
        kind = f"{argument.dtype.kind}{8 * argument.itemsize}"
        return f"(array {kind} {' '.join(str(value) for value in argument.tolist())})"
    return str(argument)


def uniform(count: int, low: float, high: float, stream: int = 0) -> Array:
    """Random f32 of [low, high); `stream` selects one of several sequences."""
    found = numpy.random.default_rng((SEED, stream)).uniform(low, high, count)
    return found.astype(numpy.float32)


def integers(count: int, low: int, high: int, dtype: str, stream: int = 0) -> Array:
    """Random integers of [low, high)."""
    return numpy.random.default_rng((SEED, stream)).integers(low, high, count).astype(dtype)


def grid(array: Array, rows: int) -> Array:
    """An array as a matrix of so many rows."""
    return array.reshape(rows, -1)
