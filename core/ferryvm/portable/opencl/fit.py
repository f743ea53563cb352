# SPDX-License-Identifier: Apache-2.0
"""Checks of indices that rise with the number of an item or a group, and so cannot fail where arrays
are long enough for the last one.

    const bool fits = get_global_offset(0) + get_global_size(0) <= (ulong)x_length;
    const int failed = fits ? f_item(..., true) : f_item(..., false);

A kernel finds that out for all items at once: then these checks are none, and a compiler may compute
several work-items by one instruction.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from ferryvm.ir.graph import Constant, Operation, Parameter, Value
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64
from ferryvm.portable.plain import PlainFunction

_MOST = 1 << 32
"""Above the scales and offsets of indices that are recognised."""


class Limit(NamedTuple):
    """A length that is above `scale` * (number of the item or the group) + `offset`, unless a check
    fails."""

    length: Parameter
    scale: int
    offset: int

    def text(self, count: str, length: str) -> str:
        """The condition that it is so for all numbers below a count, which is not 0. Nothing in it
        wraps."""
        length = f"(ulong){length}"
        if not self.scale:
            return f"{self.offset}ul < {length}"
        if (self.scale, self.offset) == (1, 0):
            return f"{count} <= {length}"
        if self.offset == self.scale - 1:
            return f"{count} <= {length} / {self.scale}ul"
        least = self.offset + 1
        steps = f"({length} - {least}ul) / {self.scale}ul"
        return f"{length} >= {least}ul && {count} - 1 <= {steps}"


def fitting_checks(function: PlainFunction) -> dict[Operation, tuple[Limit, ...]]:
    """The checks of a launch of one dimension that are made of such limits. Of members there are
    none unless all checks are."""
    launch = function.launch
    if launch is None or launch.geometry is None or len(launch.geometry.counts) != 1:
        return {}
    found: dict[Operation, tuple[Limit, ...]] = {}
    for operation in function.body.operations:
        if operation.name in ("error_if", "fail_if"):
            limits = _limits(function, operation.arguments[0])
            if limits:
                found[operation] = limits
            elif operation.name == "fail_if":
                return {}
    return found


def fit_text(function: PlainFunction) -> str | None:
    """The condition under which these checks do not fail; None if there are none."""
    limits = dict.fromkeys(each for found in fitting_checks(function).values() for each in found)
    if not limits:
        return None
    names = dict(zip(function.body.blocks[0].parameters, function.interface.names, strict=False))
    count = "get_num_groups(0)"
    if function.member is None:
        count = "get_global_offset(0) + get_global_size(0)"
    return " && ".join(each.text(count, names[each.length]) for each in limits)


def _limits(function: PlainFunction, condition: Value) -> tuple[Limit, ...]:
    """The limits of which a condition says that one is exceeded; none if it is another one."""
    if not isinstance(condition, Operation):
        return ()
    if condition.name == "any":
        parts = [_limits(function, each) for each in condition.arguments]
        return tuple(each for part in parts for each in part) if all(parts) else ()
    if condition.name != "compare" or condition.static != (I64, Condition.GE_U):
        return ()
    index, length = condition.arguments
    is_length = isinstance(length, Parameter) and any(
        before in function.pointers and after is length
        for before, after in itertools.pairwise(function.body.blocks[0].parameters)
    )
    found = _scale_and_offset(function, index)
    if not is_length or found is None:
        return ()
    assert isinstance(length, Parameter)
    return (Limit(length, *found),)


def _scale_and_offset(function: PlainFunction, index: Value) -> tuple[int, int] | None:
    """The scale of an index with which it rises with the number of the item or the group, and the
    largest rest; None if no such are known."""
    if index is function.body.blocks[0].parameters[0]:
        return 1, 0
    if isinstance(index, Constant):
        return (0, index.bits) if index.bits < _MOST else None
    if not isinstance(index, Operation):
        return None
    member = function.member
    if index.name == "member" and member is not None and member.size is None:
        return 0, member.members - 1
    if index.name not in ("add", "mul", "shl"):
        return None
    a, b = (_scale_and_offset(function, each) for each in index.arguments)
    if a is None or b is None:
        return None
    if index.name == "add":
        scale, offset = a[0] + b[0], a[1] + b[1]
    else:
        factor = index.arguments[1]
        if not isinstance(factor, Constant) or (index.name == "shl" and factor.bits > 32):
            return None
        by = factor.bits if index.name == "mul" else 1 << factor.bits
        scale, offset = a[0] * by, a[1] * by
    return (scale, offset) if max(scale, offset) < _MOST else None
