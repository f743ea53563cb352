# SPDX-License-Identifier: Apache-2.0
"""Planted faults of native code by which items wait at barriers: a store left out.

What the threaded interpreter does then is held against the reference.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple
from unittest import mock

import ferryvm
from ferryvm import Engine
from ferryvm.machine.control import Status
from ferryvm_backends._llvm import phase
from ferryvm_backends._llvm.build import compile_loops
from ferryvm_backends._llvm.codegen import ObjectCode
from ferryvm_backends._llvm.word_code import WordCode
from ferryvm_backends.threaded import BACKEND, symbol

from .item_batch import taking

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


class BarrierFault(NamedTuple):
    """A store of a builder that is left out, by its number among those of the builder."""

    name: str
    about: str
    builder: type[WordCode]
    number: int


_WAIT, _BEGIN = phase._Wait, phase._BeginPhase

FAULTS = (
    BarrierFault("waits-again", "An item waits again where it has waited.", _WAIT, 5),
    BarrierFault(
        "waiting-references-lost", "References of an item that waits are null.", _WAIT, 12
    ),
    BarrierFault("waiting-item-lost", "An item that waits has another number.", _WAIT, 16),
    BarrierFault("waiting-pc-lost", "An item that waits begins elsewhere.", _WAIT, 18),
    BarrierFault("waiting-others-lost", "Only the last item waits.", _WAIT, 22),
    BarrierFault("phase-size-lost", "Nobody knows how many items there are.", _WAIT, 26),
    BarrierFault("phase-not-recorded", "The record does not have the item that waits.", _WAIT, 34),
    BarrierFault("phase-order-lost", "Only one item goes on behind a barrier.", _BEGIN, 9),
    BarrierFault("phase-items-lost", "No item goes on behind a barrier.", _BEGIN, 19),
    BarrierFault("phase-not-begun", "The items wait for ever.", _BEGIN, 21),
)


def _code(fault: BarrierFault | None) -> ObjectCode:
    """The code with the fault."""
    count = 0
    put = WordCode.put

    def planted(self: Any, *given: Any) -> None:
        nonlocal count
        is_own = fault is not None and isinstance(self, fault.builder)
        count += is_own
        if fault is None or not is_own or count != fault.number + 1:
            put(self, *given)

    with mock.patch.object(WordCode, "put", planted):
        return ObjectCode(compile_loops(taking()))


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


def is_found(fault: BarrierFault | None) -> bool:
    """True if the outcome shows the fault, or something without one."""
    code = _code(fault)
    with mock.patch.object(BACKEND._interpreters.whole, "resumption", code.address(symbol.RESUME)):
        try:
            return _outcome("threaded") != _expected()
        except Exception:  # noqa: BLE001 - whatever a fault leads to
            return True
