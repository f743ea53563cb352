# SPDX-License-Identifier: Apache-2.0
"""Items of a launch that stand in slots, and the threads that run the rest of them."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from unittest import mock

import ferryvm
from ferryvm.engine import parallel
from ferryvm.engine.execution import Execution
from ferryvm.engine.slot_run import ThreadedSlots
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.item_batch import ItemBatch
from ferryvm.region.region import Region, RegionKind
from ferryvm_backends import switch, threaded

from .suspended import put_back, suspended_batch

TEXT = """
(define-struct box (of (array i64)))
(define last 0)
(define (deep n) (if (= n 0) 0 (+ 1 (deep (- n 1)))))
(define (body item to box kind)
  (array-set! to item (+ 2 (* 3 (array-ref to item)) (deep (* 7 item))))
  (if (= item 5) (set! last (+ last item)))
  (define mine (if (= (% item 2) 0) (make-box to) box))
  (if (= (% item 3) kind) (print! item))
  (if (= item (- kind 100)) (array-set! (box-of box) -1 5))
  (if (= kind 9) (array-set! to item (array-length (make-array i64 3000))))
  (array-set! (box-of mine) item (+ 1 (deep 3) (array-ref to item))))
(define to (make-array i64 {items}))
(for-each-item {items} (body to (make-box to) {kind}))
(define i 0)
(define sum last)
(while (< i {items}) (set! sum (+ (* sum 5) (array-ref to i))) (set! i (+ i 1)))
(print! sum)
"""
"""Items recur, and some make objects; of kind 0 to 2 some print, of kind 9 all make arrays for which
threads have no room, of kind 100 on one traps, else all end."""

LENT = """
(define-struct box (of (array i64)) (number i64))
(define last (make-box (make-array i64 {items}) 7))
(define (body item to kind)
  (define mine (make-box to (* 3 item)))
  (set-box-number! mine (+ 1 (box-number mine)))
  {store}
  (array-set! to item (+ (array-ref to item) (box-number mine))))
(define to (make-array i64 {items}))
(for-each-item {items} (body to {kind}))
(define fresh (make-array i64 60))
(define sum (box-number last))
(define i 0)
(while (< i 60)
  (set! sum (+ (* sum 5) (array-ref fresh i) (array-ref to (% i {items}))))
  (set! i (+ i 1)))
(print! sum)
"""
"""Items whose objects nothing refers to once they have ended, where they `store` nothing."""

STORED = LENT.replace("{store}", "(if (= item 5) (set! last mine))")
LENT = LENT.replace("{store}", "")

ENDS, PRINTS, ARRAYS, TRAPS = 3, 1, 9, 104

BACKENDS = {"threaded": threaded.BACKEND, "switch": switch.BACKEND}


def suspended(kind: int, text: str = TEXT) -> tuple[Execution, ItemBatch]:
    """An execution all of whose items are in one run of slots."""
    execution, batch = suspended_batch(kind, text=text)
    addresses = array("Q", bytes(WORD_BYTES * batch.count))
    addresses[::2], addresses[1::2] = batch.runs
    return execution, ItemBatch([addresses], [batch], batch.words // 2)


def finisher(execution: Execution, backend: str = "threaded", threads: int = 2) -> ThreadedSlots:
    """Threads for the launch at which a machine stands."""
    verified = execution.machine.verified
    pc = execution.machine.control.pc
    region = Region(verified, RegionKind.LAUNCH, verified.owner(pc), pc)
    bind = BACKENDS[backend].prepare(verified).bind_slots
    return ThreadedSlots(region, threads, bind, 1)


def finish(
    execution: Execution,
    batch: ItemBatch,
    backend: str = "threaded",
    is_stopped: Callable[[], bool] = lambda: False,
    threads: int = 2,
) -> ItemBatch:
    """Run slots on threads, and put back those that are left, which it returns."""
    objects = execution.machine.objects
    assert objects is not None
    with mock.patch.object(parallel, "_THREAD_SECONDS", 1e-12):
        left = finisher(execution, backend, threads).finish(objects, batch, is_stopped)
    put_back(execution, left)
    return left


def outcome(execution: Execution) -> object:
    """The end of a program on the reference: output and trap."""
    try:
        execution.run(backend="reference")
    except ferryvm.TrapError as error:
        return execution.collected, str(error)
    return execution.collected, ""
