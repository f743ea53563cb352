# SPDX-License-Identifier: Apache-2.0
"""Arrays of a group that need not be zero at the start: members store all elements before any is
read.

array[member] = …                          by all members, so each element
while i < length: array[i] = …; i += members     likewise
barrier
… array[…] …                               all loads are behind both
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import Block, Body, Constant, Operation
from ferryvm.ir.loop.induction import find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.member.form import GroupArray, GroupForm, group_array_of
from ferryvm.ir.member.uniformity import Uniformity
from ferryvm.ir.member.value_range import MemberRanges, member_ranges
from ferryvm.isa.type import I64, signed

_MOST_STORES = 1 << 14
"""Stores of a loop by all members whose offsets are computed, at most."""


def mark_stored_first(body: Body, form: GroupForm) -> GroupForm:
    """The form, with the arrays marked that are stored first; each barrier begins a block."""
    graph, ranges, loops = ControlFlowGraph(body), member_ranges(body, form), find_loops(body)
    divergent = Uniformity(body.blocks, [form.member]).divergent
    barriers = [
        place
        for place, block in enumerate(graph.blocks)
        if block.operations and block.operations[0].name == "barrier"
    ]
    covers: dict[int, list[Loop | int]] = {}
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
            if array.size is not None:
                if block not in divergent and _is_own_element(operation, form, array):
                    covers.setdefault(number, []).append(place)
                continue
            wanted = range(0, array.bytes, array.element.bytes)
            offsets = ranges.for_each(operation.arguments[1])
            if block not in divergent and offsets is not None and {*offsets} >= {*wanted}:
                covers.setdefault(number, []).append(place)
                continue
            around = [loop for loop in loops if place in loop.blocks]
            inner = min(around, key=lambda loop: len(loop.blocks), default=None)
            if inner is None or not _is_always_stored(inner, place, divergent):
                continue
            if _offsets(inner, operation, ranges) >= {*wanted}:
                covers.setdefault(number, []).append(inner)
    arrays = []
    for number, array in enumerate(form.arrays):
        is_first = any(
            _is_before(graph, store, barrier)
            and all(graph.dominates(barrier, read) for read in reads.get(number, ()))
            for store in covers.get(number, ())
            for barrier in barriers
        )
        arrays.append(dataclasses.replace(array, is_stored_first=is_first))
    return dataclasses.replace(form, arrays=tuple(arrays))


def _is_own_element(store: Operation, form: GroupForm, array: GroupArray) -> bool:
    """True if each member stores the element with its number, in an array that has one for each."""
    offset, shift = store.arguments[1], array.element.shift
    if shift and isinstance(offset, Operation) and offset.name == "shl":
        offset, amount = offset.arguments
        shift -= amount.bits if isinstance(amount, Constant) else 0
    return not shift and array.size is form.size and offset is form.member


def _is_before(graph: ControlFlowGraph, store: Loop | int, barrier: int) -> bool:
    """True if a store, or all those of a loop, come before a barrier."""
    if isinstance(store, int):
        return store != barrier and graph.dominates(store, barrier)
    return barrier not in store.blocks and graph.dominates(store.head, barrier)


def _is_always_stored(loop: Loop, place: int, divergent: set[Block]) -> bool:
    """True if all members come to a loop, and each of its iterations to the block at a place."""
    graph = loop.graph
    if loop.entry is None or graph.blocks[loop.entry.source] in divergent:
        return False
    targets = {
        graph.places[edge.block]
        for each in loop.blocks - {loop.head}
        for edge in graph.blocks[each].end.edges
    }
    return targets <= loop.blocks and all(graph.dominates(place, each) for each in loop.latches)


def _offsets(loop: Loop, store: Operation, ranges: MemberRanges) -> set[int]:
    """The offsets at which the iterations of all members store; none if they are not known."""
    variable = find_induction_variable(loop)
    if variable is None or not isinstance(variable.step, Constant):
        return set()
    starts, bounds = ranges.for_each(variable.start), ranges.for_each(variable.bound)
    if starts is None or bounds is None:
        return set()
    found, step = set[int](), signed(I64, variable.step.bits)
    values: Sequence[int] = [signed(I64, start) for start in starts]
    for _ in range(_MOST_STORES // len(values)):
        active = [v < signed(I64, bound) for v, bound in zip(values, bounds, strict=True)]
        if not any(active):
            return found
        bits = [value & I64.mask for value in values]
        offsets = ranges.for_each_with(store.arguments[1], variable.value, bits)
        if offsets is None:
            return set()
        found.update(each for each, is_in in zip(offsets, active, strict=True) if is_in)
        values = [value + step for value in values]
    return set()
