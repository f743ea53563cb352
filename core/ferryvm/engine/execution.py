# SPDX-License-Identifier: Apache-2.0
"""Running a program: the loop that enters a backend and does what its status asks for.

start ──> enter ──> HALT          ──> result
            ▲  ├──> HOST          perform the call ──┐
            │  ├──> GROW          grow the heap ─────┤   (or trap)
            └──┼─────────────────────────────────────┘
               ├──> TRAP          ──> TrapError
               ├──> FUEL          ──> result, resumable
               └──> INTERRUPTED   ──> ProgramInterrupted, resumable
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from ferryvm.backend import (
    Artifact,
    BackendError,
    Forcing,
    Interpreter,
    PreparationError,
    RefusalError,
)
from ferryvm.engine.exit_check import ExitChecker
from ferryvm.engine.interrupt import interruptible
from ferryvm.engine.runnable import mixed, runnable
from ferryvm.errors import FerryError, Position
from ferryvm.failure import described, is_ctrl_c, is_out_of_memory, kind_of, shown, text_of
from ferryvm.float_environment import callers, in_ours, set_again
from ferryvm.foreign import ForeignError, contained
from ferryvm.isa import Trap, Type
from ferryvm.isa.type import to_python
from ferryvm.machine.control import UNLIMITED, Status
from ferryvm.machine.host import STANDARD, HostFunction, Output, bind
from ferryvm.machine.host_stack import check_size, floor, with_room
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Frame, Machine
from ferryvm.policy import Policy, default
from ferryvm.program import Program
from ferryvm.registry import Registry
from ferryvm.verify import Verified, verify

_ENDS = (Status.HALT, Status.TRAP, Status.INTERRUPTED, Status.FUEL)
"""Statuses that end a run."""

_NOT_OURS = (Status.RUNNING, Status.LEAVE, Status.GUARD, Status.HOT, Status.SLICED, Status.LOST)
"""Statuses that the engine cannot go on from, whatever the state is."""


class TrapError(FerryError):
    """The program trapped. The execution stays in the state before the trapping instruction."""

    def __init__(self, machine: Machine) -> None:
        self.kind = Trap(machine.control.trap)
        self.pc: int = machine.control.pc
        self.position: Position | None = machine.position
        self.stack: list[Frame] = machine.frames()
        """The calls under way, innermost first, without the middle of a deep stack."""
        super().__init__(_show(machine, f"trap: {self.kind.message}", self.stack))


class ProgramInterrupted(KeyboardInterrupt):
    """The program was interrupted; the execution can go on from where it was."""

    def __init__(self, machine: Machine) -> None:
        self.pc: int = machine.control.pc
        self.position: Position | None = machine.position
        self.stack: list[Frame] = machine.frames()
        """The calls under way, innermost first, without the middle of a deep stack."""
        super().__init__(_show(machine, "interrupted", self.stack))


def _show(machine: Machine, event: str, stack: list[Frame]) -> str:
    """What happened and where, then the calls under way, innermost first."""
    lines = [f"{machine.position or f'pc {machine.control.pc}'}: {event}"]
    for frame in stack:
        if frame.skipped:
            lines.append(f"    ... {frame.skipped} more calls ...")
        lines.append(f"    in {frame}")
        if frame.is_cut:
            lines.append("    ... more calls, not counted ...")
    return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class Seconds:
    """Where the time of a run went, in seconds."""

    load: float
    """Verifying the program and making its memory."""
    prepare: float
    """Bringing it into the backend's form, and waiting for compilers."""
    run: float
    """Running it, host calls included."""
    compile: float = 0.0
    """What compilers took that were done during the run; beside the program, unless it waited."""


@dataclasses.dataclass(frozen=True)
class Statistics:
    """Metrics of a run."""

    backend: str
    """Its name; `mixed` where a policy chose."""
    seconds: Seconds
    instructions: int | None
    """Instructions completed since the program's start; None where nobody counted."""


