# SPDX-License-Identifier: Apache-2.0
"""A program with places of every kind, how it stands when control gets to them, and native code."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from collections.abc import Callable

import ferryvm
from ferryvm.backend import Artifact
from ferryvm.engine import Engine
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine, Snapshot
from ferryvm.verify import Verified, verify

from ..double.code import NativeFunction

INTERPRETERS = ("reference", "switch", "threaded")
FORMS = (False, True)
"""Of the code: that which does not count instructions, and that which does."""

LIMITS = Limits(stack=1 << 16, heap=1 << 16, first_heap=1 << 12)
PLENTY = 1 << 40
"""Fuel that no program here gets through."""

ITERATIONS = 40
PROGRAM = f"""
.function main
.local i i64
.local total i64
:loop
    local.get total     ; 0
    local.get i         ; 1
    call twice          ; 2
    i64.add             ; 3: where it returns to
    local.set total
    local.get i         ; 5: one fused instruction to the end of the loop
    i64.const 1
    i64.add
    local.set i
    local.get i         ; 9
    i64.const {ITERATIONS}
    i64.lt_s
    jump_if loop        ; 12
    local.get total     ; 13
    halt                ; 14
.function twice (n i64) -> i64
    local.get n         ; 15
    local.get n
    i64.add
    return              ; 18
"""
LOOP, CALL, RETURNED, INNER, AFTER, END, ENTRY = 0, 2, 3, 5, 13, 14, 15
I, TOTAL = 2, 3
"""Words of main's locals."""

VERIFIED = verify(ferryvm.assemble(PROGRAM))
PLACES = range(len(VERIFIED.program.code))

MOST_CALLS = 5_000_000


class Native:
    """A native function that does in Python what it is told to; it counts its calls.

    After MOST_CALLS it gives up, with GUARD: no fault of an interpreter makes a test run for ever.
    """

    def __init__(self, action: Callable[[ControlBlock], Status | int]) -> None:
        self.calls = 0

        def call(control: ControlBlock) -> int:
            self.calls += 1
            if self.calls > MOST_CALLS:
                return int(Status.GUARD)
            return int(action(control))

        self._function = NativeFunction(call)
        self.address = self._function.address


def idle() -> Native:
    """Leaves at once, at its own entry."""
    return Native(lambda _control: Status.LEAVE)


def stack(control: ControlBlock) -> ctypes.Array[ctypes.c_uint64]:
    """The first words of the stack, as native code sees them."""
    return (ctypes.c_uint64 * 8).from_address(control.stack)


@dataclasses.dataclass
class Run:
    """A program on one interpreter, in one form of its code."""

    artifact: Artifact
    machine: Machine
    counting: bool
    natives: list[Native] = dataclasses.field(default_factory=list)
    """What has been installed, which has to live as long as it may be called."""

    @classmethod
    def start(cls, backend: str, counting: bool, verified: Verified = VERIFIED) -> Run:
        """At its start, with plenty of fuel."""
        run = cls(prepare(backend, verified), Machine(verified, LIMITS), counting)
        run.machine.control.fuel = PLENTY
        return run

    def enter(self) -> Status:
        """Go on."""
        return self.artifact.enter(self.machine, self.counting)

    def count(self, pc: int, times: int) -> None:
        """Set a count cell."""
        self.artifact.count(pc, times, self.counting)

    def counted(self, pc: int) -> int:
        """What a count cell has left."""
        return self.artifact.counted(pc, self.counting)

    def install(self, pc: int, native: Native) -> None:
        """Set an enter cell."""
        self.natives.append(native)
        self.artifact.install(pc, native.address, self.counting)

    def remove(self, pc: int) -> None:
        """Take a cell away."""
        self.artifact.remove(pc, self.counting)

    @property
    def paid(self) -> int | None:
        """Instructions paid so far; None where nobody counts."""
        return PLENTY - self.machine.control.fuel if self.counting else None


def prepare(backend: str, verified: Verified = VERIFIED) -> Artifact:
    """A new artifact, without cells."""
    return _engine(backend).backend.prepare(verified)


@functools.cache
def _engine(backend: str) -> Engine:
    return Engine(backend, limits=LIMITS)


@dataclasses.dataclass(frozen=True)
class Arrival:
    """The state in front of an instruction, as the reference has it."""

    snapshot: Snapshot
    completed: int
    """Instructions up to there."""


@functools.cache
def trail() -> tuple[Arrival, ...]:
    """The program stepped through by the reference: the state in front of each instruction that it
    runs, and the last one once more as it ends."""
    run = Run.start("reference", True)
    control = run.machine.control
    arrivals = [Arrival(run.machine.snapshot(), 0)]
    status = Status.FUEL
    while status is Status.FUEL:
        control.fuel = 1
        status = run.enter()
        completed = arrivals[-1].completed + 1 - control.fuel
        arrivals.append(Arrival(run.machine.snapshot(), completed))
    assert status is Status.HALT
    return tuple(arrivals)


def arrivals(pc: int) -> list[Arrival]:
    """The states in which control gets to `pc`, in their order."""
    return [arrival for arrival in trail()[:-1] if arrival.snapshot.pc == pc]


def in_front(arrival: Arrival, status: Status) -> Snapshot:
    """What the machine has to be when it left there with that status."""
    return dataclasses.replace(arrival.snapshot, status=status)


def ends_as_without_cells(run: Run) -> None:
    """Run to the end and check that it is the one that the program has."""
    assert run.enter() is Status.HALT
    assert run.machine.snapshot() == trail()[-1].snapshot
    assert run.paid in (None, trail()[-1].completed)
