# SPDX-License-Identifier: Apache-2.0
"""A run of a program for comparison, which can be moved, copied and inspected at any instruction.

A trial is like an execution, with two differences: a trap ends it instead of raising, and its
fuel is counted from the program's start, over all runs.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping

from ferryvm.backend import (
    CompilationError,
    DependenceError,
    Forcing,
    MalformedError,
    PreparationError,
    RefusalError,
)
from ferryvm.engine import Execution, ProgramInterrupted, TrapError
from ferryvm.engine.host_tape import ReplayError
from ferryvm.errors import FerryError
from ferryvm.failure import class_name, described, one_line, text_of
from ferryvm.float_environment import CONTROL
from ferryvm.machine.active_item import innermost
from ferryvm.machine.control import Status
from ferryvm.machine.difference import Difference
from ferryvm.machine.host import HostError
from ferryvm.machine.launch import suspend
from ferryvm.machine.memory import AddressSpaceError
from ferryvm.testing.environment import STICKY, control_word, environment
from ferryvm.testing.held import HeldObject
from ferryvm.testing.state import StoppedState
from ferryvm.testing.watchdog import PATIENCE, watched

MOST_INSTRUCTIONS = 50_000_000
"""Fuel of a trial: a program that runs longer is compared there."""

IN_PREPARE = "in prepare: "
"""Beginning of the text of a failure before the program began."""

IN_COMPILER = "in a compiler: "
"""The same for an exception of a compiler that is not a refusal."""

MALFORMED = "malformed IR: "
"""The same where a pass left IR that breaks a rule."""


def failing(failure: str) -> str | None:
    """The failure of a backend that made no code of the program, in the words that failures with
    one cause have in common; None for other failures, which have an instruction to blame."""
    if failure.startswith(IN_PREPARE):
        return "failure in prepare"
    if failure.startswith(IN_COMPILER):
        raised = re.search(r"it raised (\w+)(?:.*( \(\S+ in \S+\)))?", failure)
        return IN_COMPILER + (f"{raised[1]}{raised[2] or ''}" if raised else "it failed")
    if failure.startswith(MALFORMED):
        rule = failure.rpartition(": ")[2]
        return MALFORMED + re.sub(r"\d+", "N", rule)
    return None


class Trial:
    """A run of a program, with its output."""

    def __init__(self, execution: Execution, most: int = MOST_INSTRUCTIONS) -> None:
        """`most`: instructions that it may complete in all, from the execution's present state."""
        self.execution = execution
        self.output: list[bytes] = []
        execution.output = self.output.append
        self.most = self.remaining = most
        """Fuel of the whole trial, and the remaining fuel."""
        self.is_counted = True
        self.forcing: Mapping[str, frozenset[Forcing]] = {}
        """Behaviour that backends are forced to, by name."""
        self.start: Trial | None = None
        """The state that `again` begins with; None for the start of the program."""
        self.raised: str | None = None
        """The exception of a host function that ended it."""
        self.other_call: Difference | None = None
        """The first host call that is not the one in the log."""
        self.environment = CONTROL
        """Control word of the floating-point environment that the thread has around a run."""
        self._held: HeldObject | None = None
        self.seconds = 0.0
        """Time that backends ran, host calls included."""

    def again(self) -> Trial:
        """The same program at its start, with shared artifacts of the backends."""
        if self.start is not None:
            return self.start.again_from_here()
        trial = Trial(self.execution.again(), self.most)
        trial.forcing = self.forcing
        return trial

    def again_from_here(self) -> Trial:
        """A copy whose `again` restores the present state of this one."""
        trial = self.fork()
        trial.start = self
        return trial

    def fork(self) -> Trial:
        """An independent copy in the same state."""
        if self._held is not None:
            self._held.release()
        trial = Trial(self.execution.fork(), self.most)
        trial.output += self.output
        trial.remaining, trial.is_counted = self.remaining, self.is_counted
        trial.forcing, trial.seconds = self.forcing, self.seconds
        trial.raised, trial.other_call = self.raised, self.other_call
        return trial

    @property
    def instructions(self) -> int:
        """Instructions completed since the start, in runs that counted."""
        return self.most - self.remaining

    @property
    def status(self) -> Status:
        """Its status: RUNNING before the first run."""
        return self.execution.machine.status

    @property
    def pc(self) -> int:
        """The pc of its next instruction."""
        return int(self.execution.machine.control.pc)

    @property
    def has_ended(self) -> bool:
        """True if it halted, trapped, or used up its fuel: it cannot continue."""
        return self.is_over or not self.remaining

    @property
    def is_over(self) -> bool:
        """True if the program halted or trapped, or a host function raised an uncaught
        exception."""
        return self.raised is not None or self.status in (Status.HALT, Status.TRAP)

    @property
    def calls(self) -> int:
        """Host calls so far; 0 where they are not in a log."""
        return self.execution.tape.position if self.execution.tape else 0

    def collect(self) -> None:
        """Collect the program's objects, now and at each allocation from now on, and hold one of
        them as Python does. Raises ValueError where a faulty backend has damaged them, or where the
        collection changes what is held."""
        objects = self.execution.machine.objects
        if objects is None:
            return
        self._held = self._held or HeldObject(self.execution.machine)
        objects.force()
        try:
            self._held.collect(objects)
        except IndexError as error:
            raise ValueError(f"the objects of the program are damaged: {error}") from None

    def suspend(self) -> None:
        """Suspend the item of a launch that is running, if there is one, and room for it: the next
        run resumes it. Raises ValueError where a faulty backend has damaged the state."""
        machine = self.execution.machine
        if machine.objects is None:
            return
        try:
            launch = innermost(machine)
            if launch is not None:
                with contextlib.suppress(AddressSpaceError):
                    suspend(machine, launch)
        except IndexError as error:
            raise ValueError(f"the frames of the program are damaged: {error}") from None

    def end_here(self) -> None:
        """Make the present state its end: trials that continue from its start end there, too."""
        self.most, self.remaining = self.instructions, 0

    def run(self, backend: str, fuel: int = MOST_INSTRUCTIONS) -> bool:
        """Continue for at most `fuel` instructions; True if the program can still continue.

        Raises RefusalError if the backend does not accept the program or cannot count.
        """
        fuel = min(fuel, self.remaining)
        status = self._run(backend, fuel)
        self.remaining -= fuel - self.execution.machine.control.fuel
        return status is Status.FUEL and self.remaining > 0

    def run_uncounted(self, backend: str) -> None:
        """Go on to the end, which the program is known to have, without counting."""
        self._run(backend, None)
        self.is_counted = False

    def _run(self, backend: str, fuel: int | None) -> Status:
        forcing = self.forcing.get(backend, frozenset())
        if self.environment != CONTROL:
            return self._run_in_environment(backend, fuel)
        try:
            return self.execution.run(fuel, backend=backend, forcing=forcing).status
        except TrapError:
            return Status.TRAP
        except ReplayError as error:
            self.other_call = Difference(
                f"host call {error.number + 1}", error.expected, error.found
            )
            raise
        except Exception as error:
            machine, tape = self.execution.machine, self.execution.tape
            if tape is not None and tape.raised is error:
                self.raised = f"{class_name(type(error))}: {text_of(error)}"
                return Status.HOST
            is_host = self.execution.machine.control.status == Status.HOST
            if not is_host or isinstance(error, FerryError):
                raise
            name = machine.program.hosts[machine.control.exit_id].name
            raise HostError(f"host function {name} raised {described(error)}") from error
        finally:
            self.seconds += self.execution.statistics.seconds.run

    def _run_in_environment(self, backend: str, fuel: int | None) -> Status:
        """As `_run`. Raises AssertionError where the caller's environment is another one after
        it."""
        word, self.environment = self.environment, CONTROL
        try:
            with environment(word):
                status = self._run(backend, fuel)
                after = control_word()
        finally:
            self.environment = word
        if (after ^ word) & ~STICKY:
            raise AssertionError(
                f"it left the floating-point environment {after:#x}, the caller's was {word:#x}"
            )
        return status

    def attempt(
        self, backend: str, fuel: int | None = MOST_INSTRUCTIONS, seconds: float = PATIENCE
    ) -> str | None:
        """Continue with a backend that may do anything; the failure, or None.

        `fuel`: None to continue to the end without counting. A backend fails if it raises, if it
        claims that fuel ran out and it did not, or if it has to be stopped after that many seconds.
        Raises RefusalError if it does not accept the program.
        """
        with watched(self.execution.machine.control, seconds) as watch:
            try:
                if fuel is None:
                    self.run_uncounted(backend)
                else:
                    self.run(backend, fuel)
            except RefusalError:
                raise
            except ProgramInterrupted:
                if watch.has_barked:
                    return f"it was still running after {seconds:g} s"
                if self.execution.machine.control.interrupt:
                    raise
                return "it left with INTERRUPTED, and nobody had interrupted it"
            except PreparationError as error:
                return IN_PREPARE + error.what
            except CompilationError as error:
                text = one_line(str(error))
                if isinstance(error, MalformedError):
                    return MALFORMED + text.replace(MALFORMED, "", 1)
                return IN_COMPILER + text
            except DependenceError as error:
                return str(error)
            except Exception as error:  # noqa: BLE001 - a faulty backend may raise anything
                return described(error)
        control = self.execution.machine.control
        if control.status not in list(Status):
            return f"it left with status {control.status}, which there is not"
        if fuel is not None and control.status == Status.FUEL and control.fuel:
            return f"it left with FUEL and {control.fuel} fuel"
        return None

    def state(self) -> StoppedState:
        """The present values of everything that is compared.

        Raises ValueError if a faulty backend left an invalid state: an unknown status or trap, a
        stack or heap that is larger than the memory.
        """
        control, memory = self.execution.machine.control, self.execution.machine.memory
        if control.sp > memory.stack_words or control.hp > memory.heap_capacity:
            sizes = f"{memory.stack_words} words and {memory.heap_capacity} bytes"
            raise ValueError(f"sp {control.sp} or hp {control.hp} is past the memory of {sizes}")
        fuel = self.remaining if self.is_counted else None
        return StoppedState(self.execution.machine.snapshot(), fuel, b"".join(self.output))
