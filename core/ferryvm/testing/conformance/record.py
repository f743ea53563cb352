# SPDX-License-Identifier: Apache-2.0
"""Scripts written by execution: actions on the reference backend become steps.

    recorder.start(); recorder.run(fuel=7); recorder.run()   ──>   Script

The expected states are those of the reference backend, so only the program of a case, and
statements about its end, have to be written by hand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ferryvm.backend import Interpreter
from ferryvm.engine.host_call import taken_bytes
from ferryvm.engine.saved import pack_state, unpack_state
from ferryvm.errors import FerryError
from ferryvm.float_environment import in_ours
from ferryvm.isa.type import as_number, to_python
from ferryvm.machine.control import Status
from ferryvm.machine.host import STANDARD
from ferryvm.machine.launch import continue_launch
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine
from ferryvm.program import HostImport
from ferryvm.testing.conformance.prepared import Prepared
from ferryvm.testing.conformance.script import (
    Allocate,
    Enter,
    Expected,
    Flag,
    Grow,
    Host,
    Litter,
    Load,
    Move,
    Put,
    Save,
    Script,
    ScriptState,
    Start,
    Step,
    Trail,
    observe,
)
from ferryvm.testing.conformance.script_object import begin, provide, provision, write_objects
from ferryvm.verify import Verified

PLENTY = 1 << 40
"""More fuel than any case uses."""

LITTER = 0xA5C3_96E1_D2B4_8778
"""A word that occurs in no case, with bits in both halves."""

_LONGEST_WALK = 3000


class CaseError(FerryError):
    """A case breaks its own rules; the message names it."""


@dataclasses.dataclass(frozen=True)
class Task:
    """A program that scripts are written about."""

    about: str
    program: Verified
    limits: Limits
    reference: Interpreter


def stand(program: Verified, limits: Limits, state: ScriptState) -> Machine:
    """A new machine in that state."""
    machine = Machine(program, limits)
    write_state(machine, state)
    return machine


def write_state(machine: Machine, state: ScriptState) -> None:
    """Put a machine into that state, whose heap is no smaller."""
    if state.heap_capacity != machine.memory.heap_capacity:
        machine.memory.grow(state.heap_capacity)
        machine.control.heap_capacity = machine.memory.heap_capacity
    control, memory = machine.control, machine.memory
    control.status, control.trap = state.status, state.trap or 0
    control.pc, control.sp, control.fp, control.hp = state.pc, state.sp, state.fp, state.hp
    memory.statics.cast("B")[:] = state.statics
    memory.stack.cast("B")[: len(state.stack)] = state.stack
    memory.heap[: state.hp] = state.heap
    write_objects(machine, state.objects)


def answer(host: HostImport, arguments: list[int]) -> int | None:
    """The result of a host function that is not a standard one: its arguments' sum and 1."""
    for t in host.signature.results:
        return (sum(arguments) + 1) & t.mask
    return None


_prepared = Prepared()


