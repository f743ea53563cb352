# SPDX-License-Identifier: Apache-2.0
"""Calls of a program's functions from Python: frames pushed on the machine's stack and popped.

    stack  │ … where the program stands │ arguments │ header │ stub's operands
                                          └── one call: pushed, run, popped ──┘

A call that ends, by a result or by an error, restores the registers. A call that stops (fuel,
Ctrl-C) remains on the stack until it is resumed or abandoned. The call of a host function stands on
top of the host call in which it was made.

A signal handler may raise wherever Python calls or starts a function. So what must be done as a
whole (removing a call from the stack, or keeping it) is done by plain stores, in the function with
the `try`, without a call of a function. A context manager is no alternative: after an exception at
its end the garbage collector ends it, at any later time.
"""

from __future__ import annotations

import functools
import sys
import threading
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ferryvm.backend import DirectEntry
from ferryvm.engine.active_call import Call, InUseError, OutOfFuelError
from ferryvm.engine.interrupt import BY_SIGNAL
from ferryvm.engine.marshal import (
    CallError,
    Value,
    check,
    frame_struct,
    numbers,
    value,
)
from ferryvm.engine.result import ProgramInterrupted, TrapError, trap_raised
from ferryvm.engine.runner import Runner
from ferryvm.engine.target import Target
from ferryvm.errors import FerryError
from ferryvm.failure import SignalRaised, shown
from ferryvm.float_environment import call_in_ours, in_ours
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import WORD_BYTES, Type
from ferryvm.machine.control import CALL_REGISTERS, Status
from ferryvm.machine.python_call import ArmedWord
from ferryvm.machine.state import Machine
from ferryvm.program import has_references

if TYPE_CHECKING:
    from ferryvm.engine.extension import Extension
    from ferryvm.engine.reference import Passing, References

_R = TypeVar("_R")

_AtError = Callable[[BaseException, Machine, Callable[[], "References"]], object]

_THREAD, _RUN = int(ArmedWord.THREAD), int(ArmedWord.RUN)

MOST_NESTED = 100
"""The largest depth of calls from host functions inside each other."""


