# SPDX-License-Identifier: Apache-2.0
"""Executions: a program on one backend, run and resumed, saved and copied.

Engine ── start, resume ──> Execution ── run ──> prepare ──> drive ──> RunResult, or an error
                               ▲  │
                               └──┘ after FUEL, an interrupt, a host function that failed
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar

from ferryvm.backend import (
    Artifact,
    BackendError,
    DirectEntry,
    Forcing,
    Interpreter,
    RefusalError,
)
from ferryvm.engine.driver import Driver
from ferryvm.engine.interrupt import BY_SIGNAL, interruptible, settle, watch_until_freed
from ferryvm.engine.possession import Possession
from ferryvm.engine.preparation import collector_of, item_writer_of, prepare, python_caller_of
from ferryvm.engine.result import ProgramInterrupted, RunResult, Seconds, Statistics, trap_raised
from ferryvm.engine.runnable import runnable
from ferryvm.errors import FerryError
from ferryvm.failure import described, is_ctrl_c, is_signals, shown
from ferryvm.float_environment import in_ours, set_again
from ferryvm.foreign import ForeignError, contained
from ferryvm.isa.type import Reference
from ferryvm.machine.control import UNLIMITED, Status
from ferryvm.machine.host import HostFunction, Output, bind
from ferryvm.machine.host_stack import check_size, floor
from ferryvm.machine.memory import Limits
from ferryvm.machine.native import NativeFunction
from ferryvm.machine.python_call import CallForm
from ferryvm.machine.state import Machine
from ferryvm.machine.system import Reader
from ferryvm.registry import Registry
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.engine.call import Calls
    from ferryvm.engine.host_tape import HostTape
    from ferryvm.engine.instance import Instance
    from ferryvm.engine.journal import Placement
    from ferryvm.engine.launching import Launches
    from ferryvm.engine.object_view import Item

_R = TypeVar("_R")

_NOTHING_FORCED = frozenset[Forcing]()


class Settings(Protocol):
    """The parts of `ferryvm.engine.engine.Engine` that executions use, as a protocol, because that
    module imports this one."""

    registry: Registry
    backend: Interpreter
    limits: Limits
    hosts: Mapping[str, HostFunction]
    output: Output | None
    reader: Reader
    arguments: tuple[str, ...]


class Execution:
    """A started program; between runs its `machine` can be read, saved or moved."""

    def __init__(
        self,
        engine: Settings,
        machine: Machine,
        load_seconds: float,
        tape: HostTape | None = None,
        all_counted: bool = True,
    ) -> None:
        """`all_counted`: True if the machine's count has all instructions since the start."""
        self.engine = engine
        self.machine = machine
        self.statistics = Statistics(engine.backend.name, Seconds(load_seconds, 0.0, 0.0), None)
        """Metrics of the last run, also of one that ended in a trap."""
        imports, offered = machine.program.hosts, engine.hosts
        hosts = bind(machine.program, tape.offered(imports, offered) if tape else offered)
        self.tape = tape
        """The position in the log that records or replays host calls."""
        self._natives = {
            number: host.function
            for number, host in enumerate(hosts)
            if isinstance(host.function, NativeFunction) and tape is None
        }
        """The C functions that native code may call, by number of the import; none while calls are
        recorded or replayed."""
        self._natives_bound_for: Artifact | None = None
        self._load_seconds = load_seconds
        self._collected: list[bytes] = []
        self._prepared: dict[tuple[str, frozenset[Forcing]], tuple[Interpreter, Artifact]] = {}
        self._last: Artifact | None = None
        """The artifact that ran last."""
        self._all_counted = all_counted
        self._driver = Driver(machine, hosts, engine.output or self._collected.append, tape)
        self._driver.heap_for = self.make_usable
        self._driver.instance = lambda: self.instance
        self._driver.references = lambda: self.calls.references
        self._driver.reader, self._driver.arguments = engine.reader, engine.arguments
        self.busy = Possession()
        """Held while a thread runs, saves or copies it."""
        self.owner = 0
        """The thread that holds it, for checks of nested calls."""

    @functools.cached_property
    def calls(self) -> Calls:
        """The calls of its exported functions from Python."""
        from ferryvm.engine.call import Calls

        return Calls(self)

    @functools.cached_property
    def instance(self) -> Instance:
        """The instance that host functions get; its functions can be called once the program has
        halted. An execution has one."""
        from ferryvm.engine.instance import Instance

        return Instance(self, self.calls)

    @property
    def output(self) -> Output:
        """The `Output` that the program writes to."""
        return self._driver.output

    @output.setter
    def output(self, output: Output) -> None:
        self._driver.output = output

    @property
    def instructions(self) -> int | None:
        """Instructions completed since the program's start; None once a run did not count."""
        return self.machine.control.instructions if self._all_counted else None

    def metrics(self) -> Mapping[str, Mapping[str, object]]:
        """Metrics of the backends of the last run, by their names: data that JSON can represent.
        They cover the time since the program was prepared, so they include other executions that
        share its artifact (`again`, `fork`). Raises BackendError if a backend fails to report."""
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

    @property
    def placements(self) -> list[Placement]:
        """The sites that got hot in the program as it is now, by the policies that ran it."""
        from ferryvm.engine.mixed import MixedArtifact

        artifacts = [artifact for _, artifact in self._prepared.values()]
        journals = [each.journal for each in artifacts if isinstance(each, MixedArtifact)]
        return [placement for journal in journals for placement in journal.placements]

    @property
    def launches(self) -> Launches | None:
        """The launches of the program as it is now, as code of the engine's backend leaves for
        them; None if there are none, or they are not to be left for."""
        found = self._prepared.get((self.engine.backend.name, _NOTHING_FORCED))
        return None if found is None else getattr(found[1], "ready_launches", None)

    def collections(self) -> dict[str, object] | None:
        """Metrics of the collections of objects so far; None for a program without references.

        `count`; pauses in `seconds` and the `longest`; bytes `copied`, `freed`, and found `live` by
        the last one; `native`, or the `reason` that they run in Python."""
        objects = self.machine.objects
        if objects is None:
            return None
        found = objects.space.metrics
        named = {name: getattr(found, name) for name in found.NAMES}
        return {"native": objects.is_native, "reason": objects.reason or None, **named}

    @in_ours
    def save(self, path: str | Path) -> None:
        """Write the state to a file; any backend can continue from it. Raises ImageError."""
        self.alone(lambda: self.save_to(Path(path)))

    def save_to(self, path: Path) -> None:
        """As `save`, for a caller that holds the execution."""
        from ferryvm.engine import saved

        saved.save(self.machine, self.instructions, path)

    @property
    def collected(self) -> str:
        """The output of the program so far; empty if the engine was given an output."""
        return b"".join(self._collected).decode(errors="replace")

    def extend(self, verified: Verified) -> None:
        """Go on with a program that begins with this one, for a caller that holds the execution
        between runs; see `Machine.extend`. Backends prepare it anew."""
        self.machine.extend(verified)
        self._prepared = {}
        self._natives_bound_for = None

    def make_usable(self, end: int) -> bool:
        """Make `end` bytes of the heap usable; False if a limit forbids it."""
        return self._driver.make_usable(self._running[0], end)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Raise TypeError: Python's `copy` and `pickle` cannot copy a machine."""
        raise TypeError(
            "an execution cannot be copied or pickled by Python: execution.fork() copies it,"
            " execution.save(path) writes it to a file"
        )

    def again(self) -> Execution:
        """The same program at its start, in memory of its own; backends need not prepare it again.

        The copy has the engine's output, replays the same log, and is not recorded. Raises
        AddressSpaceError.
        """
        tape = self.tape.again() if self.tape and self.tape.plays else None
        return self._like(Machine(self.machine.verified, self.machine.memory.limits), tape)

    def fork(self) -> Execution:
        """A copy of this execution in its present state; otherwise as `again`."""
        return self.alone(self._forked)

    def _forked(self) -> Execution:
        tape = self.tape.fork() if self.tape and self.tape.plays else None
        clone = self._like(self.machine.copy(), tape)
        if clone.machine.objects is not None:
            clone.machine.objects.handles.forget()
        clone._all_counted = self._all_counted
        clone._collected += self._collected
        return clone

    def _like(self, machine: Machine, tape: HostTape | None) -> Execution:
        clone = Execution(self.engine, machine, 0.0, tape)
        clone._prepared = self._prepared
        return clone

    def alone(self, action: Callable[[], _R]) -> _R:
        """The result of an action during which other threads, and host functions of this run, are
        excluded. Raises FerryError if it is running, otherwise as `check_usable`."""
        try:
            del self.busy.free
        except AttributeError:
            raise FerryError(
                "this execution is running; it cannot be run or saved meanwhile"
            ) from None
        try:
            self.owner = threading.get_ident()
            self.check_usable()
            return action()
        finally:
            self.owner = 0
            self.busy.free = True

    def check_usable(self) -> None:
        """Raise BackendError if a backend has left the machine in no state of its program."""
        why = self._driver.broken or self.machine.torn
        if why:
            raise BackendError(f"this execution cannot go on: {why}")

    @property
    def entries(self) -> int:
        """Number of times that it has started to run, calls inside host functions included."""
        return self._driver.entries

    @in_ours
    def run(
        self,
        fuel: int | None = None,
        count: bool = False,
        backend: str | None = None,
        forcing: frozenset[Forcing] = frozenset(),
    ) -> RunResult:
        """Continue until the program halts or `fuel` more instructions have completed.

        `count`: count instructions even without a limit; `backend`: another one than the engine's;
        `forcing`: behaviour to force in the backend everywhere, for tests. A program that has ended
        is not run again: the same result or TrapError is repeated. Raises TrapError,
        ProgramInterrupted (also if fuel runs out before the interrupt is noticed), BackendError,
        exceptions of host functions, and on Ctrl-C KeyboardInterrupt if the program ended before it
        was noticed; after each of them the execution stands at an instruction and can be inspected.
        """
        return self.alone(lambda: self._result(self.go(fuel, backend, count, forcing)))

    @in_ours
    def go(
        self,
        fuel: int | None = None,
        backend: str | None = None,
        count: bool = False,
        forcing: frozenset[Forcing] = frozenset(),
    ) -> Status:
        """Continue as `run`, for a caller that holds the execution; the status in which it stopped.
        Raises FerryError for invalid fuel, RefusalError for a backend that cannot count,
        BackendError and the exceptions of host functions."""
        if fuel is not None and not (isinstance(fuel, int) and 0 <= fuel <= UNLIMITED):
            raise FerryError(f"fuel is {shown(fuel)}; 0 to {UNLIMITED} is allowed")
        counting = count or fuel is not None
        check_size()
        self.machine.control.host_stack = floor()
        self.machine.control.interrupt = 0  # from here on the flag concerns this run
        settle(self.machine.control)
        began = time.perf_counter()
        chosen, artifact = self._prepare(backend, forcing)
        self._bind_natives(artifact)
        self._last = artifact
        prepare_seconds = time.perf_counter() - began
        if counting and not chosen.capabilities.fuel:
            raise RefusalError(f"backend {chosen.name!r} cannot count instructions")
        self.machine.control.fuel = UNLIMITED if fuel is None else fuel
        self._running = chosen, artifact, counting
        status = self._measure(chosen, artifact, counting, prepare_seconds)
        return self._seen(status)

    def _seen(self, status: Status) -> Status:
        control = self.machine.control
        if status is Status.FUEL and control.interrupt not in (0, BY_SIGNAL):
            # A short run may reach no poll; the next run would clear the flag unnoticed.
            status = control.status = Status.INTERRUPTED
        return status

    def go_on(self, direct: DirectEntry | None, left: int | None) -> Status:
        """Continue after `direct.run` left with a status that needs handling; otherwise as `go`."""
        chosen, artifact, _ = self._running
        settle(self.machine.control)
        drive = self._driver.drive
        return interruptible(
            self.machine.control,
            lambda: drive(chosen, artifact, False, direct, left),
            is_watched=True,
            again=lambda: drive(chosen, artifact, False),
        )

    @property
    def last_direct(self) -> DirectEntry | None:
        """The direct entry by which the program ended last, which serves on; None if it ended
        otherwise."""
        return self._driver.last_direct

    def go_nested(self) -> Status:
        """Continue inside a host call of this execution, as part of its run."""
        return self._driver.drive(*self._running)

    def direct(self) -> DirectEntry | None:
        """The direct entry of the engine's backend, if it has prepared the program."""
        key = (self.engine.backend.name, frozenset[Forcing]())
        if key not in self._prepared or self._driver.broken:
            return None
        backend, artifact = self._prepared[key]
        self._running = backend, artifact, False
        self._all_counted = False
        self._bind_natives(artifact)
        self._driver.limit_heap(backend)
        watch_until_freed(self.machine.control)
        return artifact.direct(self.machine, False)

    def python_caller(self, form: CallForm) -> tuple[int | None, str]:
        """The address of a caller for a form of calls; None with the reason that there is none."""
        key = (self.engine.backend.name, frozenset[Forcing]())
        if key not in self._prepared:
            return None, "the program has not run"
        return python_caller_of(*self._prepared[key], form)

    def _prepare(
        self, name: str | None, forcing: frozenset[Forcing]
    ) -> tuple[Interpreter, Artifact]:
        """The backend and its artifact of the program, which is cached for later runs."""
        key = (name or self.engine.backend.name, forcing)
        if key not in self._prepared:
            backend = runnable(self.engine.registry, name) if name else self.engine.backend
            artifact = prepare(backend, self.machine.verified, forcing)
            self._prepared[key] = backend, artifact
            set_again()
        backend, artifact = self._prepared[key]
        if self.machine.objects is not None:
            self.machine.objects.offer(functools.partial(collector_of, backend, artifact))
            self.machine.objects.offer_writer(functools.partial(item_writer_of, backend, artifact))
        return backend, artifact

    def _bind_natives(self, artifact: Artifact) -> None:
        """Let native code call native functions by their addresses if the backend supports that."""
        if not self._natives or self._natives_bound_for is artifact:
            return
        imports = {number: function.signature for number, function in self._natives.items()}
        callers = artifact.native_callers(imports) or {}
        for number, function in self._natives.items():
            self.machine.bind_native(number, function, callers.get(number, 0))
        self._natives_bound_for = artifact

    def _measure(
        self, backend: Interpreter, artifact: Artifact, counting: bool, prepare_seconds: float
    ) -> Status:
        """Drive the program and set `statistics`, on errors, too."""
        control = self.machine.control
        budget = control.fuel
        waited, compiled = _taken(backend, artifact)
        began = time.perf_counter()
        try:
            drive = functools.partial(self._driver.drive, backend, artifact, counting)
            return interruptible(control, drive, again=drive)
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
            raise trap_raised(self.machine, lambda: self.calls.references)
        if status is Status.INTERRUPTED:
            raise ProgramInterrupted(self.machine)
        result = self.machine.result() if status is Status.HALT else None
        return RunResult(
            status,
            result[0] if result else None,
            result[1] if result else None,
            self.collected,
            self.statistics,
            self._result_reference
            if status is Status.HALT and self._ends_with_reference()
            else None,
        )

    def _ends_with_reference(self) -> bool:
        types = self.machine.verified.operand_types(self.machine.control.pc)
        return bool(types) and isinstance(types[-1], Reference)

    def _result_reference(self) -> Item:
        control, stack = self.machine.control, self.machine.memory.stack
        found: Item = self.alone(lambda: self.calls.references.value(stack[control.sp - 1]))
        return found


def _taken(backend: Interpreter, artifact: Artifact) -> tuple[float, float]:
    """The seconds that programs have waited for compilers, and that compilers have run."""
    try:
        found = artifact.waited, artifact.compiled
    except BaseException as error:
        if is_ctrl_c(error) or is_signals(error):
            raise
        what = f"raised {described(error)}"
    else:
        if all(isinstance(each, int | float) for each in found):
            return found
        what = f"gave {shown(found)}"
    raise BackendError(f"backend {backend.name!r} {what} when it was asked for its times")
