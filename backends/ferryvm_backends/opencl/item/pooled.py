# SPDX-License-Identifier: Apache-2.0
"""Ranges that a thread of the pool runs on a device, while the thread that launches waits.

So signal handlers run meanwhile, and an interrupt reaches the device: a processor sees it, in front
of each item and in the items' loops; for other devices the host looks between two slices.
"""

from __future__ import annotations

import abc
import functools
import threading
from collections.abc import Callable
from typing import NoReturn

import pyopencl as cl

from ferryvm.backend import BackendError
from ferryvm.engine.thread_pool import pool
from ferryvm.failure import one_line
from ferryvm.float_environment import ours
from ferryvm.item_range import LostItemsError, RangeOutcome, RangeRunner
from ferryvm.machine.control import ControlBlock
from ferryvm.machine.state import Machine
from ferryvm.residency import Residency
from ferryvm.thread import Bell, ThreadError
from ferryvm_backends.opencl.item import ItemShape
from ferryvm_backends.opencl.item.memory import ItemMemory
from ferryvm_backends.opencl.item.range_run import RangeRun
from ferryvm_backends.opencl.item.suspension import suspended

_WAIT = 0.01
"""Seconds between two looks at the interrupt flag."""

lock = threading.RLock()
"""Buffers are of a device, not of a machine."""


def is_inside() -> bool:
    """True in a signal handler that has come while this thread has the lock: the pool would wait for
    it in vain."""
    return bool(lock._is_owned())  # type: ignore[attr-defined]  # Condition needs it, too


class PooledRanges(RangeRunner):
    """Lets threads of the pool run ranges."""

    def __init__(self, memory: ItemMemory, shape: ItemShape) -> None:
        self._memory, self._shape = memory, shape
        self._device = memory.session.device
        self._threads = 1 if self._device.is_serial else self._device.handle.max_compute_units
        self._buffers, self._gate = suspended(memory.session, memory.wraps), memory.session.gate

    @abc.abstractmethod
    def _run(
        self,
        machine: Machine,
        first: int,
        limit: int,
        found: RangeRun,
        defers: bool,
        residency: Residency | None,
    ) -> None:
        """Run a range in the thread that calls. Raises BackendError, cl.Error."""

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        return self._run_in_pool(machine, first, limit, False)

    def run_deferred(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        return self._run_in_pool(machine, first, limit, True)

    def run_resident(
        self, machine: Machine, first: int, limit: int, residency: Residency
    ) -> RangeOutcome:
        return self._run_in_pool(machine, first, limit, False, residency)

    def write_back(self, machine: Machine) -> None:
        if not self._memory.is_ahead(machine.control):
            return
        found = RangeRun()
        self._in_pool(machine, found, functools.partial(self._write_back, machine.control))

    def drop_results(self, machine: Machine) -> None:
        """Forget what the device alone has."""
        if self._memory.is_ahead(machine.control):
            with lock:
                self._memory.drop(machine.control)

    def _is_undone(self, _error: BaseException) -> bool:
        """True if a slice that has raised this error left the device's memory as it was."""
        return False

    def _write_back(self, control: ControlBlock) -> None:
        try:
            self._memory.pull(control)
        except BaseException:
            self._memory.drop(control)
            raise

    def _run_in_pool(
        self,
        machine: Machine,
        first: int,
        limit: int,
        defers: bool,
        residency: Residency | None = None,
    ) -> RangeOutcome:
        control, found = machine.control, RangeRun()
        run = functools.partial(self._run, machine, first, limit, found, defers, residency)
        self._in_pool(machine, found, run)
        stopped = found.stops.total()
        left = sum(two - one for one, two in found.open) + stopped
        seconds = found.seconds * self._threads if self._shape.is_block else None
        completed, is_interrupted = limit - first - left, bool(control.interrupt)
        return RangeOutcome(
            completed, stopped, seconds, is_interrupted, found.stops, found.finished
        )

    def _in_pool(self, machine: Machine, found: RangeRun, work: Callable[[], None]) -> None:
        """Let a thread of the pool do the work. Raises what the work raises."""
        control, bell, buffers = machine.control, Bell(), self._buffers
        if is_inside():
            raise BackendError("a signal handler runs a launch while the device begins another one")
        failures: list[BaseException] = []

        def act() -> None:
            try:
                with ours(), lock:
                    self._gate.shut()
                    work()
            except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
                failures.append(error)
            bell.ring()

        try:
            pool().start(1)
        except ThreadError:
            with lock:
                self._memory.drop(control)
            raise
        submitted: list[None] = []
        raised: BaseException | None = None
        try:
            submitted.extend(map(pool().submit, ([act],)))
        except BaseException as error:  # noqa: BLE001 - a signal handler's, before or after it was done
            raised = error
        while submitted and not bell.is_rung:
            try:
                while not bell.wait(_WAIT):
                    if control.interrupt or raised is not None:
                        found.is_stopped = found.is_interrupted = True
                        buffers.interrupt()
            except BaseException as error:  # noqa: BLE001 - likewise: the thread goes on
                raised = error
        if failures:
            self._fail(machine, failures[0], found.is_changed)
        if raised is not None:
            raise raised

    def _fail(self, machine: Machine, error: BaseException, is_changed: bool) -> NoReturn:
        """Raise the error of a run; `is_changed`: some items are done, nobody knows which."""
        if isinstance(error, cl.Error):
            error = BackendError(f"opencl: {self._device} failed: {one_line(str(error))}")
        if is_changed:
            machine.torn = f"items of a launch were lost: {error}"
            raise LostItemsError(machine.torn) from None
        raise error
