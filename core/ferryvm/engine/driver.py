# SPDX-License-Identifier: Apache-2.0
"""The loop around a backend: enter it, do what its status asks for, enter it again.

    enter ──> HALT, TRAP, FUEL, INTERRUPTED   the program stops
       ▲  ├──> HOST                            perform the call ──┐
       │  └──> GROW                            grow the heap ─────┤   (or trap)
       └──────────────────────────────────────────────────────────┘

The state that a backend leaves is checked before anything is done with it: it may be anybody's.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.backend import Artifact, BackendError, Interpreter, RefusalError
from ferryvm.engine.exit_check import ExitChecker
from ferryvm.errors import FerryError
from ferryvm.failure import described, is_out_of_memory, shown
from ferryvm.float_environment import callers
from ferryvm.isa import Trap
from ferryvm.machine.control import Status
from ferryvm.machine.host import STANDARD, HostFunction, Output
from ferryvm.machine.state import Machine

_ENDS = (Status.HALT, Status.TRAP, Status.INTERRUPTED, Status.FUEL)
"""Statuses that end a run."""

_NOT_OURS = (
    *(Status.RUNNING, Status.LEAVE, Status.GUARD, Status.HOT, Status.SLICED, Status.LOST),
    Status.LONG,
)
"""Statuses that the engine cannot go on from, whatever the state is."""


class Driver:
    """A machine with the host functions that its program calls."""

    def __init__(self, machine: Machine, hosts: Sequence[HostFunction], output: Output) -> None:
        """`hosts`: by the number of the import; `output`: where the program writes."""
        self.machine, self.output = machine, output
        self.broken = ""
        """The fault of a backend that left the machine in no state of its program."""
        self._hosts = hosts
        self._is_standard = [STANDARD.get(one.name) is one for one in hosts]
        self._checker = ExitChecker(machine)

    def drive(self, backend: Interpreter, artifact: Artifact, counting: bool) -> Status:
        """Enter the backend until the program stops; why it did.

        Raises BackendError for a backend that left what cannot be gone on from, RefusalError where
        the heap is larger than it can address, and what a host function raises.
        """
        control = self.machine.control
        if control.status in (Status.HALT, Status.TRAP):
            return self.machine.status  # it ended before this run
        self._limit_heap(backend)
        while True:
            try:
                status = artifact.enter(self.machine, counting)
            except (FerryError, KeyboardInterrupt, MemoryError):
                raise
            except BaseException as error:
                if is_out_of_memory(error):
                    raise MemoryError from error
                raise self._break(backend, f"raised {described(error)}") from error
            if status.__class__ is not Status:  # a number would pass for none of those below
                raise self._break(backend, f"returned {shown(status)}, not a Status")
            fault = self._checker.fault(status, counting)
            if fault is not None and status not in _NOT_OURS:
                raise self._break(backend, f"left {fault}")
            if status is Status.HOST:
                if control.interrupt:  # or nobody looks, where each stay in a backend is short
                    control.status = Status.INTERRUPTED
                    return Status.INTERRUPTED
                self._call_host(counting)
            elif status is Status.GROW:
                if not self._grow(backend):
                    control.status, control.trap = Status.TRAP, Trap.HEAP_EXHAUSTED
                    return Status.TRAP
            elif status in _ENDS:
                if status is Status.HALT and counting:
                    control.fuel -= 1
                return status
            else:
                raise BackendError(
                    f"backend {backend.name!r} left with {status.name} at pc {control.pc}, "
                    "which a program run by one backend alone cannot go on from"
                )

    def _break(self, backend: Interpreter, what: str) -> BackendError:
        """The error for a backend after which the machine is in no state of its program."""
        self.broken = f"backend {backend.name!r} {what}"
        return BackendError(f"{self.broken}; the program cannot go on")

    def _limit_heap(self, backend: Interpreter) -> None:
        """Keep the heap within what the backend can address."""
        control, limit = self.machine.control, backend.capabilities.heap
        control.heap_capacity = self.machine.memory.heap_capacity
        if limit is not None:
            if control.hp > limit:
                message = f"backend {backend.name!r} can address {limit} bytes of heap"
                raise RefusalError(f"{message}, {control.hp} are in use")
            control.heap_capacity = min(control.heap_capacity, limit)

    def _grow(self, backend: Interpreter) -> bool:
        """Make room for the allocation that left with GROW; False if a limit forbids it."""
        limit = backend.capabilities.heap
        if limit is not None and self.machine.control.wanted > limit:
            return False
        grown = self.machine.grow()
        self._limit_heap(backend)
        return grown

    def _call_host(self, counting: bool) -> None:
        """Perform the host call at pc and step over it."""
        machine, control = self.machine, self.machine.control
        function = self._hosts[control.exit_id]
        count = len(function.signature.parameters)
        arguments = machine.memory.stack[control.sp - count : control.sp].tolist()
        if self._is_standard[control.exit_id] and _is_list(self.output):
            given = function.action(self.output, *arguments)  # runs nothing that is not ours
        else:
            with callers():
                given = function.action(self.output, *arguments)
        result = _result_bits(function, given)
        # Nothing has changed up to here: a host function that fails leaves the program at the call.
        control.sp -= count
        if result is not None:
            machine.memory.stack[control.sp] = result
            control.sp += 1
        control.pc += 1
        if counting:
            control.fuel -= 1


def _is_list(output: Output) -> bool:
    """True if what a program writes is collected in a list, and nobody's code is called for it."""
    return getattr(output, "__self__", None).__class__ is list


def _result_bits(function: HostFunction, result: object) -> int | None:
    """The result of a host function, checked against its signature."""
    if not function.signature.results:
        if result is not None:
            raise FerryError(f"host function {function.name} has no result, but returned one")
        return None
    (t,) = function.signature.results
    if not isinstance(result, int):
        kind = type(result).__name__
        raise FerryError(f"host function {function.name} returned {kind}, not the bits of an {t}")
    return result & t.mask
