# SPDX-License-Identifier: Apache-2.0
"""Calls of a program's functions from Python: frames pushed on the machine's stack and popped.

    stack  │ … where the program stands │ arguments │ header │ stub's operands
                                          └── one call: pushed, run, popped ──┘

A call that ends, by a result or by an error, restores the registers. A call that stops (fuel,
Ctrl-C) remains on the stack until it is resumed or abandoned. The call of a host function stands on
top of the host call in which it was made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from ferryvm.backend import DirectEntry
from ferryvm.engine.marshal import CallError, Value, check, frame_struct, values
from ferryvm.engine.possession import Possession
from ferryvm.engine.result import ProgramInterrupted, shown_stack, trap_raised
from ferryvm.errors import FerryError
from ferryvm.failure import shown
from ferryvm.float_environment import ours
from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.program import Signature

_R = TypeVar("_R")

_HALT = BY_MNEMONIC["halt"].opcode

MOST_NESTED = 100
"""The largest depth of calls from host functions inside each other."""


@dataclasses.dataclass(frozen=True)
class Target:
    """An exported function that can be called."""

    name: str
    parameters: tuple[str, ...]
    """The names of the parameters, as far as they are known."""
    signature: Signature
    entry: int
    """pc of its entry stub."""
    halt: int
    """pc of the stub's `halt`."""
    frame_words: int
    """Words of the stub's frame from its header on."""


@dataclasses.dataclass(frozen=True)
class Registers:
    """Registers of a machine that a call restores."""

    pc: int
    sp: int
    fp: int
    status: int
    trap: int
    exit_id: int


class Call:
    """An active call of an exported function: running, or stopped."""

    def __init__(self, calls: Calls, target: Target, before: Registers) -> None:
        """`before`: the registers to restore."""
        self._calls, self.target, self.before = calls, target, before
        self.machine = calls.machine
        self.name = target.name

    def resume(self, fuel: int | None = None, backend: str | None = None) -> Value:
        """Continue; as `Instance.call`. Raises CallError if it is not the last call that
        stopped."""
        return self._calls.resume(self, fuel, backend)

    def abandon(self) -> None:
        """Remove the call from the stack; its changes of statics and heap remain. Raises CallError
        as `resume`."""
        self._calls.abandon(self)


class OutOfFuelError(FerryError):
    """A call ran out of fuel; `call` can resume it."""

    def __init__(self, call: Call) -> None:
        self.call = call
        super().__init__(shown_stack(call.machine, f"{call.name}: out of fuel"))


class Runner(Protocol):
    """The parts of `ferryvm.engine.execution.Execution` that calls use, as a protocol, because that
    module imports this one."""

    machine: Machine
    busy: Possession
    owner: int

    @property
    def collected(self) -> str:
        """The output of the program so far."""

    def check_usable(self) -> None:
        """Raise BackendError if the machine is in no state of its program."""

    def go(self, fuel: int | None = None, backend: str | None = None) -> Status:
        """Continue until the program stops."""

    def go_on(self, direct: DirectEntry | None, left: int | None) -> Status:
        """Continue after `direct` left with a status."""

    def go_nested(self) -> Status:
        """Continue inside a host call."""

    def direct(self) -> DirectEntry | None:
        """The direct entry of the engine's backend."""

    def save_to(self, path: Path) -> None:
        """Write the state to a file."""

    def make_usable(self, end: int) -> bool:
        """Make bytes of the heap usable."""


