# SPDX-License-Identifier: Apache-2.0
"""Execution of a script on a backend, up to the first violation."""

from __future__ import annotations

import dataclasses
import threading
import time

import numpy as np

from ferryvm.backend import Artifact, RefusalError
from ferryvm.engine.exit_check import ExitChecker
from ferryvm.engine.saved import pack_state, unpack_state
from ferryvm.float_environment import in_ours, ours
from ferryvm.isa import INSTRUCTIONS, Flow, Trap
from ferryvm.machine.control import REGISTER_BYTES, ControlBlock, Status
from ferryvm.machine.launch import continue_launch
from ferryvm.machine.state import Machine
from ferryvm.machine.unwind import unwind
from ferryvm.testing.conformance.exception import describe, raise_if_pressed
from ferryvm.testing.conformance.fault import Mismatch, compare
from ferryvm.testing.conformance.record import litter, perform_host, stand, write_state
from ferryvm.testing.conformance.script import (
    Allocate,
    Enter,
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
    TrailPosition,
    observe,
)
from ferryvm.testing.conformance.script_object import begin, provide
from ferryvm.testing.watchdog import PATIENCE, watched

_THROWING = frozenset(row.opcode for row in INSTRUCTIONS if row.flow is Flow.THROW)

_MOMENT = 0.02
"""Seconds that a backend runs before another thread sets the flag."""

_MAY_CHANGE = {
    *("interrupt", "wanted", "code", "counters", "entries", "originals", "scratch", "launches"),
    *("object_top", "prepared", "prepared_bytes", "wanted_type"),
}
"""Fields of the control block's second half that may change during an entry. The flag is looked at
apart, since others set it meanwhile."""


@in_ours
def perform(script: Script, artifact: Artifact, patience: float = PATIENCE) -> Mismatch | None:
    """The first violation by a backend that follows the script, None if there is none.

    Exceptions of the backend are violations, too, and so is an entry that takes longer than
    `patience` seconds; an entry that then ignores the flag can be abandoned only if its program is
    endless. Raises RefusalError if a compiler refuses the program.
    """
    performer = _Performer(script, artifact, patience)
    for number, step in enumerate(script.steps):
        fault = performer.do(step)
        if fault is not None:
            return dataclasses.replace(fault, step=number)
    return None


