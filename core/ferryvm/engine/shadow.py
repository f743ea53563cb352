# SPDX-License-Identifier: Apache-2.0
"""The shadow run: a second backend repeats each run of compiled code, and both states are compared.

    interpreter ──> code entered ──> copy of the machine ─────────────────────┐
                         │                                                    │
                    native code: n instructions             shadow: n instructions of the copy
                         │                                                    │
                         └────────────────> equal, to the bit? <──────────────┘
                               yes: continue        no: stop, with the shadow's state

The number n is the fuel that the code has used, so under a shadow a program always runs in the
counting form. A run of code ends after `LONGEST` instructions, as if fuel had run out, since the
shadow is slow and a loop may be endless. Only compiled code is checked: `ferry diff` compares
interpreters.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from ferryvm.backend import (
    Backend,
    BackendError,
    Code,
    Interpreter,
    RefusalError,
)
from ferryvm.engine.journal import Placement
from ferryvm.engine.preparation import prepare
from ferryvm.errors import FerryError
from ferryvm.failure import described
from ferryvm.isa import Trap
from ferryvm.machine.control import UNLIMITED, ControlBlock, Status
from ferryvm.machine.difference import Difference, register_difference
from ferryvm.machine.entry import ENTRY, PythonEntry
from ferryvm.machine.memory_difference import memory_difference
from ferryvm.machine.state import Machine
from ferryvm.verify import Verified
from ferryvm.wrapper import CodeWrapper

LONGEST = 200_000
"""The largest number of instructions of one run of compiled code."""

SLICE = 2_000
"""Instructions that the shadow runs between two checks of the interrupt flag: some 10 ms in
Python."""

_GOES_ON = frozenset(
    [
        *(Status.LEAVE, Status.GUARD, Status.INTERRUPTED, Status.FUEL),
        *(Status.SLICED, Status.LOST, Status.LONG),
    ]
)
"""Statuses after which the interpreter still has to run the instruction at pc."""

_MEETS = frozenset([Status.HALT, Status.HOST, Status.TRAP, Status.GROW, Status.ALLOCATE])
"""Statuses whose cause is the instruction at pc itself; it is not paid for."""

_DATA = {
    Status.TRAP: ("trap",),
    Status.HOST: ("exit_id",),
    Status.GROW: ("wanted",),
    Status.ALLOCATE: ("wanted", "wanted_type"),
}
"""Fields of the control block that a status comes with."""

_UNCHANGED = (
    *("abi_version", "instructions", "heap_capacity", "heap_limit", "static_count", "table_size"),
    *("statics", "stack", "stack_end", "heap", "code", "functions", "table"),
    *("counters", "entries", "originals", "natives", "objects", "object_end", "types", "launches"),
)
"""Fields of the control block that compiled code must not change."""

Enter = Callable[[Machine, bool], Status]
GiveUp = Callable[[Placement], None]


class ShadowError(FerryError):
    """Compiled code and the shadow differ. The execution is in the shadow's state."""

    def __init__(self, message: str, run: CodeRun, difference: Difference) -> None:
        self.backend, self.region = run.backend, run.region
        self.entry, self.exit = run.entry, run.exit
        self.difference = difference
        """`left` is the shadow's, `right` the compiled code's."""
        super().__init__(message)


@dataclasses.dataclass(frozen=True)
class CodeRun:
    """One run of compiled code, from its entry to its exit."""

    backend: str
    region: str
    entry: int
    exit: int
    """The pc at the exit."""
    instructions: int
    """The number that the code paid for."""
    status: int
    """A `Status`, if the code is right."""


@dataclasses.dataclass
class _Stop:
    """The reason that a run ends although compiled code would have continued, and its state."""

    clone: Machine | None = None
    """The machine with the right state; None: the original."""
    fuel: int = 0
    """The fuel left in that state."""
    error: BaseException | None = None
    """None: the shadow was interrupted."""
    placement: Placement | None = None
    """The placement whose code must not be entered any more."""


