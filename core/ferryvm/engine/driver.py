# SPDX-License-Identifier: Apache-2.0
"""The loop around a backend: enter it, handle its status, enter it again.

    enter ──> HALT, TRAP, FUEL, INTERRUPTED   the program stops
       ▲  ├──> HOST                            perform the call ──┐
       │  ├──> THROW                           find the handler ──┤   (or trap)
       │  ├──> ALLOCATE                        collect, enlarge ──┤   (or trap)
       │  ├──> LAUNCH                          take a piece ──────┤   (or trap)
       │  └──> GROW                            grow the heap ─────┤   (or trap)
       └──────────────────────────────────────────────────────────┘

The state that a backend leaves is checked before it is used, because backends are not trusted. The
loop runs in the caller's floating-point environment, as host functions do. Python code of a backend
runs in ours; native code that is entered directly sets it by itself.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ferryvm.backend import Artifact, BackendError, DirectEntry, Interpreter, RefusalError
from ferryvm.engine.exit_check import ExitChecker
from ferryvm.engine.result import UncaughtError, add_frames
from ferryvm.errors import FerryError
from ferryvm.failure import (
    SignalRaised,
    class_name,
    described,
    is_out_of_memory,
    is_signals,
    shown,
    undisguised,
)
from ferryvm.float_environment import call_in_ours, callers
from ferryvm.isa import Trap
from ferryvm.machine.control import EXIT_ID, INTERRUPT, Status
from ferryvm.machine.host import STANDARD, Context, HostFunction, Output
from ferryvm.machine.host_loop import PERFORMED
from ferryvm.machine.state import Machine
from ferryvm.machine.system import STANDARD_READER, System, WaitInterrupted
from ferryvm.machine.unwind import catch_raised, catch_thrown, unwind

if TYPE_CHECKING:
    from ferryvm.engine.host_loop import HostLoop
    from ferryvm.engine.host_tape import HostTape
    from ferryvm.engine.reference import References

_ENDS = (Status.HALT, Status.TRAP, Status.INTERRUPTED, Status.FUEL)
"""Statuses that end a run."""

_NOT_OURS = (
    *(Status.RUNNING, Status.LEAVE, Status.GUARD, Status.HOT, Status.SLICED, Status.LOST),
    *(Status.LONG, Status.PARALLEL),
)
"""Statuses after which the engine cannot continue, whatever the state is."""

_P = ParamSpec("_P")
_T = TypeVar("_T")

FEW = 16
"""Host calls of a drive after which native code performs them, if that is loaded."""

MANY = 1000
"""Host calls of a drive after which native code that performs them is loaded, which takes some
milliseconds."""

_HOST = int(Status.HOST)  # compared with what native code returned, at every host call
_LAUNCH = int(Status.LAUNCH)


class Driver:
    """A machine with the host functions that its program calls."""

    def __init__(
        self,
        machine: Machine,
        hosts: Sequence[HostFunction],
        output: Output,
        tape: HostTape | None = None,
    ) -> None:
        """`hosts`: by the number of the import; `output`: the receiver of the program's output;
        `tape`: the position in the log that records or replays host calls."""
        self.machine = machine
        self.broken = ""
        """The fault of a backend that left the machine in no state of its program."""
        self.heap_for: Callable[[int], bool] = lambda _end: False
        """Makes bytes of the heap usable; False if a limit forbids it."""
        self.instance: Callable[[], object] = lambda: None
        """The source of the instance for host functions that take it."""
        self.references: Callable[[], References]
        """The source of the references of the machine for host functions that take some."""
        self.reader = STANDARD_READER
        """The input of the program."""
        self.arguments: Sequence[str] = ()
        """The program's arguments."""
        self._drives = array("Q", [0])
        self.last_direct: DirectEntry | None = None
        """The direct entry by which the last drive ended with HALT, which serves on."""
        self.tape = tape
        self._hosts = hosts
        self._checker = ExitChecker(machine)
        self._performing: list[Callable[[], None]] = []
        self._loop: HostLoop | None = None
        self.output = output

    @property
    def output(self) -> Output:
        """The `Output` that the program writes to."""
        return self._output

    @output.setter
    def output(self, output: Output) -> None:
        self._output = output
        self._performing[:] = [self._first_call(number) for number in range(len(self._hosts))]

    @property
    def entries(self) -> int:
        """Number of drives so far; it shows whether a host function started one."""
        return self._drives[0]

    def drive(
        self,
        backend: Interpreter,
        artifact: Artifact,
        counting: bool,
        direct: DirectEntry | None = None,
        left: int | None = None,
    ) -> Status:
        """Enter the backend until the program stops; the status with which it did.

        `left`: the status that `direct.run` returned last, if the machine was entered by it
        already. Raises BackendError if a backend left a state from which the engine cannot
        continue, RefusalError if the heap is larger than the backend can address, and the
        exceptions of host functions.
        """
        if left is None and self.machine.control.status in (Status.HALT, Status.TRAP):
            return self.machine.status  # it ended before this run
        with callers():
            try:
                return self._drive(backend, artifact, counting, direct, left)
            finally:
                if self.machine.objects is not None:
                    self.machine.objects.discard_prepared()

    def _drive(
        self,
        backend: Interpreter,
        artifact: Artifact,
        counting: bool,
        direct: DirectEntry | None,
        left: int | None,
    ) -> Status:
        machine, control = self.machine, self.machine.control
        self.limit_heap(backend)
        self.last_direct = None
        drives = self._drives
        drives[0] += 1
        entries = drives[0]
        halves, address = machine.memory.control_halves, machine.address
        calls, enough = 0, MANY if self._loop is None else FEW
        serving: Callable[[], int] | None = None  # runs the machine and performs its calls
        while True:
            if left is None and direct is not None:
                if calls >= enough and serving is None:
                    serving = self._serving(backend, artifact, direct, counting)
                    if serving is None:
                        enough = 2 * calls
                try:
                    left = direct.run(address) if serving is None else serving()
                    if left == _LAUNCH and direct.resume is not None:
                        left = direct.resume(machine) or left
                except ctypes.ArgumentError as error:
                    if serving is not None and self._loop is not None and self._loop.has_failed:
                        raise  # a host function's
                    raise undisguised(error) from None
            if left == PERFORMED and serving is not None:
                left = None
                if drives[0] != entries:  # a call entered the machine
                    entries, direct, serving = drives[0], None, None
                    enough = max(enough, calls + FEW)  # the next calls may do so, too
                continue
            if left == _HOST:
                left = None
                fault = self._checker.host_fault()
                if fault is not None:
                    raise self._break(backend, f"left {fault}")
                if halves[INTERRUPT]:  # checked here, too: each entry of a backend may be short
                    control.status = Status.INTERRUPTED
                    return Status.INTERRUPTED
                calls += 1
                if serving is not None:
                    assert self._loop is not None
                    self._loop.learn()
                control.fuel -= counting  # first, because calls made by the function share the fuel
                try:
                    self._performing[halves[EXIT_ID]]()
                except BaseException as error:
                    found = self._call_failed(error, counting)
                    if found is Status.HOST:
                        raise
                    if found is Status.INTERRUPTED:
                        return found
                if drives[0] != entries:  # it called the program, so another form may be bound
                    entries, direct, serving = drives[0], None, None
                    enough = max(enough, calls + FEW)  # the next calls may do so, too
                continue
            if left is None:
                direct = self._attempt(backend, artifact.direct, machine, counting)
                if direct is not None:
                    continue
                control.status = Status.RUNNING  # a finaliser could call a program in a host call
                status = self._attempt(backend, artifact.enter, machine, counting)
            elif left == Status.HALT:
                status, self.last_direct = Status.HALT, direct
            else:
                assert direct is not None
                status = self._attempt(backend, direct.finish, machine, counting, left)
            left = direct = serving = None
            if status.__class__ is not Status:  # compares of a plain number below would all fail
                raise self._break(backend, f"returned {shown(status)}, not a Status")
            if status is Status.HOST:
                if control.status != status:
                    text = f"left with the status HOST, and {control.status} in its control block"
                    raise self._break(backend, text)
                left = _HOST
                continue
            fault = self._checker.fault(status, counting)
            if fault is not None and status not in _NOT_OURS:
                raise self._break(backend, f"left {fault}")
            if status is Status.GROW:
                if not self._grow(backend):
                    control.status, control.trap = Status.TRAP, Trap.HEAP_EXHAUSTED
                    return Status.TRAP
            elif status is Status.ALLOCATE:
                if not self._allocate(backend):
                    control.status, control.trap = Status.TRAP, Trap.HEAP_EXHAUSTED
                    return Status.TRAP
                if control.interrupt:  # there may be much more to do
                    control.status = Status.INTERRUPTED
                    return Status.INTERRUPTED
            elif status is Status.LAUNCH:
                if self._continue_launch() is Status.TRAP:
                    return Status.TRAP
                if control.interrupt:  # there may be very many pieces
                    control.status = Status.INTERRUPTED
                    return Status.INTERRUPTED
            elif status is Status.THROW:
                found = unwind(self.machine, counting)
                if found is not Status.RUNNING:
                    return found
            elif status in _ENDS:
                if status is Status.HALT and counting:
                    control.fuel -= 1
                return status
            else:
                raise BackendError(
                    f"backend {backend.name!r} left with {status.name} at pc {control.pc}, "
                    "which a program run by one backend alone cannot go on from"
                )

    def _serving(
        self, backend: Interpreter, artifact: Artifact, direct: DirectEntry, counting: bool
    ) -> Callable[[], int] | None:
        """A function that runs the machine by a direct entry and performs its host calls, until
        control has to be given back; None if there is none yet."""
        from ferryvm.engine import host_loop  # few programs make many calls
        from ferryvm.engine.preparation import host_loop_of

        if self._loop is None and direct.address and host_loop.is_possible():
            found = host_loop_of(backend, artifact)
            if found is not None:
                self._loop = host_loop.HostLoop(found, self.machine, self._performing, self._drives)
        loop = self._loop
        if loop is None or not direct.address:
            return None
        bound = loop.bind(direct, counting)

        def serve() -> int:
            try:
                return bound()
            except BaseException as error:
                if not loop.has_failed:
                    raise
                found = self._call_failed(error, counting)
                if found is Status.HOST:
                    raise
                return PERFORMED if found is Status.RUNNING else found

        return serve

    def _call_failed(self, error: BaseException, counting: bool) -> Status:
        """Handle an exception of the host call at pc: RUNNING if the program is at its handler,
        INTERRUPTED if it has to wait at the call, HOST if the exception is to be raised."""
        control = self.machine.control
        if isinstance(error, WaitInterrupted):
            control.fuel += counting
            control.status = Status.INTERRUPTED
            return Status.INTERRUPTED
        if self._checker.host_fault() is not None:
            return Status.HOST  # a signal handler's, which ran as the call had ended
        if isinstance(error, Exception) and self._catch(error, control.exit_id):
            return Status.RUNNING
        control.fuel += counting
        return Status.HOST

    def _attempt(
        self, backend: Interpreter, step: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """The result of a step in a backend's Python code, run in our floating-point
        environment."""
        try:
            return call_in_ours(step, *args, **kwargs)
        except (FerryError, KeyboardInterrupt, MemoryError):
            raise
        except SignalRaised as raised:
            raise raised.error from None
        except BaseException as error:
            if is_out_of_memory(error):
                raise MemoryError from error
            cause = undisguised(error)
            is_recursion = isinstance(cause, RecursionError)  # then nothing more can be called
            if not is_recursion and is_signals(cause) and self.machine.status is not Status.LOST:
                raise cause from None  # before the step, or after it: the state is exact
            if is_recursion or is_signals(cause):
                what = f"{class_name(type(cause))} was raised while it ran"
                self.machine.torn = f"backend {backend.name!r} was stopped: {what}"
                raise cause from None
            raise self._break(backend, f"raised {described(error)}") from error

    def _break(self, backend: Interpreter, what: str) -> BackendError:
        """The error for a backend that left the machine in no state of its program."""
        self.broken = f"backend {backend.name!r} {what}"
        return BackendError(f"{self.broken}; the program cannot go on")

    def limit_heap(self, backend: Interpreter) -> None:
        """Limit the heap to the bytes that the backend can address."""
        control, limit = self.machine.control, backend.capabilities.heap
        control.heap_capacity = self.machine.memory.heap_capacity
        if limit is not None:
            if control.hp > limit:
                message = f"backend {backend.name!r} can address {limit} bytes of heap"
                raise RefusalError(f"{message}, {control.hp} are in use")
            control.heap_capacity = min(control.heap_capacity, limit)

    def _grow(self, backend: Interpreter) -> bool:
        """Grow the heap for the allocation that left with GROW; False if a limit forbids it."""
        return self.make_usable(backend, self.machine.control.wanted)

    def _allocate(self, backend: Interpreter) -> bool:
        """Provide what the instruction that left with ALLOCATE needs; False if the limit forbids
        it."""
        objects = self.machine.objects
        assert objects is not None
        control = self.machine.control
        try:
            return objects.allocate(lambda: bool(control.interrupt))
        except ValueError as error:
            raise self._break(backend, f"left {error}") from None

    def _continue_launch(self) -> Status:
        """Take the next piece of the launch at pc; RUNNING, or TRAP if it cannot be taken."""
        from ferryvm.machine.launch import continue_launch  # few launches have a record

        return continue_launch(self.machine)

    def make_usable(self, backend: Interpreter, end: int) -> bool:
        """Make `end` bytes of the heap usable; False if a limit forbids it."""
        limit = backend.capabilities.heap
        if limit is not None and end > limit:
            return False
        grown = end <= self.machine.control.heap_capacity or self.machine.grow(end)
        self.limit_heap(backend)
        return grown

    def _catch(self, error: Exception, number: int) -> bool:
        """True if the program catches an exception of a host function; it is at the handler then.
        An uncaught exception gets the program's frames as notes."""
        machine, host = self.machine, self._hosts[number]
        if STANDARD.get(host.name) is host:
            return False  # the fault is the output's
        if isinstance(error, UncaughtError) and error.program is machine.program:
            exception = error.thrown(self.references)
            return exception is not None and catch_thrown(machine, exception)
        if isinstance(error, FerryError):
            return False
        if catch_raised(machine, error):
            return True
        add_frames(machine, error)
        return False

    def _first_call(self, number: int) -> Callable[[], None]:
        """A function that performs calls of a host import and is specialised at its first call."""

        def perform() -> None:
            from ferryvm.engine.host_call import bound

            host = self._hosts[number]
            context: object = None
            if host.context is Context.OUTPUT:
                context = self._output
            elif host.context is Context.SYSTEM:
                context = System(self.machine, self._output, self.reader, self.arguments)
            elif host.context is Context.INSTANCE:
                context = self.instance()
            performing = bound(self.machine, host, context, self.references)
            if self.tape is not None:
                performing = self.tape.logged(self.machine, host, performing, self.heap_for)
            self._performing[number] = performing
            self._performing[number]()

        return perform