class _Performer:
    def __init__(self, script: Script, artifact: Artifact, patience: float) -> None:
        self.script, self.artifact, self.patience = script, artifact, patience
        self.machines: dict[int, Machine] = {}
        self.at: dict[int, int] = {}
        """The index of a machine on the trail."""

    def do(self, step: Step) -> Mismatch | None:
        script = self.script
        match step:
            case Start(number, expected):
                machine = self.machines[number] = Machine(script.program, script.limits)
                begin(machine)
                self.at[number] = 0
                return compare(script, expected, observe(machine, False))
            case Put(number, state):
                self.machines[number] = stand(script.program, script.limits, state)
            case Move(number, state):
                write_state(self.machines[number], state)
            case Litter(number, word):
                litter(self.machines[number], word)
            case Host(number, arguments, result, counting):
                perform_host(self.machines[number], arguments, result, counting)
            case Grow(number):
                self.machines[number].grow()
            case Allocate(number, object_end, elements):
                machine = self.machines[number]
                assert machine.objects is not None, "its program has references"
                provide(machine.objects, machine, object_end, elements)
            case Save(number, file):
                if pack_state(self.machines[number], None) != file:
                    return Mismatch("saved state", "the reference's file", "another one")
            case Load(number, file, expected):
                self.machines[number], _ = unpack_state(file, script.limits, "saved state")
                return compare(script, expected, observe(self.machines[number], False))
            case Enter():
                return self._enter(step)
        return None

    def _enter(self, step: Enter) -> Mismatch | None:
        machine = self.machines[step.machine]
        control = machine.control
        if step.fuel is not None:
            control.fuel = step.fuel
        before = control.fuel
        bound = _bound(control)
        control.interrupt = step.flag is Flag.SET
        late = Mismatch("end", f"leaves within {self.patience:g} s", "it does not")
        try:
            if self.script.trail and self.script.trail.period:
                status = self._enter_endless(machine, step, bound)
            else:
                with watched(control, self.patience) as watch:
                    status = self._run(machine, step.counting, bound)
                if watch.has_barked:
                    return late
        except _GoneError:
            return late
        except RefusalError:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a backend raises, it has failed
            raise_if_pressed(error)
            return Mismatch("end", "a status", describe(error))
        if not isinstance(status, Status):
            return Mismatch("status returned", "a Status", repr(status))
        if status != control.status:
            return Mismatch("status returned", _status(control.status), status.name)
        if control.interrupt != (step.flag is not Flag.CLEAR):
            was = "0" if step.flag is Flag.CLEAR else "1, which only the engine clears"
            return Mismatch("control.interrupt", was, str(control.interrupt))
        if control.status not in _STATUSES:
            return Mismatch("status", "one of the contract", str(control.status))
        if control.status == Status.TRAP and control.trap not in _TRAPS:
            return Mismatch("trap", "one of the contract", str(control.trap))
        for name, value in _bound(control).items():
            if value != bound[name]:
                return Mismatch(f"control.{name}", f"{bound[name]:#x}", f"{value:#x}")
        try:
            found = observe(machine, step.counting)
        except ValueError as error:
            return Mismatch("objects", "those of the program", str(error))
        fault = self._judge(step, found, before - control.fuel if step.counting else None)
        past = machine.memory.heap[found.hp : found.heap_capacity]
        if fault is None and np.frombuffer(past, np.uint8).any():
            return Mismatch("heap past hp", "zeros", "other bytes")
        return fault

    def _run(self, machine: Machine, counting: bool, bound: dict[str, int]) -> Status:
        """Enter until it leaves for a reason other than a search for a handler, or the next piece
        of a launch, for which the engine may change `bound`."""
        opcodes, checker = machine.program.code.opcodes, ExitChecker(machine)
        while True:
            status = self.artifact.enter(machine, counting)
            control = machine.control
            if control.status != status:
                return status
            if status is Status.THROW and opcodes[control.pc] in _THROWING:
                onward = unwind(machine, counting)
            elif status is Status.LAUNCH and checker.fault(status, counting) is None:
                onward = continue_launch(machine)
                bound.update(_bound(control))
            else:
                return status
            if onward is not Status.RUNNING:
                return machine.status

    def _enter_endless(self, machine: Machine, step: Enter, bound: dict[str, int]) -> Status:
        """Enter in a thread of its own, so that a backend that hangs is only a violation."""
        answers: list[Status | BaseException] = []

        def work() -> None:
            try:
                with ours():
                    answers.append(self._run(machine, step.counting, bound))
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                answers.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        if step.flag is Flag.LATER:
            time.sleep(_MOMENT)
            machine.control.interrupt = 1
        thread.join(self.patience)
        if not answers:
            raise _GoneError
        if isinstance(answers[0], BaseException):
            raise answers[0]
        return answers[0]

    def _judge(self, step: Enter, found: ScriptState, completed: int | None) -> Mismatch | None:
        expected, trail = step.expected, self.script.trail
        if isinstance(expected, ScriptState):
            return compare(self.script, expected, found)
        assert trail is not None, "a place is on a trail"
        number = step.machine
        if expected is TrailPosition.LAST:
            return compare(self.script, dataclasses.replace(trail.states[-1], fuel=None), found)
        if isinstance(expected, int):
            index = trail.index(self.at[number] + expected)
            self.at[number] = index
            wanted = dataclasses.replace(trail.states[index], status=Status.FUEL, fuel=0)
            return compare(self.script, wanted, found)
        return self._somewhere(number, trail, found, completed)

    def _somewhere(
        self, number: int, trail: Trail, found: ScriptState, completed: int | None
    ) -> Mismatch | None:
        if completed is not None:
            index = trail.index(self.at[number] + completed)
            state = dataclasses.replace(
                trail.states[index], status=Status.INTERRUPTED, fuel=found.fuel
            )
            self.at[number] = index
            return compare(self.script, state, found)
        if found == trail.states[-1] and not trail.period:
            return None  # it ended before the first poll of the flag
        if found.status is not Status.INTERRUPTED:
            return Mismatch("status", "INTERRUPTED", found.status.name)
        as_on_trail = dataclasses.replace(found, status=Status.RUNNING)
        end = dataclasses.replace(trail.states[-1], status=Status.RUNNING, trap=None)
        for index, state in enumerate((*trail.states[:-1], end)):
            if state == as_on_trail:
                self.at[number] = index
                return None
        near = [state for state in trail.states if state.pc == found.pc]
        if not near:
            return Mismatch("pc", "an instruction that it gets to", str(found.pc))
        state = dataclasses.replace(near[0], status=Status.INTERRUPTED, trap=None)
        return compare(self.script, state, found)


class _GoneError(Exception):
    """A backend does not return."""


def _status(value: int) -> str:
    return Status(value).name if value in list(Status) else str(value)


_STATUSES, _TRAPS = frozenset(map(int, Status)), frozenset(map(int, Trap))

_BOUND = (
    "abi_version",
    "instructions",
    *(
        field[0]
        for field in ControlBlock._fields_
        if getattr(ControlBlock, field[0]).offset >= REGISTER_BYTES and field[0] not in _MAY_CHANGE
    ),
)


def _bound(control: ControlBlock) -> dict[str, int]:
    """Fields that no entry may change."""
    return {name: getattr(control, name) for name in _BOUND}