def shadow_backend(backend: Backend, runs: Interpreter) -> Interpreter:
    """A backend that can run beside the interpreter `runs`. Raises BackendError."""
    if not isinstance(backend, Interpreter):
        raise BackendError(f"the shadow {backend.name!r} runs no whole programs")
    for one in (backend, runs):
        if not one.capabilities.fuel:
            raise RefusalError(f"backend {one.name!r} cannot count instructions; a shadow needs it")
    return backend


class Shadow:
    """A backend that repeats the compiled code of one program."""

    def __init__(self, program: Verified, backend: Interpreter) -> None:
        """Raises BackendError if the backend does not accept the program."""
        self._name = backend.name
        self._artifact = prepare(backend, program, role="the shadow")
        self._machines: dict[int, Machine] = {}
        """Machines that are running, by the address of their control block."""
        self._stops: dict[int, _Stop] = {}

    def run(self, machine: Machine, counting: bool, enter: Enter, give_up: GiveUp) -> Status:
        """As `enter`, in the counting form. Raises ShadowError.

        `give_up`: removes a placement's code.
        """
        control, at = machine.control, machine.address
        if not counting:
            control.fuel = UNLIMITED
        self._machines[at] = machine
        try:
            status = enter(machine, True)
        finally:
            del self._machines[at]
            stop = self._stops.pop(at, None)
            if stop is not None:
                self._settle(machine, stop)
        if stop is None:
            return status
        if stop.placement is not None:
            give_up(stop.placement)
        if stop.error is not None:
            raise stop.error
        return Status.INTERRUPTED

    def _settle(self, machine: Machine, stop: _Stop) -> None:
        """Put a machine into the state in which its run ends."""
        control = machine.control
        if stop.clone is not None:
            # Not earlier: the interpreter that called the code was using the old memory.
            machine.adopt(stop.clone)
            control.fuel = stop.fuel
        # Not the shadow's status: the next run reaches its halt or trap again.
        control.status = Status.RUNNING if stop.error is not None else Status.INTERRUPTED
        control.trap = Trap.NONE

    def checked(self, code: Code, placement: Placement, backend: str, region: str) -> Code:
        """The same code, with each run repeated by the shadow."""
        native = ENTRY(code.address)

        def check(block: int) -> int:
            try:
                run, stop = self._check(self._machines[block], native, backend, region, placement)
            except BaseException as error:  # noqa: BLE001 - ctypes would return 0 for it
                self._stops[block] = _Stop(error=error)
                return int(Status.INTERRUPTED)
            if stop is None:
                return int(run.status)
            self._stops[block] = stop
            return int(Status.INTERRUPTED)

        return _CheckedCode(code, check)

    def _check(
        self,
        machine: Machine,
        native: Callable[[int], int],
        backend: str,
        region: str,
        placement: Placement,
    ) -> tuple[CodeRun, _Stop | None]:
        """Enter the code, repeat its run, and compare."""
        control = machine.control
        began = time.perf_counter()
        clone = machine.copy()
        clone.control.heap_capacity = control.heap_capacity
        before = ControlBlock.from_buffer_copy(control)
        given = control.fuel = min(before.fuel, LONGEST)
        copied = time.perf_counter()
        status = native(machine.address)
        exited = time.perf_counter()
        paid = given - control.fuel
        control.fuel = before.fuel - paid
        if status == Status.FUEL and paid == given < before.fuel:
            status = Status.LEAVE  # more fuel is left than the code was given
        run = CodeRun(backend, region, placement.pc, control.pc, paid, status)
        found, done = _broken(control, before, run), 0
        if found is None:
            control.status = status
            met, done = self._repeat(clone, machine, run)
            if met is None:
                return run, _Stop(clone, before.fuel - done)
            found = _difference(machine, clone, met, done, run)
        placement.compared += 1
        placement.compare_seconds += time.perf_counter() - exited + copied - began
        if found is None:
            objects = machine.objects
            if status == Status.ALLOCATE and objects is not None and objects.fits():
                # The comparison has collected: the interpreter makes the object.
                run = dataclasses.replace(run, status=Status.LEAVE)
            return run, None
        what = f"{found.field} was {found.right}, not {found.left}"
        placement.differences.append(f"{what}; entered at pc {run.entry}, left at pc {run.exit}")
        error = self._error(machine, run, found, clone)
        return run, _Stop(clone, before.fuel - done, error, placement)

    def _repeat(self, clone: Machine, machine: Machine, run: CodeRun) -> tuple[Status | None, int]:
        """The status of the shadow and the number of instructions it completed; None if it was
        interrupted.

        If the code's last instruction is the cause of its exit, the shadow may pay for one more.
        """
        control, total = clone.control, run.instructions + (run.status in _MEETS)
        remaining = total
        while True:
            control.fuel = part = min(remaining, SLICE)
            try:
                met = self._artifact.enter(clone, True)
            except Exception as error:
                what = f"the shadow {self._name!r} failed beside region {run.region}"
                raise BackendError(f"{what}: {described(error)}") from error
            remaining -= part - control.fuel
            if met is not Status.FUEL or control.fuel > 0 or not remaining:
                return met, total - remaining
            if machine.control.interrupt and remaining > SLICE:
                return None, total - remaining

    def _error(
        self, machine: Machine, run: CodeRun, found: Difference, clone: Machine
    ) -> ShadowError:
        entry, exit_ = _at(machine, run.entry), _at(machine, run.exit)
        return ShadowError(
            f"backend {run.backend!r}: region {run.region}, entered at {entry} and left at {exit_} "
            f"after {run.instructions} instructions, is wrong: {found.field} is {found.right}, "
            f"{found.left} in {self._name!r}, in whose state the program stands at "
            f"{_at(machine, clone.control.pc)}",
            run,
            found,
        )


