# SPDX-License-Identifier: Apache-2.0
"""Checks of the number of an item, which cannot fail where arrays have an element for each item.

    const bool fits = get_global_offset(0) + get_global_size(0) <= (ulong)x_length;
    const int failed = fits ? f_item(..., true) : f_item(..., false);

A kernel finds that out for all items at once: then these checks are none, and a compiler may compute
several work-items by one instruction.
"""

from __future__ import annotations

import itertools

from ferryvm.ir.graph import Operation, Parameter, Value
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64
from ferryvm.portable.plain import PlainFunction


def fitting_checks(function: PlainFunction) -> dict[Operation, tuple[Parameter, ...]]:
    """The checks of the number of an item of a launch of one dimension, with the lengths that they
    compare it with."""
    launch = function.launch
    if function.member is not None or launch is None or launch.geometry is None:
        return {}
    if len(launch.geometry.counts) != 1:
        return {}
    found: dict[Operation, tuple[Parameter, ...]] = {}
    for operation in function.body.operations:
        if operation.name == "error_if":
            lengths = _lengths(function, operation.arguments[0])
            if lengths:
                found[operation] = lengths
    return found


def fit_text(function: PlainFunction) -> str | None:
    """The condition under which these checks do not fail; None if there are none."""
    lengths = dict.fromkeys(p for each in fitting_checks(function).values() for p in each)
    if not lengths:
        return None
    names = dict(zip(function.body.blocks[0].parameters, function.interface.names, strict=False))
    end = "get_global_offset(0) + get_global_size(0)"
    return " && ".join(f"{end} <= (ulong){names[each]}" for each in lengths)


def _lengths(function: PlainFunction, condition: Value) -> tuple[Parameter, ...]:
    """The lengths with which a condition compares the number of the item; none if it is another
    condition."""
    if not isinstance(condition, Operation):
        return ()
    if condition.name == "any":
        parts = [_lengths(function, each) for each in condition.arguments]
        return tuple(p for part in parts for p in part) if all(parts) else ()
    if condition.name != "compare" or condition.static != (I64, Condition.GE_U):
        return ()
    index, length = condition.arguments
    parameters = function.body.blocks[0].parameters
    is_length = isinstance(length, Parameter) and any(
        before in function.pointers and after is length
        for before, after in itertools.pairwise(parameters)
    )
    if not is_length or index is not parameters[0]:
        return ()
    assert isinstance(length, Parameter)
    return (length,)
