# SPDX-License-Identifier: Apache-2.0
"""Maps of Python functions as exported launches: what `ferryvm.map` would run over arrays.

    item i:   out[i] = f(xs[i], ys[i], shared arguments …)

The version and the kinds of its results are those of `ferryvm.python.map.map_plan`, the code of an
item is that of `ferryvm.skeleton.mapping`; so an exported map computes what a map does.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ferryvm.engine.marshal import CallError
from ferryvm.listing.decode import decode
from ferryvm.listing.encode import encode
from ferryvm.portable.fold import folded
from ferryvm.portable.python_array import array_parameters
from ferryvm.portable.subject import Subject, launch_subject
from ferryvm.python.call.function import PythonFunction
from ferryvm.python.fault import UnsupportedError
from ferryvm.python.map.map_plan import MapPlan
from ferryvm.python.value.element import dtype_of
from ferryvm.python.value.kind import DTYPES, PAIRS, Complex, Kind, Tuple
from ferryvm.skeleton import mapping
from ferryvm.skeleton.array_type import ArrayType
from ferryvm.verify import verify


def map_subject(
    of: PythonFunction[..., Any], function: types.FunctionType, values: Sequence[Any], count: int
) -> Subject:
    """The launch that a map of a function over the elements of the first `count` values is.

    `function`: the one that is mapped, of the code of `of`; `values`: an example for each
    parameter. The number of items is the first argument, then come the arrays for results. A range
    becomes its start and step, which are folded. Raises UnsupportedError, ExportError.
    """
    for name, value in zip(of.parameters[:count], values, strict=False):
        if isinstance(value, np.ndarray) and value.ndim > 1:
            what = f"argument {name}: elements are taken in a row, whatever the shape is"
            raise UnsupportedError(f"{what}; write '{value.dtype}[:]'")
    try:
        plan = MapPlan(of, function, count, values)
    except CallError as error:
        raise UnsupportedError(str(error)) from None
    ranges = {
        number: value
        for number, value in enumerate(plan.apart(values))
        if number in plan.elementwise and isinstance(value, range)
    }
    described = _described(plan, ranges)
    listing = decode(plan.version.program)
    item = mapping.item(described)
    outs = len(described.to)
    (entry,) = plan.version.program.exports
    given = plan.version.program.functions[entry.function].parameters
    names, of_ranges = _names(given, plan, ranges)
    to = ["out"] if outs == 1 else [f"out_{number}" for number in range(outs)]
    item.parameters = ("item", *to, *names)
    listing.functions.append(item)
    verified = verify(encode(listing))
    lengths, shapes, pairs = array_parameters(
        of.__name__, plan.version, 1 + outs, ranges, plan.elementwise
    )
    pairs |= {1 + number for number, array in enumerate(described.to) if array.is_pair}
    number = len(verified.program.functions) - 1
    subject = launch_subject(
        verified, number, of.__name__, False, lengths, shapes, may_throw=True, pairs=pairs
    )
    return folded(subject.at(entry.function), of_ranges)


def _described(plan: MapPlan, ranges: Mapping[int, range]) -> mapping.Mapping:
    """The map, for the generator of its item."""
    program = plan.version.program
    (entry,) = program.exports
    arrays: list[ArrayType | None] = []
    sequences: list[int] = []
    for number, kind in enumerate(plan.version.kinds):
        if number in ranges:
            sequences.append(len(arrays))
        shared: list[None] = [None for _ in kind.slots]
        if number in plan.elementwise and number not in ranges:
            arrays += [_elements(kind), *shared[1:]]
        else:
            arrays += shared
    items = plan.result.items if isinstance(plan.result, Tuple) else (plan.result,)
    return mapping.Mapping(
        program.functions[entry.function].name,
        program.signature(entry.function),
        tuple(arrays),
        tuple(map(_elements, items)),
        sequences=tuple(sequences),
    )


def _elements(kind: Kind) -> ArrayType:
    """The arrays of values of a kind of numbers."""
    if isinstance(kind, Complex):
        return ArrayType.of(PAIRS[dtype_of(kind).name]).paired
    return ArrayType.of(DTYPES[dtype_of(kind).name])


def _names(
    names: Sequence[str], plan: MapPlan, ranges: Mapping[int, range]
) -> tuple[list[str], dict[str, float]]:
    """The names of the item's parameters for those of the function, `names`; start and step of
    ranges by them."""
    left, found = iter(names), list[str]()
    of_ranges: dict[str, float] = {}
    for number, kind in enumerate(plan.version.kinds):
        own = [next(left) for _ in kind.slots]
        is_pair = isinstance(kind, Complex) and number in plan.elementwise
        found += own[:1] if is_pair else own
        if number in ranges:
            steps = f"start of {found[-1]}", f"step of {found[-1]}"
            found[-1:] = steps
            of_ranges |= zip(steps, (ranges[number].start, ranges[number].step), strict=True)
    return found, of_ranges