class _CheckedCode(CodeWrapper):
    """Compiled code behind the function that checks it."""

    def __init__(self, inner: Code, check: Callable[[int], int]) -> None:
        super().__init__(inner)
        self._entry = PythonEntry(check)
        self.address = self._entry.address


def _broken(control: ControlBlock, before: ControlBlock, run: CodeRun) -> Difference | None:
    """The fault that makes a comparison pointless: an invalid status, wrong fuel, overwritten
    fields."""
    if run.status not in _GOES_ON | _MEETS:
        return Difference("status", "one that code may leave with", str(run.status))
    if run.instructions < 0:
        return Difference("fuel", f"{before.fuel} at most", str(control.fuel))
    if run.status == Status.FUEL and control.fuel > 0:
        return Difference("status", f"fuel for {control.fuel} more", "FUEL")
    if run.status == Status.INTERRUPTED and not control.interrupt:
        return Difference("status", "no interrupt", "INTERRUPTED")
    for name in _UNCHANGED:
        was, now = getattr(before, name), getattr(control, name)
        if was != now:
            return Difference(f"{name} of the control block", str(was), str(now))
    return None


def _difference(
    machine: Machine, clone: Machine, met: Status, done: int, run: CodeRun
) -> Difference | None:
    """The first difference of the shadow's state and the code's, None if they are equal."""
    control, shadow = machine.control, clone.control
    status = Status(run.status)
    if met is not (Status.FUEL if status in _GOES_ON else status) or done != run.instructions:
        what = "one that goes on" if met is Status.FUEL else met.name
        where = f"at pc {shadow.pc} after {done} instructions"
        return Difference("status", f"{what} {where}", status.name)
    for name in _DATA.get(status, ()):
        if getattr(control, name) != getattr(shadow, name):
            return Difference(name, str(getattr(shadow, name)), str(getattr(control, name)))
    return register_difference(shadow, control) or memory_difference(
        clone, clone.snapshot(), machine.snapshot()
    )


def _at(machine: Machine, pc: int) -> str:
    """A pc, with its source position."""
    position = machine.program.source_map.position(pc)
    return f"pc {pc} ({position})" if position else f"pc {pc}"
