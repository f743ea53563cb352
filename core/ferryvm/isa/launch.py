# SPDX-License-Identifier: Apache-2.0
"""Launches: the items of a data-parallel loop, one call of a function each.

    launch.begin ─> launch.test ─> jump_unless ─> launch.item ─> call ─> jump ──┐
                     ▲                 │ no item left                           │
                     │                 └──> behind                              │
                     └──────────────────────────────────────────────────────────┘

A launch is state on the operand stack, above the arguments that every item gets:

    arguments … │ limit │ next │ record

*Next* up to *limit* are the items of a range that have not begun; all below *next* are done. The
*record* lists what else is to be done, in the order of items: ranges that have not begun, and items
suspended with their frames. It is null where nobody has disturbed the order. When the range is done
the engine takes the first piece from the record (`ferryvm.machine.launch`).

In order, these instructions are a loop like any other. What they add is a promise of the program:
no item accesses an element that another one writes. So a backend may run the items of a range in
any order, or at once, and leave those it did not finish in the record.

Items of a launch may wait for each other at a *barrier*: then they run in turn, each up to its next
barrier (`ferryvm.machine.barrier`).
"""

from __future__ import annotations

from typing import TypeVar

from ferryvm.isa.emitter import Condition, Emitter, FunctionField
from ferryvm.isa.table import Immediate, instruction
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I32, I64, LAUNCH, WORD_BYTES

V = TypeVar("V")

LAUNCH_WORDS = 3
"""Words of a launch above the arguments of its items: limit, next, record."""

MOST_DIMENSIONS = 3
"""Indices that front ends give an item at most, which has one number in the launch."""


@instruction("launch.begin", pops=(I64,), pushes=(I64, I64, LAUNCH))
def launch_begin(m: Emitter[V], items: V) -> tuple[V, V, V]:
    """Begin a launch of so many items: its limit, the first item, no record; traps if the number is
    negative."""
    zero = m.constant(I64, 0)
    m.trap_if(m.compare(I64, Condition.LT_S, items, zero), Trap.NEGATIVE_COUNT)
    return items, zero, m.to_slot(I64, zero)


@instruction("launch.test", pops=(I64, I64, LAUNCH), pushes=(I64, I64, LAUNCH, I32))
def launch_test(m: Emitter[V], limit: V, next_: V, record: V) -> tuple[V, V, V, V]:
    """Push 1 above the launch if it has an item left, else 0. Leaves for the engine if the items of
    the range are done and the record has more."""
    is_done = m.compare(I64, Condition.GE_S, next_, limit)
    word = m.from_slot(I64, record)
    m.continue_launch_if(m.all(is_done, m.compare(I64, Condition.NE, word, m.constant(I64, 0))))
    return limit, next_, record, m.boolean_to_i32(m.none(is_done))


@instruction("launch.item", Immediate.ITEM)
def launch_item(m: Emitter[V], function: V) -> None:
    """Push the next item of the launch and the launch's arguments, which a call of the function
    takes; the item counts as done from then on."""
    parameters = m.function(function, FunctionField.PARAMETERS)
    size = m.shl(I64, parameters, m.constant(I64, 3))
    end = m.stack_pointer()
    next_ = m.sub(I64, end, m.constant(I64, 2 * WORD_BYTES))
    item = m.from_slot(I64, m.word(next_))
    # The arguments are one word fewer than the parameters, the first of which is the item.
    first = m.sub(I64, end, m.add(I64, size, m.constant(I64, (LAUNCH_WORDS - 1) * WORD_BYTES)))
    m.set_word(next_, m.to_slot(I64, m.add(I64, item, m.constant(I64, 1))))
    m.push_words(m.to_slot(I64, item), first, m.sub(I64, parameters, m.constant(I64, 1)))


@instruction("launch.barrier", pops=(I32,))
def launch_barrier(m: Emitter[V], is_complete: V) -> None:
    """Wait, where the operand is 0, until every item of the innermost launch waits at this barrier;
    each then goes on from here with 1. Leaves for the engine, which traps outside of a launch, and
    where items end or wait elsewhere meanwhile."""
    m.continue_launch_if(m.compare(I32, Condition.EQ, is_complete, m.constant(I32, 0)))
