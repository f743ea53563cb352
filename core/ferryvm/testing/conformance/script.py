# SPDX-License-Identifier: Apache-2.0
"""Scripts: actions on a backend, step by step, and the expected states.

A script uses the contract itself, below the engine: machines, `enter`, and the engine's actions
between two entries. So a runner in any language can follow one if it can read a file and call
`enter`; export.py writes them for that. Every expectation is a whole state, compared bit for bit.
"""

from __future__ import annotations

import dataclasses
import enum

from ferryvm.backend import Capabilities
from ferryvm.isa import Trap
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.testing.conformance.script_object import ScriptObjects, observe_objects
from ferryvm.verify import Verified


@dataclasses.dataclass(frozen=True)
class ScriptState:
    """A stopped machine. Fields that a status leaves open are None."""

    status: Status
    trap: Trap | None
    """With TRAP."""
    exit_id: int | None
    """With HOST."""
    wanted: int | None
    """With GROW and ALLOCATE."""
    wanted_type: int | None
    """With ALLOCATE."""
    fuel: int | None
    """None if it is not counted."""
    pc: int
    sp: int
    fp: int
    hp: int
    heap_capacity: int
    statics: bytes
    stack: bytes
    """Words below sp."""
    heap: bytes
    """Bytes below hp; the bytes from there to the capacity are zero."""
    objects: ScriptObjects | None = None
    """None for a program without references."""


def observe(machine: Machine, counting: bool) -> ScriptState:
    """The state that a machine is in."""
    control, memory = machine.control, machine.memory
    status = machine.status
    return ScriptState(
        status,
        Trap(control.trap) if status is Status.TRAP else None,
        control.exit_id if status is Status.HOST else None,
        control.wanted if status in (Status.GROW, Status.ALLOCATE) else None,
        control.wanted_type if status is Status.ALLOCATE else None,
        control.fuel if counting else None,
        control.pc,
        control.sp,
        control.fp,
        control.hp,
        control.heap_capacity,
        memory.statics.tobytes(),
        memory.stack[: control.sp].tobytes(),
        memory.heap[: control.hp].tobytes(),
        observe_objects(machine),
    )


class Flag(enum.Enum):
    """The interrupt flag of an entry."""

    CLEAR = "clear"
    SET = "set"
    """It is set before the entry."""
    LATER = "later"
    """Another thread sets it when the backend has been running for a moment."""


class TrailPosition(enum.Enum):
    """The state of the script's trail in which an entry must end."""

    SOMEWHERE = "somewhere"
    """Any of them, with status INTERRUPTED. If it counts, the one that its fuel determines."""
    LAST = "last"
    """The last one."""


Expected = ScriptState | TrailPosition | int
"""A state; an index on the trail; or that many instructions further on the trail, with FUEL."""


@dataclasses.dataclass(frozen=True)
class Start:
    """Create the machine of that number again, at the program's start."""

    machine: int
    expected: ScriptState


@dataclasses.dataclass(frozen=True)
class Put:
    """Put a new machine into a state."""

    machine: int
    state: ScriptState


@dataclasses.dataclass(frozen=True)
class Move:
    """Put the same machine into a later state, as if it had moved to another backend."""

    machine: int
    state: ScriptState


@dataclasses.dataclass(frozen=True)
class Litter:
    """Fill all of the stack above sp with a word: its content is undefined."""

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
    """Perform the host call for which the machine left, as an engine does."""

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
class Allocate:
    """Make the bytes of the object space below `object_end` usable, and prepare elements."""

    machine: int
    object_end: int
    elements: int
    """Bytes of elements outside of the space; 0 for none."""


@dataclasses.dataclass(frozen=True)
class Save:
    """The saved machine must equal that file, byte for byte."""

    machine: int
    file: bytes
    """The file's instruction count is that of a run without counting."""


@dataclasses.dataclass(frozen=True)
class Load:
    """Create the machine again from a saved state."""

    machine: int
    file: bytes
    expected: ScriptState


Step = Start | Put | Move | Litter | Enter | Host | Grow | Allocate | Save | Load


@dataclasses.dataclass(frozen=True)
class Trail:
    """The states of a program after 0, 1, 2, ... instructions, up to its end or its repetition."""

    states: tuple[ScriptState, ...]
    period: int
    """The last so many states repeat forever; 0: the last one is the end."""

    def index(self, completed: int) -> int:
        """Index of the state after so many instructions, the last one past the end."""
        past = completed - len(self.states)
        if past < 0:
            return completed
        return len(self.states) - self.period + past % self.period if self.period else -1


@dataclasses.dataclass(frozen=True)
class Script:
    """One program and the actions on it."""

    about: str
    """A description for messages."""
    program: Verified
    limits: Limits
    steps: tuple[Step, ...]
    trail: Trail | None = None
    names: dict[int, str] = dataclasses.field(default_factory=dict)
    """Names of words of the stack, for messages, if the verifier's names do not suffice."""
    complaint: str | None = None
    """The reason that the script is invalid: the reference backend violates the statements of the
    case."""

    @property
    def counts(self) -> bool:
        """True if it requires a backend that counts."""
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
        """The reason that a backend with these capabilities need not follow it, None if it must."""
        if self.counts and not capabilities.fuel:
            return "it does not count instructions"
        if capabilities.heap is not None and self.heap > capabilities.heap:
            return f"it addresses {capabilities.heap} bytes of heap, {self.heap} are needed"
        return None
