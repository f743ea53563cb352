# SPDX-License-Identifier: Apache-2.0
"""Axes of a group: indices of a member that its code computes from its number become those of the
target.

    row = member / 16            row    = member_index 1 16 16
    column = member - 16 row     column = member_index 0 1 16      16 along axis 0, the rest along axis 1

A target that runs members in several dimensions has them without a division, and sees that
neighbours along axis 0 access neighbouring elements. The values for each member tell which ones
these are, however they are computed.
"""

from __future__ import annotations

import dataclasses
import math

from ferryvm.ir.graph import Body, Operation, Value
from ferryvm.ir.member.form import GroupForm
from ferryvm.ir.member.value_range import member_ranges
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.use import substitute
from ferryvm.isa.type import I64

_MOST_AXES = 3


def split_axes(body: Body, form: GroupForm) -> GroupForm:
    """Use indices along axes where a member's code divides its number; the form with these axes."""
    if form.size is not None:
        return form
    count, ranges = form.members, member_ranges(body, form)
    known: dict[tuple[int, ...], list[Operation]] = {}
    for operation in body.operations:
        if operation.type is I64 and operation is not form.member:
            values = ranges.for_each(operation)
            if values is not None:
                known.setdefault(tuple(values), []).append(operation)
    widths: list[int] = []
    for width in (w for w in range(2, count) if not count % w):
        last = widths[-1] if widths else 1
        is_next = width % last == 0 and len(widths) < _MOST_AXES - 1
        if is_next and tuple(m // width for m in range(count)) in known:
            widths.append(width)
    if not widths:
        return form
    strides = [1, *widths]
    axes = tuple(two // one for one, two in zip(strides, [*widths, count], strict=True))
    assert math.prod(axes) == count
    new: dict[Value, Value] = {}
    indices: list[Operation] = []
    for axis, (stride, size) in enumerate(zip(strides, axes, strict=True)):
        index = Operation("member_index", I64, (axis, stride, size))
        indices.append(index)
        for each in known.get(tuple(m // stride % size for m in range(count)), ()):
            new[each] = index
    for each in known.get(tuple(range(count)), ()):
        new[each] = form.member
    entry = body.blocks[0]
    entry.operations = [*indices, *entry.operations]
    substitute(body.blocks, new)
    remove_dead_code(body)
    return dataclasses.replace(form, axes=axes)
