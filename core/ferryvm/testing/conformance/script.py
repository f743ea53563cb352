# SPDX-License-Identifier: Apache-2.0
"""Scripts: what is done with a backend, step by step, and what must then be seen.

A script works below the engine, at the contract itself: machines, `enter`, and what an engine does
between two entries. So whoever can read a file and call `enter`, in whatever language, can follow
one; export.py writes them for that. Every expectation is a whole state, compared bit for bit.
"""

from __future__ import annotations

import dataclasses
import enum

from ferryvm.backend import Capabilities
from ferryvm.isa import Trap
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.verify import Verified


@dataclasses.dataclass(frozen=True)
class ScriptState:
    """A machine, stopped. What a status leaves open is None."""

    status: Status
    trap: Trap | None
    """With TRAP."""
    exit_id: int | None
    """With HOST."""
    wanted: int | None
    """With GROW."""
    fuel: int | None
    """None where it is not counted."""
    pc: int
    sp: int
    fp: int
    hp: int
    heap_capacity: int
    statics: bytes
    stack: bytes
    """Words below sp."""
    heap: bytes
    """Bytes below hp; from there to the capacity there are zeros."""


def observe(machine: Machine, counting: bool) -> ScriptState:
    """The state that a machine is in."""
    control, memory = machine.control, machine.memory
    status = machine.status
    return ScriptState(
        status,
        Trap(control.trap) if status is Status.TRAP else None,
        control.exit_id if status is Status.HOST else None,
        control.wanted if status is Status.GROW else None,
        control.fuel if counting else None,
        control.pc,
        control.sp,
        control.fp,
        control.hp,
        control.heap_capacity,
        memory.statics.tobytes(),
        memory.stack[: control.sp].tobytes(),
        memory.heap[: control.hp].tobytes(),
    )


class Flag(enum.Enum):
    """The interrupt flag of an entry."""

    CLEAR = "clear"
    SET = "set"
    """It is set before the entry."""
    LATER = "later"
    """Another thread sets it when the backend has been running for a moment."""


class TrailPosition(enum.Enum):
    """The state of the script's trail that an entry must end in."""

    SOMEWHERE = "somewhere"
    """Any of them, with status INTERRUPTED. If it counts, the one that its fuel tells."""
    LAST = "last"
    """The last one."""


Expected = ScriptState | TrailPosition | int
"""A state; a place on the trail; or that many instructions further on the trail, with FUEL."""


@dataclasses.dataclass(frozen=True)
class Start:
    """Make the machine of that number anew, at the program's start."""

    machine: int
    expected: ScriptState


@dataclasses.dataclass(frozen=True)
class Put:
    """Put a new machine into a state."""

    machine: int
    state: ScriptState


@dataclasses.dataclass(frozen=True)
class Move:
    """Put the same machine into a later state, as another backend would that it moved to."""

    machine: int
    state: ScriptState


@dataclasses.dataclass(frozen=True)
class Litter:
    """Fill all of the stack above sp with a word: nobody may rely on what is there."""

    machine: int
    word: int


@dataclasses.dataclass(frozen=True)
class Enter:
    """Enter the backend and compare the state in which it leaves."""

    machine: int
    counting: bool
    fuel: int | None
    """The value of `control.fuel` to set before; None: unchanged."""
    flag: Flag
    expected: Expected


@dataclasses.dataclass(frozen=True)
class Host:
    """Perform the host call that the machine waits for, as an engine does."""

    machine: int
    arguments: int
    """Words that it takes from the stack."""
    result: int | None
    """The word that it pushes then."""
    counting: bool
    """True if it takes 1 from the fuel."""


@dataclasses.dataclass(frozen=True)
class Grow:
    """Make that many bytes of heap usable."""

    machine: int
    capacity: int


@dataclasses.dataclass(frozen=True)
class Save:
    """The machine, saved, is that file, byte for byte."""

    machine: int
    file: bytes
    """It states that nobody counted."""


@dataclasses.dataclass(frozen=True)
class Load:
    """Make the machine anew from a saved state."""

    machine: int
    file: bytes
    expected: ScriptState


Step = Start | Put | Move | Litter | Enter | Host | Grow | Save | Load


@dataclasses.dataclass(frozen=True)
class Trail:
    """The states of a program after 0, 1, 2, ... instructions, up to its end or its repetition."""

    states: tuple[ScriptState, ...]
    period: int
    """The last so many come again and again; 0: the last one is the end."""

    def index(self, completed: int) -> int:
        """Index of the state after so many instructions, the last one past the end."""
        past = completed - len(self.states)
        if past < 0:
            return completed
        return len(self.states) - self.period + past % self.period if self.period else -1


@dataclasses.dataclass(frozen=True)
class Script:
    """One program and what is done with it."""

    about: str
    """Description of what it runs, for messages."""
    program: Verified
    limits: Limits
    steps: tuple[Step, ...]
    trail: Trail | None = None
    names: dict[int, str] = dataclasses.field(default_factory=dict)
    """Names of words of the stack, for messages, where the verifier's names say too little."""
    complaint: str | None = None
    """The reason that the script is invalid: the reference backend does not do what the case
    states."""

    @property
    def counts(self) -> bool:
        """True if it needs a backend that counts."""
        return any(isinstance(step, Enter) and step.counting for step in self.steps)

    @property
    def heap(self) -> int:
        """Bytes of heap that it makes usable."""
        states = [
            state
            for step in self.steps
            for state in vars(step).values()
            if isinstance(state, ScriptState)
        ]
        states += self.trail.states if self.trail else ()
        return max((state.heap_capacity for state in states), default=0)

    def obstacle(self, capabilities: Capabilities) -> str | None:
        """The reason that a backend with these capabilities need not follow it, None if it has
        to."""
        if self.counts and not capabilities.fuel:
            return "it does not count instructions"
        if capabilities.heap is not None and self.heap > capabilities.heap:
            return f"it addresses {capabilities.heap} bytes of heap, {self.heap} are needed"
        return None
