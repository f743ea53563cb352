# SPDX-License-Identifier: Apache-2.0
"""Planted faults of the native loop around host calls: a test or a store of it is left out.

The machine is a control block, and its code a function of Python that says how it was left.
"""

from __future__ import annotations

import ctypes
import itertools
from array import array
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.host_loop import HOST_LOOP, NO_PC, ROWS, HostLoopRequest
from ferryvm.machine.item_map import RESUME, ItemOutcome
from ferryvm_backends._llvm import host_loop
from ferryvm_backends._llvm.build import compile_loops
from ferryvm_backends._llvm.codegen import ObjectCode

STACK, PC, SP, FP = 90, 70, 20, 8
_RUN = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
_MOST = 10
"""Entries and calls, where a fault makes the loop endless."""


class LoopFault(NamedTuple):
    """The loop without one of its tests or stores."""

    name: str
    about: str
    piece: str
    """The method of the builder that emits them."""
    number: int
    """The number among the calls of the method."""


FAULTS = (
    LoopFault("served-any-status", "Any exit is taken for a host call.", "_return_if", 0),
    LoopFault("served-elsewhere", "A call of another site is performed.", "_return_if", 1),
    LoopFault("served-any-frame", "A call is performed with another frame.", "_return_if", 2),
    LoopFault("served-another", "Another import than that of the site is called.", "_return_if", 3),
    LoopFault("served-past-stack", "A call is performed beyond the stack.", "_return_if", 4),
    LoopFault("served-interrupted", "An interrupt waits for the last call.", "_return_if", 5),
    LoopFault("served-after-entry", "The form of a nested run is entered.", "_return_if", 6),
    LoopFault("served-for-nothing", "Calls take no fuel.", "_set", 0),
    LoopFault("served-failed-before", "A failure of the past is seen again.", "put", 0),
    LoopFault("served-not-failed", "A host function's exception is a signal's.", "put", 2),
)


def code_of(fault: LoopFault | None) -> ObjectCode:
    """The loop's code, with a fault if there is one."""
    if fault is None:
        return ObjectCode(compile_loops(host_loop.module()))
    count, emit = itertools.count(), getattr(host_loop._HostLoop, fault.piece)

    def planted(self: Any, *given: Any) -> None:
        if next(count) != fault.number:
            emit(self, *given)

    with mock.patch.object(host_loop._HostLoop, fault.piece, planted):
        return ObjectCode(compile_loops(host_loop.module()))


def outcomes(code: ObjectCode) -> list[object]:
    """The outcomes of the loop in each state that a test of it is for."""
    loop = HOST_LOOP(code.address(host_loop._SYMBOL))
    return [
        _outcome(loop),
        _outcome(loop, pc=PC + ROWS),
        _outcome(loop, sp=SP + 1),
        _outcome(loop, exit_id=0),
        _outcome(loop, stack_words=SP - 1),
        _outcome(loop, interrupts=True),
        _outcome(loop, enters=True),
        _outcome(loop, raises=True),
        _outcome(loop, items=2),
        _outcome(loop, items=2, refuses=True),
    ]


def _outcome(
    loop: Callable[[int], int],
    pc: int = PC,
    sp: int = SP,
    exit_id: int = 1,
    stack_words: int = STACK,
    interrupts: bool = False,
    enters: bool = False,
    raises: bool = False,
    items: int = 0,
    refuses: bool = False,
) -> object:
    """The outcome of a loop over two host calls and a HALT. `items`: LAUNCHes after the first
    call."""
    control, drives, done = ControlBlock(), array("Q", [0]), list[str]()
    left = [Status.HOST, *[Status.LAUNCH] * items, Status.HOST, Status.HALT]
    control.fuel, control.fp = 100, FP

    def leave() -> int:
        control.status, control.pc, control.sp = left.pop(0) if left else Status.TRAP, pc, sp
        control.exit_id = exit_id
        done.append(Status(control.status).name)
        return control.status

    def resume(_map: int, _control: int) -> int:
        if refuses:
            return ItemOutcome.REFUSED
        while leave() == Status.LAUNCH:
            pass
        return ItemOutcome.DONE

    def call() -> None:
        done.append("call")
        control.interrupt = interrupts
        drives[0] += enters
        if raises or len(done) > _MOST:
            raise LookupError

    run, resumption = _RUN(lambda _: leave()), RESUME(resume)
    rows = array("Q", [NO_PC, 0, 0] * ROWS)
    at = 3 * (PC % ROWS)
    rows[at : at + 3] = array("Q", [PC, SP - FP, 1])
    performing = [lambda: done.append("another"), call]
    request = HostLoopRequest(
        *(ctypes.cast(each, ctypes.c_void_p).value for each in (run, resumption)),
        *(0, ctypes.addressof(control), id(performing), rows.buffer_info()[0]),
        *(stack_words, drives.buffer_info()[0], 1, 1),
    )
    try:
        status: object = loop(ctypes.addressof(request))
    except LookupError:
        status = "raised"
    return status, done, control.fuel, request.failed
