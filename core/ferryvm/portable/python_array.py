# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy as parameters of a compiled Python function: which ones are lengths."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ferryvm.errors import Position
from ferryvm.portable.refusal import ExportError
from ferryvm.python.compiled.compiled_version import Version
from ferryvm.python.value.kind import PAIRS, Array, Complex, Constant, Number, Scalar


class ArrayParameters(NamedTuple):
    """The arrays among the parameters of a function, as of `function_subject`."""

    lengths: dict[int, int]
    shapes: dict[int, tuple[int, ...]]
    pairs: frozenset[int]


def array_parameters(
    name: str,
    version: Version,
    at: int,
    ranges: Collection[int] = (),
    elementwise: Collection[int] = (),
) -> ArrayParameters:
    """The arrays; `at`: the number of the first argument; `ranges`: the numbers of the kinds that
    have a parameter for the step, too; `elementwise`: of those that are elements of arrays."""
    position = Position(version.code.co_filename, version.code.co_firstlineno, 1)
    lengths: dict[int, int] = {}
    shapes: dict[int, tuple[int, ...]] = {}
    pairs: set[int] = set()
    for number, kind in enumerate(version.kinds):
        slots = len(kind.slots) + (number in ranges)
        is_of_pairs = isinstance(kind, Complex) and number in elementwise
        if is_of_pairs or (isinstance(kind, Array) and kind.dtype in PAIRS):
            pairs.add(at)
        if is_of_pairs:
            slots = 1
        elif isinstance(kind, Array) and not kind.is_view:
            if kind.dimensions == 1:
                lengths[at + 1] = at
            elif kind.dtype in PAIRS:
                what = f"{name} takes {kind}"
                raise ExportError(what, "pass it in one dimension, as a.reshape(-1)", position)
            else:
                shapes[at] = tuple(range(at + 1, at + slots))
        elif not isinstance(kind, Number | Scalar | Complex | Constant):
            what = f"{name} takes {kind}"
            raise ExportError(what, "pass numbers and contiguous arrays of NumPy", position)
        at += slots
    return ArrayParameters(lengths, shapes, frozenset(pairs))