class Calls:
    """The calls of one machine."""

    def __init__(self, execution: Runner) -> None:
        """`execution`: a program that stopped at its start function's `halt`."""
        self.execution, self.machine = execution, execution.machine
        self.busy = execution.busy
        self.block = self.machine.memory.control_bytes
        """The control block as bytes."""
        has_started = self.machine.control.status == Status.HALT
        self.idle = self._registers() if has_started else None
        """The registers while no call is active; None if the program is not at its end, so that
        only host functions can call it."""
        self.armed = array("Q", bytes(WORD_BYTES * len(ArmedWord)))
        """Words by which the machine may be entered; code has their address."""
        self.run: Callable[[int], int]
        """Enters the machine from the thread in `armed` and returns its status."""
        self.stopped: tuple[Call, ...] = ()
        """The stopped calls, the most recent one last."""
        self.at_trap: Callable[[Machine, Callable[[], References]], object] | None = None
        self.at_error: _AtError | None = None
        """Called with an exception that a signal handler or a host function raised in a call, while
        the machine stands where it was."""
        """Takes from a machine that trapped what it needs of its state, for `TrapError.state`."""
        self._passings: dict[int, Passing | None] = {}
        """By the entry of the target."""
        self._direct: DirectEntry | None = None
        self._nested = 0

    @property
    def suspended(self) -> Call | None:
        """The most recent stopped call, which can be resumed."""
        return self.stopped[-1] if self.stopped else None

    # --- calls ------------------------------------------------------------------------------

    def call(
        self,
        target: Target,
        arguments: Sequence[object],
        fuel: int | None = None,
        backend: str | None = None,
    ) -> Value:
        """Call a function in any situation; as `Instance.call`."""
        # As `alone`, with few Python frames: nested calls must not reach Python's limit.
        try:
            del self.busy.free
        except AttributeError:
            self._check_nested()
        else:
            try:
                self.execution.owner = threading.get_ident()
                self.execution.check_usable()
                return self._call(target, arguments, False, fuel, backend)
            finally:
                self.execution.owner = 0
                self.busy.free = True
        if fuel is not None or backend is not None:
            raise CallError(
                f"{target.name}: a call in a host function takes its caller's fuel and backend"
            )
        nested = self._nested
        try:
            self._nested = nested + 1
            return self._call(target, arguments, True, fuel, backend)
        finally:
            self._nested = nested

    def finish(self, target: Target, status: int) -> Value:
        """Continue a call that `run` left with a status other than HALT. The caller owns the
        execution."""
        call = Call(self, target, self.idle_registers())
        direct: DirectEntry | None = self._direct
        left: int | None = status
        control, execution, has_ended = self.machine.control, self.execution, False
        try:
            execution.owner, self.armed[_THREAD] = self.armed[_THREAD], 0
            if left == Status.PARALLEL and direct is not None and direct.launch is not None:
                left = self._launched(target, direct, direct.launch)
                has_ended = left == Status.HALT
                if has_ended:
                    return self._ended(call, Status.HALT, is_nested=False)
            is_signal = left == Status.INTERRUPTED and control.interrupt == BY_SIGNAL
            if is_signal:
                # Python's handler has run by now, and raised nothing: continue the call.
                control.interrupt = 0
            if is_signal or left == Status.LEAVE:
                control.status = Status.RUNNING
                direct = left = None
            return self._ended(call, execution.go_on(direct, left), is_nested=False)
        except BaseException as error:
            self.look(error)
            raise
        finally:
            execution.owner = 0
            if not self.stopped or self.stopped[-1] is not call:
                self.block[CALL_REGISTERS] = call.before
                self.machine.torn = ""
            is_direct = has_ended or execution.last_direct is self._direct
            if self._direct is not None and is_direct:
                self.armed[_THREAD] = threading.get_ident()
            else:
                self._arm()

    def _launched(
        self,
        target: Target,
        direct: DirectEntry,
        launch: Callable[[Machine], Status | None],
    ) -> int:
        """Run the items of the launch for which code has left, and the machine from there, again
        and again; the status that it is left with then. The way through the engine takes ten times
        as much of Python, which is not in any cache after a launch."""
        try:
            while True:
                left = call_in_ours(launch, self.machine)
                status = direct.run(self.machine.address) if left is None else left
                if status != Status.PARALLEL:
                    return status
        except SignalRaised as raised:
            if isinstance(raised.error, KeyboardInterrupt):
                self.interrupted(target, raised.error)
            raise raised.error from None
        except KeyboardInterrupt:
            self.interrupted(target)
            raise

    def interrupted(self, target: Target, raised: BaseException | None = None) -> None:
        """Raise ProgramInterrupted for a KeyboardInterrupt that arrived during `run` and stopped
        the call, `raised` or the one that is being handled; returns if the call had ended or not
        started."""
        if self.stopped or self.machine.control.status in (Status.HALT, Status.TRAP):
            return
        self.machine.control.status = Status.INTERRUPTED
        call = Call(self, target, self.idle_registers(), self._registers())
        error = ProgramInterrupted(self.machine, call)
        error.raised = raised or sys.exception()
        self.armed[_THREAD] = 0
        self.stopped = (*self.stopped, call)
        raise error from None

    def look(self, error: BaseException) -> None:
        """Let `at_error` look at the machine, if an exception ended a call in its middle."""
        is_other = isinstance(error, FerryError | RecursionError | MemoryError)
        if self.at_error is None or is_other or self.machine.torn:
            return
        if self.machine.control.status not in (Status.HALT, Status.TRAP):
            self.at_error(error, self.machine, lambda: self.references)

    def misfit(self, target: Target, arguments: Sequence[object]) -> FerryError:
        """The error for arguments that do not fit a function's parameters."""
        try:
            check(target.name, target.parameters, target.signature, arguments)
        except CallError as error:
            return error
        return CallError(f"{target.name}: arguments {arguments!r} cannot be passed")

    def resume(self, call: Call, fuel: int | None, backend: str | None) -> Value:
        """Continue the call that stopped last."""

        def enter(is_nested: bool) -> Value:
            self._check_last(call, is_nested)
            execution, began = self.execution, self.execution.entries
            try:
                self.armed[_THREAD] = 0
                self.stopped = self.stopped[:-1]
                self.block[CALL_REGISTERS] = call.at
                return self._ended(call, execution.go(fuel, backend), is_nested=False)
            except BaseException:
                if execution.entries == began:  # it has not run: keep it
                    self.stopped = (*self.stopped, call)
                raise
            finally:
                if not self.stopped or self.stopped[-1] is not call:
                    self.block[CALL_REGISTERS] = call.before
                    self.machine.torn = ""
                self._arm()

        return self.alone(enter)

    def abandon(self, call: Call) -> None:
        """Remove the call that stopped last from the stack."""

        def enter(is_nested: bool) -> None:
            self._check_last(call, is_nested)
            self.stopped = self.stopped[:-1]
            self.block[CALL_REGISTERS] = call.before
            self._arm()

        self.alone(enter)

    def stood(self, call: Call, look: Callable[[Machine], _R]) -> _R:
        """The result of a function that looks at the machine as the call that stopped last left
        it."""

        def enter(is_nested: bool) -> _R:
            self._check_last(call, is_nested)
            self.armed[_THREAD] = 0
            self._rest()
            return look(self.machine)

        return self.alone(enter)

    def save(self, path: Path) -> None:
        """Write the state to a file."""

        def enter(is_nested: bool) -> None:
            if is_nested:
                raise CallError(
                    "the state cannot be saved inside a host function, for Python is under way: "
                    "save it when the call has ended, or has stopped"
                )
            self._rest()
            self.execution.save_to(path)

        self.alone(enter)

    def check_idle(self) -> None:
        """Raise CallError if a call is active: running, or stopped."""

        def enter(is_nested: bool) -> None:
            if is_nested or self.stopped:
                raise CallError("a call is under way; what it leaves is not known yet")

        self.alone(enter)

    def allocate(self, size: int) -> int:
        """The offset of new bytes in the heap."""
        if not hasattr(size, "__index__"):
            raise CallError(f"{shown(size)} bytes cannot be allocated; an int is expected")

        def enter(_is_nested: bool) -> int:
            control = self.machine.control
            start = control.hp
            end = start + -(-size // WORD_BYTES) * WORD_BYTES
            if size < 0 or not self.execution.make_usable(end):
                limit = self.machine.memory.heap_limit
                raise CallError(f"{size} bytes cannot be allocated: {start} of {limit} are in use")
            control.hp = end
            return start

        return self.alone(enter)

    # --- parts ------------------------------------------------------------------------------

    def disarm(self) -> None:
        """Forget the direct entry: the next call prepares the program."""
        self.armed[_THREAD] = 0
        self._direct = None

    def alone(self, action: Callable[[bool], _R]) -> _R:
        """The result of an action during which other threads are excluded; its argument is True if
        a host function of this thread's run calls."""
        try:
            del self.busy.free
        except AttributeError:
            self._check_nested()
            return action(True)
        try:
            self.execution.owner = threading.get_ident()
            self.execution.check_usable()
            return action(False)
        finally:
            self.execution.owner = 0
            self.busy.free = True

    def stand(
        self, target: Target, arguments: Sequence[object], action: Callable[[], _R], otherwise: _R
    ) -> _R:
        """The result of an action while the machine stands at the entry of a call, which is removed
        from the stack afterwards; `otherwise` while another call is active."""

        def enter(is_nested: bool) -> _R:
            if is_nested or self.stopped:
                return otherwise
            self.armed[_THREAD] = 0
            self._rest()
            before = self._registers()
            try:
                self.machine.control.interrupt = 0
                self._push(Call(self, target, before), self._words(target, arguments))
                return action()
            finally:
                self.block[CALL_REGISTERS] = before
                self._arm()

        return self.alone(enter)

    def _check_nested(self) -> None:
        """Raise CallError if the execution is in use, except by a host function of this thread's
        run."""
        owner = self.execution.owner or self.armed[_THREAD]
        if owner and owner != threading.get_ident():
            raise InUseError("this instance is in use by another thread; each thread needs its own")
        if not owner or self.machine.control.status != Status.HOST:
            raise InUseError(
                "this instance is in use; it can be called again from a host function only, "
                "and not from a native one"
            )
        if self._nested >= MOST_NESTED:
            raise CallError(
                f"host functions have called back {MOST_NESTED} times inside each other"
            )

    def _call(
        self,
        target: Target,
        arguments: Sequence[object],
        is_nested: bool,
        fuel: int | None,
        backend: str | None,
    ) -> Value:
        check(target.name, target.parameters, target.signature, arguments)
        if not is_nested:
            self.armed[_THREAD] = 0
            self._rest()
        before = self._registers()
        call = Call(self, target, before)
        execution = self.execution
        try:
            self.machine.control.status = Status.RUNNING  # else a finaliser could push a call there
            self._push(call, self._words(target, arguments))
            status = execution.go_nested() if is_nested else execution.go(fuel, backend)
            return self._ended(call, status, is_nested)
        except BaseException as error:
            self.look(error)
            raise
        finally:
            if not self.stopped or self.stopped[-1] is not call:
                self.block[CALL_REGISTERS] = before
                self.machine.torn = ""
            if not is_nested:
                self._arm()

    @functools.cached_property
    def extension(self) -> Extension:
        """The functions that were added to the program."""
        from ferryvm.engine.extension import Extension  # few programs grow

        return Extension(self)

    @functools.cached_property
    def references(self) -> References:
        """The references of the machine. The program has some."""
        from ferryvm.engine.reference import References  # it takes NumPy

        return References(self.machine, self.alone)

    def passing(self, target: Target) -> Passing | None:
        """Passes the references of a function; None if it has none."""
        entry = target.entry
        if entry not in self._passings:
            self._passings[entry] = self._new_passing(target)
        return self._passings[entry]

    def _new_passing(self, target: Target) -> Passing | None:
        if not has_references(target.signature):
            return None
        from ferryvm.engine.reference import Passing

        names, signature = target.parameters, target.signature
        return Passing(self.references, target.name, names, signature.parameters, signature.results)

    def _words(self, target: Target, arguments: Sequence[object]) -> Sequence[object]:
        """The arguments of a call that begins, with references for objects."""
        passing = self.passing(target)
        return arguments if passing is None else passing.words(arguments)

    def _push(self, call: Call, arguments: Sequence[object]) -> None:
        """Push a frame and set pc to its entry."""
        machine, target = self.machine, call.target
        control = machine.control
        first: int = control.sp
        frame = first + len(target.signature.parameters)
        if frame + target.frame_words > machine.memory.stack_words:
            raise CallError(f"{target.name}: the stack has no room for a call; raise its limit")
        pack = frame_struct(target.signature).pack_into
        narrows = Type.F32 in target.signature.parameters  # that is arithmetic
        (in_ours(pack) if narrows else pack)(
            machine.memory.stack.cast("B"),
            WORD_BYTES * first,
            *arguments,
            control.pc + 1,
            frame - control.fp,
        )
        control.pc, control.sp, control.fp = target.entry, frame + HEADER_WORDS, frame
        control.status = Status.RUNNING

    def _ended(self, call: Call, status: Status, is_nested: bool) -> Value:
        """The value of a call that has ended. Raises for all other ends."""
        machine, target = self.machine, call.target
        if status is Status.TRAP:
            error = trap_raised(machine, lambda: self.references)
            if self.at_trap is not None and isinstance(error, TrapError):
                error.state = self.at_trap(machine, lambda: self.references)
            raise error
        if status is Status.HALT:
            if machine.control.pc != target.halt:
                where = machine.position or f"pc {machine.control.pc}"
                raise CallError(f"{target.name}: the program ended at {where}, inside the call")
            types = target.signature.results
            end = machine.control.sp
            words = machine.memory.stack[end - len(types) : end].tolist()
            passing = self.passing(target)
            return value(numbers(types, words) if passing is None else passing.values(words))
        stop: BaseException
        if status is Status.INTERRUPTED:
            stop = ProgramInterrupted(machine, None if is_nested else call)
        else:
            stop = OutOfFuelError(call)
        if is_nested:
            call.is_lost = True
        else:
            call.at = self._registers()
            self.armed[_THREAD] = 0
            self.stopped = (*self.stopped, call)
        raise stop

    def _check_last(self, call: Call, is_nested: bool) -> None:
        if call.is_lost:
            raise CallError(
                f"{call.name}: this call has ended: it stopped inside a host function, where Python "
                "cannot be resumed; call the outermost function again"
            )
        if call not in self.stopped:
            raise CallError(
                f"{call.name}: this call has ended; there is nothing to resume or abandon"
            )
        if is_nested or self.stopped[-1] is not call:
            raise CallError(f"{call.name}: this is not the call that stopped last")

    def idle_registers(self) -> bytes:
        """The registers while no call is active. Raises CallError if the program has not run to its
        end."""
        if self.idle is None:
            if self.machine.control.status != Status.HALT:
                raise CallError(
                    "the program has not run to its end: only host functions can call it"
                )
            self.idle = self._registers()
        return self.idle

    def _rest(self) -> None:
        """Set the registers to their values between calls, if an exception prevented the last call
        from restoring them."""
        self.block[CALL_REGISTERS] = self.stopped[-1].at if self.stopped else self.idle_registers()

    def _registers(self) -> bytes:
        return bytes(self.block[CALL_REGISTERS])

    def _arm(self) -> None:
        """Make `run` usable if no call is active and the backend can be entered directly."""
        self.armed[_THREAD] = 0
        self._direct = None if self.stopped else self.execution.direct()
        if self._direct is not None and self._direct.is_native():
            self.run, self.armed[_RUN] = self._direct.run, self._direct.address
            self.armed[_THREAD] = threading.get_ident()
