# SPDX-License-Identifier: Apache-2.0
"""Arrays of NumPy as parameters of a compiled Python function: which ones are lengths."""

from __future__ import annotations

from collections.abc import Collection

from ferryvm.errors import Position
from ferryvm.portable.refusal import ExportError
from ferryvm.python.compiled.compiled_version import Version
from ferryvm.python.value.kind import Array, Constant, Number, Scalar


def array_parameters(
    name: str, version: Version, at: int, ranges: Collection[int] = ()
) -> tuple[dict[int, int], dict[int, tuple[int, ...]]]:
    """The lengths and shapes of arrays, as of `function_subject`; `at`: the number of the first
    argument; `ranges`: the numbers of the kinds that have a parameter for the step, too."""
    position = Position(version.code.co_filename, version.code.co_firstlineno, 1)
    lengths: dict[int, int] = {}
    shapes: dict[int, tuple[int, ...]] = {}
    for number, kind in enumerate(version.kinds):
        slots = len(kind.slots) + (number in ranges)
        if isinstance(kind, Array) and not kind.is_view:
            if kind.dimensions == 1:
                lengths[at + 1] = at
            else:
                shapes[at] = tuple(range(at + 1, at + slots))
        elif not isinstance(kind, Number | Scalar | Constant):
            what = f"{name} takes {kind}"
            raise ExportError(what, "pass numbers and contiguous arrays of NumPy", position)
        at += slots
    return lengths, shapes