class Recorder:
    """The reference backend, with a record of its steps."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.program, self.limits = task.program, task.limits
        artifact = _prepared.get(task.reference, task.program)
        assert artifact is not None
        self.artifact = artifact
        self.machines: dict[int, Machine] = {}
        self.steps: list[Step] = []
        self.output = b""
        """Output of standard host functions."""

    def script(self, about: str, trail: Trail | None = None) -> Script:
        """The steps so far as a script."""
        text = f"{self.task.about}, {about}" if about else self.task.about
        return Script(text, self.program, self.limits, tuple(self.steps), trail)

    # --- machines ---------------------------------------------------------------------------

    def start(self, number: int = 0) -> None:
        """A machine at the program's start."""
        self.machines[number] = Machine(self.program, self.limits)
        begin(self.machines[number])
        self.steps.append(Start(number, observe(self.machines[number], False)))

    def put(self, state: ScriptState, number: int = 0) -> None:
        """A machine in that state."""
        self.machines[number] = stand(self.program, self.limits, state)
        self.steps.append(Put(number, state))

    def move(self, state: ScriptState, number: int = 0) -> None:
        """Continue the machine in another backend, up to that state."""
        write_state(self.machines[number], state)
        self.steps.append(Move(number, state))

    def litter(self, number: int = 0) -> None:
        """Fill the words above sp with meaningless values."""
        litter(self.machines[number], LITTER)
        self.steps.append(Litter(number, LITTER))

    def save(self, number: int = 0) -> bytes:
        """The file of a machine."""
        file = pack_state(self.machines[number], None)
        self.steps.append(Save(number, file))
        return file

    def load(self, file: bytes, number: int = 0) -> None:
        """A machine from a file."""
        self.machines[number], _ = unpack_state(file, self.limits, "saved state")
        self.steps.append(Load(number, file, observe(self.machines[number], False)))

    # --- running ----------------------------------------------------------------------------

    @in_ours
    def enter(
        self,
        counting: bool = False,
        fuel: int | None = None,
        number: int = 0,
        flag: Flag = Flag.CLEAR,
        expected: Expected | None = None,
    ) -> Status:
        """Enter once. With `expected` the reference is not run, and the machine does not change."""
        machine = self.machines[number]
        if expected is None:
            if fuel is not None:
                machine.control.fuel = fuel
            machine.control.interrupt = flag is not Flag.CLEAR
            self.artifact.enter(machine, counting)
            while machine.status is Status.LAUNCH and continue_launch(machine) is Status.RUNNING:
                self.artifact.enter(machine, counting)
            expected = observe(machine, counting)
        self.steps.append(Enter(number, counting, fuel, flag, expected))
        return machine.status

    def serve(self, counting: bool, number: int = 0) -> bool:
        """Handle the status; True if the program can continue."""
        machine = self.machines[number]
        control = machine.control
        if machine.status is Status.HOST:
            host = self.program.program.hosts[control.exit_id]
            count = len(host.signature.parameters)
            arguments = machine.memory.stack[control.sp - count : control.sp].tolist()
            result = self._call(machine, host, arguments)
            self.steps.append(Host(number, count, result, counting))
            perform_host(machine, count, result, counting)
            return True
        if machine.status is Status.GROW and machine.grow():
            self.steps.append(Grow(number, machine.control.heap_capacity))
            return True
        if machine.status is Status.ALLOCATE and machine.objects is not None:
            provided = provision(machine)
            if provided is not None:
                self.steps.append(Allocate(number, *provided))
                provide(machine.objects, machine, *provided)
                return True
        return False

    def _call(self, machine: Machine, host: HostImport, arguments: list[int]) -> int | None:
        if host.name not in STANDARD:
            return answer(host, arguments)

        def write(text: bytes) -> None:
            self.output += text

        if STANDARD[host.name].takes_bytes:
            content = taken_bytes(machine, STANDARD[host.name])
            STANDARD[host.name].function(write, *content)
            return None
        types = host.signature.parameters
        values = (to_python(as_number(t), bits) for t, bits in zip(types, arguments, strict=True))
        STANDARD[host.name].function(write, *values)  # none has a result
        return None

    def run(self, fuel: int | None = None, counting: bool | None = None, number: int = 0) -> Status:
        """Run, with all statuses handled, until the program ends or its fuel does."""
        counts = fuel is not None if counting is None else counting
        status = self.enter(counts, fuel, number)
        while self.serve(counts, number):
            status = self.enter(counts, None, number)
        return status


def litter(machine: Machine, word: int) -> None:
    """Fill the stack above sp."""
    above = machine.memory.stack[machine.control.sp :].cast("B")
    above[:] = word.to_bytes(8, "little") * (len(above) // 8)


def perform_host(machine: Machine, arguments: int, result: int | None, counting: bool) -> None:
    """Perform a host call on a machine, as an engine does."""
    control = machine.control
    control.sp -= arguments
    if result is not None:
        machine.memory.stack[control.sp] = result
        control.sp += 1
    control.pc += 1
    if counting:
        control.fuel -= 1


@dataclasses.dataclass(frozen=True)
class Walk:
    """A program's execution from its start to its end, one instruction at a time."""

    states: tuple[ScriptState, ...]
    """After 0, 1, 2, ... completed instructions, with status RUNNING; the last has its end's."""
    total: int
    """Instructions completed; the one at which it ends is not."""
    is_served: bool
    """True if there is a host call, a growth or an allocation that leaves on the way."""
    period: int
    """As in a trail."""

    @property
    def trail(self) -> Trail:
        """The states as a trail."""
        return Trail(self.states, self.period)

    def first_visits(self) -> Iterator[tuple[int, ScriptState]]:
        """For each reached pc, the number of instructions up to it and the state there."""
        seen = set()
        for completed, state in enumerate(self.states):
            if state.pc not in seen:
                seen.add(state.pc)
                yield completed, state


def walk(task: Task) -> Walk:
    """Run a program to its end, or until a state repeats. Raises CaseError if it is long."""
    recorder = Recorder(task)
    recorder.start()
    machine = recorder.machines[0]
    states: dict[ScriptState, int] = {}
    is_served = False
    while True:
        state = dataclasses.replace(
            observe(machine, False),
            status=Status.RUNNING,
            exit_id=None,
            wanted=None,
            wanted_type=None,
        )
        if state in states:
            return Walk(tuple(states), len(states), is_served, len(states) - states[state])
        if len(states) == _LONGEST_WALK:
            raise CaseError(f"{task.about}: takes more than {_LONGEST_WALK} instructions")
        states[state] = len(states)
        status = recorder.enter(counting=True, fuel=1)
        while machine.control.fuel == 1 and recorder.serve(True):
            is_served = True
            if machine.control.fuel == 1:  # there is memory now: the allocation is still to be made
                status = recorder.enter(counting=True)
        if status not in (Status.FUEL, Status.HOST):
            *before, _ = states
            return Walk((*before, observe(machine, False)), len(before), is_served, 0)
