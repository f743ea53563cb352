# SPDX-License-Identifier: Apache-2.0
"""Planted faults of native code by which items wait at barriers: a store left out.

What the threaded interpreter does then is held against the reference.
"""

from __future__ import annotations

import functools
from unittest import mock

import ferryvm
from ferryvm import Engine
from ferryvm.machine.control import Status
from ferryvm_backends._llvm import phase
from ferryvm_backends.threaded import BACKEND, symbol

from .item_batch import StoreFault, code_of, taking

TEXT = """
(define-struct box (of (array i64)))
(define (meet (from box) item)
  (define seen (array-ref (box-of from) (- 19 item)))
  (barrier)
  (array-set! (box-of from) item (+ seen item)))
(define (member item mine to)
  (define times 0)
  (while (< times 6)
    (array-set! (box-of mine) item (+ (* 10 times) item))
    (barrier)
    (meet mine item)
    (barrier)
    (set! times (+ times 1)))
  (array-set! to item (array-ref (box-of mine) (- 19 item))))
(define (group item to)
  (for-each-item 20 (member (make-box (make-array i64 20)) to))
  (print! (array-ref to item)))
(define to (make-array i64 20))
(for-each-item 3 (group to))
"""
_MOST = 60_000
"""Instructions, where a fault makes a launch endless."""

_STEP = 997
"""Instructions between two states that are compared."""


_WAIT, _BEGIN = phase._Wait, phase._BeginPhase

FAULTS = (
    StoreFault("waits-again", "An item waits again where it has waited.", _WAIT, 23),
    StoreFault("waiting-references-lost", "References of an item that waits are null.", _WAIT, 11),
    StoreFault("waiting-item-lost", "An item that waits has another number.", _WAIT, 15),
    StoreFault("waiting-pc-lost", "An item that waits begins elsewhere.", _WAIT, 17),
    StoreFault("waiting-others-lost", "Only the last item waits.", _WAIT, 21),
    StoreFault("phase-size-lost", "Nobody knows how many items there are.", _WAIT, 26),
    StoreFault("phase-not-recorded", "The record does not have the item that waits.", _WAIT, 34),
    StoreFault("phase-order-lost", "Only one item goes on behind a barrier.", _BEGIN, 9),
    StoreFault("phase-items-lost", "No item goes on behind a barrier.", _BEGIN, 19),
    StoreFault("phase-not-begun", "The items wait for ever.", _BEGIN, 21),
)


def _outcome(backend: str) -> object:
    """The states after so many instructions each."""
    execution = Engine(backend).start(ferryvm.compile(TEXT, "p"))
    states: list[object] = []
    for _ in range(_MOST // _STEP):
        found = execution.run(_STEP)
        states.append((found.status, execution.instructions, execution.machine.snapshot()))
        if found.status is not Status.FUEL:
            break
    return states


@functools.cache
def _expected() -> object:
    return _outcome("reference")


def is_found(fault: StoreFault | None) -> bool:
    """True if the outcome shows the fault, or something without one."""
    code = code_of(fault, taking)
    with mock.patch.object(BACKEND._interpreters.whole, "resumption", code.address(symbol.RESUME)):
        try:
            return _outcome("threaded") != _expected()
        except Exception:  # noqa: BLE001 - whatever a fault leads to
            return True