@dataclasses.dataclass(frozen=True)
class RunResult:
    """What a run came to."""

    status: Status
    """HALT, or FUEL when the fuel ran out before the end."""
    type: Type | None
    bits: int | None
    """The result: the operand on top of the stack at the end; None where there is none."""
    output: str
    """All that the execution wrote so far, in every run; bytes that are not UTF-8 are replaced.
    Empty if the engine was given an output of its own."""
    statistics: Statistics

    @property
    def value(self) -> int | float | None:
        """The result as a Python number, signed for integers."""
        if self.type is None or self.bits is None:
            return None
        return to_python(self.type, self.bits)


class Engine:
    """Runs programs on one backend, under one set of limits."""

    @in_ours
    def __init__(
        self,
        backend: str | None = None,
        *,
        policy: Policy | None = None,
        device: str = "",
        limits: Limits | None = None,
        hosts: Mapping[str, HostFunction] | None = None,
        output: Output | None = None,
        registry: Registry | None = None,
    ) -> None:
        """`backend`: one by name; without one `policy` says which, or the default policy.
        `device`: what the backend of that name compiles for; empty: what it takes by itself.
        `hosts`: host functions offered beside the standard ones; `output`: where programs write,
        collected for the result if None.

        Raises UnknownNameError or BackendError if there is no such usable backend, and FerryError
        for a device that it cannot compile for.
        """
        self.registry = registry or Registry()
        if backend is not None and policy is not None:
            raise FerryError(f"backend {backend!r} and a policy: an engine takes one of them")
        if device and backend is None:
            raise FerryError(f"device {device!r}: a backend has to be named that compiles for it")
        if backend is not None:
            self.backend = with_room(lambda: runnable(self.registry, backend, device))
        else:
            self.backend = with_room(lambda: mixed(self.registry, policy or default()))
        self.limits = limits or Limits()
        self.hosts = {**STANDARD, **(hosts or {})}
        self.output = output

    @in_ours
    def start(self, program: Program | Verified, after: Execution | None = None) -> Execution:
        """A program at its start. Raises VerifyError, AddressSpaceError where the limits ask for
        more than there is, or for host functions as `bind`.

        `after`: an earlier execution whose heap, and whose statics by number, this one goes on
        with; how an interactive session continues.
        """
        if not isinstance(program, Program | Verified):
            kind = type(program).__name__
            raise TypeError(f"a Program expected, found {kind}; ferryvm.compile makes one of text")
        began = time.perf_counter()
        verified = program if isinstance(program, Verified) else verify(program)
        machine = Machine(verified, self.limits)
        if after is not None:
            with after._alone():
                machine.inherit(after.machine)
        return Execution(self, machine, time.perf_counter() - began)

    @in_ours
    def resume(self, path: str | Path) -> Execution:
        """The execution that was saved in a file.

        Raises ImageError for a file that is no state of its program or needs more than the limits;
        for the rest as `start`.
        """
        began = time.perf_counter()
        from ferryvm.engine import saved  # most runs neither save nor resume

        machine, instructions = saved.load(Path(path), self.limits)
        execution = Execution(self, machine, time.perf_counter() - began)
        execution.machine.control.instructions = instructions or 0
        execution._all_counted = instructions is not None
        return execution


