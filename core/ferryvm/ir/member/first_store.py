# SPDX-License-Identifier: Apache-2.0
"""Arrays of a group that need not be zero at the start: members store all elements before any is
read.

array[member] = …   by all members, so each element
barrier
… array[…] …        all loads are behind both
"""

from __future__ import annotations

import dataclasses

from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import Body
from ferryvm.ir.member.form import GroupForm, group_array_of
from ferryvm.ir.member.uniformity import Uniformity
from ferryvm.ir.member.value_range import member_ranges


def mark_stored_first(body: Body, form: GroupForm) -> GroupForm:
    """The form, with the arrays marked that are stored first; each barrier begins a block."""
    graph, ranges = ControlFlowGraph(body), member_ranges(body, form)
    divergent = Uniformity(body.blocks, [form.member]).divergent
    barriers = [
        place
        for place, block in enumerate(graph.blocks)
        if block.operations and block.operations[0].name == "barrier"
    ]
    covers: dict[int, list[int]] = {}
    reads: dict[int, list[int]] = {}
    for place, block in enumerate(graph.blocks):
        for operation in block.operations:
            number = group_array_of(operation)
            if number is None:
                continue
            if operation.name != "element_store":
                reads.setdefault(number, []).append(place)
                continue
            array = form.arrays[number]
            offsets = ranges.for_each(operation.arguments[1])
            wanted = range(0, array.bytes, array.element.bytes)
            if block not in divergent and offsets is not None and {*offsets} >= {*wanted}:
                covers.setdefault(number, []).append(place)
    arrays = []
    for number, array in enumerate(form.arrays):
        is_first = any(
            graph.dominates(store, barrier)
            and all(graph.dominates(barrier, read) for read in reads.get(number, ()))
            for store in covers.get(number, ())
            for barrier in barriers
            if barrier != store
        )
        arrays.append(dataclasses.replace(array, is_stored_first=is_first))
    return dataclasses.replace(form, arrays=tuple(arrays))