class Calls:
    """The calls of one machine."""

    def __init__(self, execution: Runner) -> None:
        """`execution`: a program that stopped at its start function's `halt`."""
        self.execution, self.machine = execution, execution.machine
        self.busy = execution.busy
        has_started = self.machine.control.status == Status.HALT
        self.idle = self._registers() if has_started else None
        """The registers while no call is active; None if the program is not at its end, so that
        only host functions can call it."""
        self.thread = 0
        """The thread that may use `run` while no call is active; 0 for none."""
        self.run: Callable[[int], int]
        """Enters the machine from `thread` and returns its status."""
        self._direct: DirectEntry | None = None
        self._stopped: list[Call] = []
        self._nested = 0

    @property
    def suspended(self) -> Call | None:
        """The most recent stopped call, which can be resumed."""
        return self._stopped[-1] if self._stopped else None

    # --- calls ------------------------------------------------------------------------------

    def call(
        self,
        target: Target,
        arguments: Sequence[object],
        fuel: int | None = None,
        backend: str | None = None,
    ) -> Value:
        """Call a function in any situation; as `Instance.call`."""
        # As `_entered`, with few Python frames: nested calls must not reach Python's limit.
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
        self._nested += 1
        try:
            return self._call(target, arguments, True, fuel, backend)
        finally:
            self._nested -= 1

    def finish(self, target: Target, status: int) -> Value:
        """Continue a call that `run` left with a status other than HALT. The caller owns the
        execution."""
        call = Call(self, target, self._idle())
        with self._popped(call):
            direct: DirectEntry | None = self._direct
            left: int | None = status
            if status == Status.INTERRUPTED:
                # Python's handler has run by now, and raised nothing: continue the call.
                control = self.machine.control
                control.interrupt, control.status = 0, Status.RUNNING
                direct = left = None
            found = self.execution.go_on(direct, left)
            return self._ended(call, found, is_nested=False)

    def interrupted(self, target: Target) -> None:
        """Raise ProgramInterrupted for a KeyboardInterrupt that arrived during `run` and stopped
        the call; returns if the call had ended or not started."""
        status = self.machine.control.status
        if status in (Status.HALT, Status.TRAP) or self._stopped:
            return
        call = Call(self, target, self._idle())
        self._stop(call)
        raise ProgramInterrupted(self.machine, call) from None

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
            self._take(call, is_nested)
            with self._popped(call):
                found = self.execution.go(fuel, backend)
                return self._ended(call, found, is_nested=False)

        return self._entered(enter)

    def abandon(self, call: Call) -> None:
        """Remove the call that stopped last from the stack."""

        def enter(is_nested: bool) -> None:
            self._take(call, is_nested)
            self._restore(call.before)
            self._arm()

        self._entered(enter)

    def save(self, path: Path) -> None:
        """Write the state to a file."""

        def enter(is_nested: bool) -> None:
            if is_nested:
                raise CallError(
                    "the state cannot be saved inside a host function: Python is under way"
                )
            if len(self._stopped) > 1:
                raise CallError(
                    f"{len(self._stopped)} calls have stopped; the state of one can be saved"
                )
            if not self._stopped:
                self._restore(self._idle())
            self.execution.save_to(path)

        self._entered(enter)

    def check_idle(self) -> None:
        """Raise CallError if a call is active: running, or stopped."""

        def enter(is_nested: bool) -> None:
            if is_nested or self._stopped:
                raise CallError("a call is under way; what it leaves is not known yet")

        self._entered(enter)

    def take_up(self, targets: Sequence[Target]) -> None:
        """Find the active call on the stack of a machine that was loaded."""
        machine, words = self.machine, self.machine.memory.stack
        control, owner = machine.control, machine.verified.owner
        pc, fp, above = control.pc, control.fp, None
        function = -1  # of the frame at `above`
        while distance := words[fp + 1]:  # the outermost frame has none
            above, function = fp, owner(pc)
            pc, fp = words[fp] - 1, fp - distance
        if above is None:
            if control.status != Status.HALT:
                raise CallError("this state stands in the start function: go on with Engine.resume")
            return
        target = next((one for one in targets if owner(one.entry) == function), None)
        if target is None or machine.program.code.opcodes[pc] != _HALT:
            raise CallError("this state is no call of an instance: go on with Engine.resume")
        sp = above - len(target.signature.parameters)
        self.idle = Registers(pc, sp, fp, int(Status.HALT), 0, 0)
        self._stop(Call(self, target, self.idle))

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

        return self._entered(enter)

    # --- parts ------------------------------------------------------------------------------

    def _entered(self, action: Callable[[bool], _R]) -> _R:
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

    def _check_nested(self) -> None:
        """Raise CallError if the execution is in use, except by a host function of this thread's
        run."""
        owner = self.execution.owner or self.thread
        if owner != threading.get_ident():
            raise CallError("this instance is in use by another thread; each thread needs its own")
        if self.machine.control.status != Status.HOST:
            raise CallError(
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
        if not is_nested and not self._stopped:
            self._restore(self._idle())
        call = Call(self, target, self._registers())
        self._push(call, arguments)
        with self._popped(call, is_nested):
            execution = self.execution
            status = execution.go_nested() if is_nested else execution.go(fuel, backend)
            return self._ended(call, status, is_nested)

    def _push(self, call: Call, arguments: Sequence[object]) -> None:
        """Push a frame and set pc to its entry."""
        machine, target, before = self.machine, call.target, call.before
        frame = before.sp + len(target.signature.parameters)
        if frame + target.frame_words > machine.memory.stack_words:
            raise CallError(f"{target.name}: the stack has no room for a call; raise its limit")
        with ours():
            frame_struct(target.signature).pack_into(
                machine.memory.stack.cast("B"),
                WORD_BYTES * before.sp,
                *arguments,
                before.pc + 1,
                frame - before.fp,
            )
        control = machine.control
        control.pc, control.sp, control.fp = target.entry, frame + HEADER_WORDS, frame
        control.status = Status.RUNNING

    @contextlib.contextmanager
    def _popped(self, call: Call, is_nested: bool = False) -> Iterator[None]:
        """Remove a call from the stack when it ends; a stopped call remains."""
        try:
            yield
        finally:
            if self.suspended is not call:
                self._restore(call.before)
            if not is_nested:
                self._arm()

    def _ended(self, call: Call, status: Status, is_nested: bool) -> Value:
        """The value of a call that has ended. Raises for all other ends."""
        machine, target = self.machine, call.target
        if status is Status.TRAP:
            raise trap_raised(machine)
        if status is Status.HALT:
            if machine.control.pc != target.halt:
                where = machine.position or f"pc {machine.control.pc}"
                raise CallError(f"{target.name}: the program ended at {where}, inside the call")
            types = target.signature.results
            end = machine.control.sp
            return values(types, machine.memory.stack[end - len(types) : end].tolist())
        if not is_nested:
            self._stop(call)
        if status is Status.INTERRUPTED:
            raise ProgramInterrupted(machine, None if is_nested else call)
        raise OutOfFuelError(call)

    def _stop(self, call: Call) -> None:
        self._stopped.append(call)
        self.thread = 0

    def _take(self, call: Call, is_nested: bool) -> None:
        """Remove a stopped call from the list."""
        if is_nested or self.suspended is not call:
            raise CallError(f"{call.name}: this is not the call that stopped last")
        self._stopped.pop()

    def _idle(self) -> Registers:
        if self.idle is None:
            control = self.machine.control
            if control.status != Status.HALT:
                raise CallError(
                    "the program has not run to its end: only host functions can call it"
                )
            self.idle = self._registers()
        return self.idle

    def _registers(self) -> Registers:
        control = self.machine.control
        return Registers(
            control.pc, control.sp, control.fp, control.status, control.trap, control.exit_id
        )

    def _restore(self, registers: Registers) -> None:
        control = self.machine.control
        control.pc, control.sp, control.fp = registers.pc, registers.sp, registers.fp
        control.status, control.trap = registers.status, registers.trap
        control.exit_id = registers.exit_id

    def _arm(self) -> None:
        """Make `run` usable if no call is active and the backend can be entered directly."""
        self._direct = None if self._stopped else self.execution.direct()
        self.thread = 0
        if self._direct is not None and self._direct.is_native():
            self.run, self.thread = self._direct.run, threading.get_ident()