class Execution:
    """One program under way; between runs its `machine` can be read, saved or moved."""

    def __init__(self, engine: Engine, machine: Machine, load_seconds: float) -> None:
        self.engine = engine
        self.machine = machine
        self.statistics = Statistics(engine.backend.name, Seconds(load_seconds, 0.0, 0.0), None)
        """Metrics of the last run, also of one that ended in a trap."""
        self._hosts = bind(machine.program.hosts, engine.hosts)
        self._is_standard = [STANDARD.get(one.name) is one for one in self._hosts]
        self._load_seconds = load_seconds
        self._collected: list[bytes] = []
        self.output = engine.output or self._collected.append
        """Where the program writes."""
        self._prepared: dict[tuple[str, frozenset[Forcing]], tuple[Interpreter, Artifact]] = {}
        self._last: Artifact | None = None
        """What ran last."""
        self._all_counted = True
        self._left = ExitChecker(machine)
        self._broken = ""
        """What a backend did after which this cannot go on."""
        self._busy = threading.Lock()

    @property
    def instructions(self) -> int | None:
        """Instructions completed since the program's start; None once a run did not count."""
        return self.machine.control.instructions if self._all_counted else None

    def metrics(self) -> Mapping[str, Mapping[str, object]]:
        """What the backends of the last run tell of it themselves, by their names: data that JSON
        can hold. It is counted from when they prepared the program, so also by executions that
        share that with this one (`again`, `fork`). Raises BackendError where one gives none."""
        if self._last is None:
            return {}
        try:
            with contained("asking a backend for its metrics", BackendError):
                found: object = self._last.metrics()
        except ForeignError as error:
            raise BackendError(f"a backend gives no metrics: {error}") from error
        if not isinstance(found, Mapping):
            raise BackendError(f"a backend gives no metrics: it returned {shown(found)}")
        return found

    @in_ours
    def save(self, path: str | Path) -> None:
        """Write the state to a file; any backend can go on from it. Raises ImageError."""
        from ferryvm.engine import saved

        with self._alone():
            saved.save(self.machine, self.instructions, Path(path))

    def again(self) -> Execution:
        """The same program at its start, in memory of its own; backends need not prepare it again.

        The copy writes where the engine says. Raises AddressSpaceError.
        """
        return self._like(Machine(self.machine.verified, self.machine.memory.limits))

    def fork(self) -> Execution:
        """A copy of this execution as it stands; otherwise as `again`."""
        with self._alone():
            copy = self._like(self.machine.copy())
            copy._all_counted = self._all_counted
            copy._collected += self._collected
            return copy

    def _like(self, machine: Machine) -> Execution:
        copy = Execution(self.engine, machine, 0.0)
        copy._prepared = self._prepared
        return copy

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads, and host functions of this run, from entering meanwhile."""
        if not self._busy.acquire(blocking=False):
            raise FerryError("this execution is running; it cannot be run or saved meanwhile")
        try:
            if self._broken:
                raise BackendError(f"this execution cannot go on: {self._broken}")
            yield
        finally:
            self._busy.release()

    @in_ours
    def run(
        self,
        fuel: int | None = None,
        count: bool = False,
        backend: str | None = None,
        forcing: frozenset[Forcing] = frozenset(),
    ) -> RunResult:
        """Go on until the program halts or `fuel` more instructions have completed.

        `count`: count instructions even without a limit; `backend`: another one than the
        engine's; `forcing`: what the backend is to do everywhere, for tests. A program that has
        ended is not run again: the same result or TrapError comes once more. Raises TrapError,
        ProgramInterrupted (also where fuel runs out before the interrupt is seen), BackendError,
        what a host function raises, and on Ctrl-C KeyboardInterrupt where the program ended before
        it was seen; after each of them the execution stands at an instruction and can be looked at.
        """
        if fuel is not None and not 0 <= fuel <= UNLIMITED:
            raise FerryError(f"fuel is {fuel}; 0 to {UNLIMITED} is allowed")
        counting = count or fuel is not None
        with self._alone():
            check_size()
            self.machine.control.host_stack = floor()
            self.machine.control.interrupt = 0  # from here on, whoever sets it means this run
            began = time.perf_counter()
            chosen, artifact = self._prepare(backend, forcing)
            self._last = artifact
            prepare_seconds = time.perf_counter() - began
            if counting and not chosen.capabilities.fuel:
                raise RefusalError(f"backend {chosen.name!r} cannot count instructions")
            self.machine.control.fuel = UNLIMITED if fuel is None else fuel
            status = self._measure(chosen, artifact, counting, prepare_seconds)
            if status is Status.FUEL and self.machine.control.interrupt:
                # A short run meets no place that polls; the next one would clear the flag unseen.
                status = self.machine.control.status = Status.INTERRUPTED
            return self._result(status)

    def _prepare(
        self, name: str | None, forcing: frozenset[Forcing]
    ) -> tuple[Interpreter, Artifact]:
        """The backend and the program as it prepared it, kept for later runs."""
        key = (name or self.engine.backend.name, forcing)
        if key not in self._prepared:
            backend = runnable(self.engine.registry, name) if name else self.engine.backend
            program = self.machine.verified
            try:
                with contained(f"backend {backend.name!r} looks at the program", BackendError):
                    reason = backend.accepts(program)
            except ForeignError as error:
                raise PreparationError(backend.name, str(error)) from error
            if reason is not None:
                from ferryvm.engine.hook import checked_reason  # few are refused

                why = checked_reason(reason, f"backend {backend.name!r}: its accepts")
                raise RefusalError(f"backend {backend.name!r} refuses the program: {why}")
            missing = sorted(kind.value for kind in forcing - backend.capabilities.forcing)
            if missing:
                message = f"backend {backend.name!r} has nothing to force: {', '.join(missing)}"
                raise RefusalError(message)
            try:
                with contained(f"backend {backend.name!r} prepares the program", BackendError):
                    artifact: object = with_room(
                        lambda: (
                            backend.prepare_forced(program, forcing)
                            if forcing
                            else backend.prepare(program)
                        )
                    )
            except BackendError as error:
                raise RefusalError(text_of(error)) from error
            except ForeignError as error:
                raise PreparationError(backend.name, str(error)) from error
            if not isinstance(artifact, Artifact):
                what = f"it returned {kind_of(artifact)}, not an Artifact"
                raise PreparationError(backend.name, what)
            self._prepared[key] = backend, artifact
            set_again()
        return self._prepared[key]

    def _measure(
        self, backend: Interpreter, artifact: Artifact, counting: bool, prepare_seconds: float
    ) -> Status:
        """Drive the program and set `statistics`, however that ends."""
        control = self.machine.control
        budget = control.fuel
        waited, compiled = _taken(backend, artifact)
        began = time.perf_counter()
        try:
            with interruptible(control):
                return self._drive(backend, artifact, counting)
        finally:
            run_seconds = time.perf_counter() - began
            if counting:
                control.instructions += budget - control.fuel
            else:
                self._all_counted = False
            waited_by_now, compiled_by_now = _taken(backend, artifact)
            waited = waited_by_now - waited
            seconds = Seconds(
                self._load_seconds,
                prepare_seconds + waited,
                run_seconds - waited,
                compiled_by_now - compiled,
            )
            self.statistics = Statistics(backend.name, seconds, self.instructions)
            self.engine.registry.plugins.settle()

    def _result(self, status: Status) -> RunResult:
        if status is Status.TRAP:
            raise TrapError(self.machine)
        if status is Status.INTERRUPTED:
            raise ProgramInterrupted(self.machine)
        result = self.machine.result() if status is Status.HALT else None
        return RunResult(
            status,
            result[0] if result else None,
            result[1] if result else None,
            b"".join(self._collected).decode(errors="replace"),
            self.statistics,
        )

    def _drive(self, backend: Interpreter, artifact: Artifact, counting: bool) -> Status:
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
            fault = self._left.fault(status, counting)
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
        self._broken = f"backend {backend.name!r} {what}"
        return BackendError(f"{self._broken}; the program cannot go on")

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


def _taken(backend: Interpreter, artifact: Artifact) -> tuple[float, float]:
    """The seconds that programs have waited for compilers, and that compilers have taken."""
    try:
        found = artifact.waited, artifact.compiled
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        what = f"raised {described(error)}"
    else:
        if all(isinstance(each, int | float) for each in found):
            return found
        what = f"gave {shown(found)}"
    raise BackendError(f"backend {backend.name!r} {what} when it was asked for its times")


def _is_list(output: Output) -> bool:
    """True if what a program writes is collected in a list, and nobody's code is called for it."""
    return getattr(output, "__self__", None).__class__ is list


def _result_bits(function: HostFunction, result: object) -> int | None:
    """What a host function returned, checked against its signature."""
    if not function.signature.results:
        if result is not None:
            raise FerryError(f"host function {function.name} has no result, but returned one")
        return None
    (t,) = function.signature.results
    if not isinstance(result, int):
        kind = type(result).__name__
        raise FerryError(f"host function {function.name} returned {kind}, not the bits of an {t}")
    return result & t.mask
