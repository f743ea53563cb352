# SPDX-License-Identifier: Apache-2.0
"""A launch all of whose items are suspended, in a batch of slots."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import ferryvm
from ferryvm import Engine
from ferryvm.engine.execution import Execution
from ferryvm.machine.active_item import innermost
from ferryvm.machine.item_batch import SLOT_WORDS, ItemBatch, range_slot
from ferryvm.machine.launch import Left, abandon, finish, space_for
from ferryvm.machine.launch_operands import launch_operands
from ferryvm.machine.piece import reserve

ITEMS = 7

TEXT = """
(define-struct box (of (array i64)))
(define (add to item) (array-set! to item (+ 1 (array-ref to item))))
(define (body item to box kind)
  (define mine (make-box to))
  (if (= (% item 3) kind) (print! item))
  (if (= item (- kind 100)) (array-set! to -1 5))
  (add (box-of mine) item)
  (add (box-of box) item))
(define to (make-array i64 {items}))
(for-each-item {items} (body to (make-box to) {kind}))
(define i 0)
(define sum 0)
(while (< i {items}) (set! sum (+ (* sum 3) (array-ref to i))) (set! i (+ i 1)))
(print! sum)
"""
SUM = 2 * sum(3**n for n in range(ITEMS))


def suspended_items(kind: int = 3, ranges: Sequence[tuple[int, int]] = ()) -> Execution:
    """An execution at the launch, all of whose items are suspended in front of their first
    instruction, but for ranges, which have not begun."""
    execution, batch = suspended_batch(kind, ranges)
    assert batch.first == 0
    put_back(execution, batch)
    return execution


def put_back(execution: Execution, batch: ItemBatch) -> None:
    """Write the outcome of the launch, of whose items those of a batch are left."""
    objects = execution.machine.objects
    assert objects is not None
    left: list[Left] = [(batch.first, batch)] if batch.count else []
    reserve(objects, *space_for(left), collects=False)
    finish(objects, ITEMS, left)
    assert bool(launch_operands(execution.machine.control).record) == bool(batch.count)


def suspended_batch(
    kind: int, ranges: Sequence[tuple[int, int]] = (), text: str = TEXT
) -> tuple[Execution, ItemBatch]:
    """An execution at a launch, and its items in slots; see `suspended_items`."""
    execution = Engine("reference").start(
        ferryvm.compile(text.replace("{items}", str(ITEMS)).replace("{kind}", str(kind)), "p")
    )
    machine = execution.machine
    control, objects = machine.control, machine.objects
    assert objects is not None
    while (frame := innermost(machine)) is None:
        execution.run(1)
    fp, pc, sp = control.fp, control.pc, control.sp
    abandon(machine, frame)
    start = control.sp
    words = machine.memory.stack[start:sp].tolist()
    left = {item for one, two in ranges for item in range(one, two)}
    slots = [
        array("Q", [item, pc, fp - start, len(words), 0, item, *words[1:]])
        for item in range(ITEMS)
        if item not in left
    ]
    slots += [array("Q", range_slot(*one)) for one in ranges]
    slots.sort(key=lambda slot: slot[0])
    addresses = [slot.buffer_info()[0] for slot in slots]
    runs = [array("Q", addresses[::2]), array("Q", addresses[1::2])]
    return execution, ItemBatch(runs, slots, sum(len(slot) - SLOT_WORDS for slot in slots))
