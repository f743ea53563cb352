# SPDX-License-Identifier: Apache-2.0
"""Code of a region that leaves at its n-th safepoint; the reference goes on, and comes to the same
end.

Code with `Forcing.DEOPT` leaves at a place that follows from the number of its entries; here that
number is set, and the place is all that it says.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import ferryvm
from ferryvm import Engine, TrapError
from ferryvm.backend import Code, Compiler, Forcing, Options
from ferryvm.compiler import lifted
from ferryvm.engine.execution import Execution
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.region.region import Region, RegionKind, region, regions
from ferryvm.verify import Verified, verify
from ferryvm_backends.llvm import BACKEND, lower
from ferryvm_backends.vliw import BACKEND as VLIW
from ferryvm_backends.vliw import entry

from ..faults.compilers.search import CC

_ENTER = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
_FAR = 1 << 40
_MOST = 20_000
"""Instructions, where a fault makes a program endless."""

_FORCED = Options(forcing=frozenset({Forcing.DEOPT}), cache=False, lanes=1, check=True)

_COUNTING = Options(counting=True, cache=False, lanes=1, check=True)
_MOST_PAID = 200
"""More than the instructions for which code pays at once."""

End = tuple[str, str, object]
"""Output, trap and state at the end of a program."""

Run = Callable[[ControlBlock, int], bool]
"""Runs code up to its safepoint of a number, from 1 on; true if the code leaves there, and not
before by itself."""


def in_lanes(place: Region) -> Run:
    """Native code by LLVM that runs items of parallel regions in four lanes."""
    return llvm(place, dataclasses.replace(_FORCED, lanes=4))


def llvm(place: Region, options: Options = _FORCED) -> Run:
    """Native code by LLVM."""

    def every(value: int) -> object:
        return word(_FAR if value == 7 else value)

    word = lower.word
    with mock.patch.object(lower, "word", every):
        return _counted(BACKEND.compile(place, options))


def counting(compiler: Compiler) -> Callable[[Region], Run]:
    """Code of a compiler that counts instructions; the number of its run is its fuel."""

    def compiled(place: Region) -> Run:
        code = compiler.compile(place, _COUNTING)

        def run(control: ControlBlock, number: int) -> bool:
            control.fuel = number
            _ENTER(code.address)(ctypes.addressof(control))
            control.instructions += number - control.fuel
            return control.fuel < _MOST_PAID

        return run

    return compiled


def cc(place: Region) -> Run:
    """Native code by the system's C compiler."""
    sys.path.append(str(CC))
    from ferryvm_cc import backend

    def text(*arguments: Any) -> str:
        return printed(*arguments).replace("% 7 + 1", f"% {_FAR} + 1")

    printed = backend.module_text
    with mock.patch.object(backend, "module_text", text):
        return _counted(backend.CcBackend().compile(place, _FORCED))


def vliw(place: Region) -> Run:
    """Code of a simulated processor, whose time slice ends after 11 cycles for each safepoint, at
    the next poll."""
    code = VLIW.compile(place, Options(check=True))
    assert isinstance(code, entry.VliwCode)
    code._entry = -1  # or it goes on by itself after a slice that ends there

    def run(control: ControlBlock, number: int) -> bool:
        with mock.patch.object(entry, "SLICE", 11 * number):
            _ENTER(code.address)(ctypes.addressof(control))
        return control.status == Status.SLICED

    return run


def _counted(code: Code) -> Run:
    """Code whose first word of activity is the number of its entries, which say where it leaves."""

    def run(control: ControlBlock, number: int) -> bool:
        code._activity[0] = number - 1  # type: ignore[attr-defined]
        _ENTER(code.address)(ctypes.addressof(control))
        return not control.scratch[0]

    return run


def grouped(verified: Verified) -> Region:
    """The first launch of a program whose code has parallel regions. Raises LookupError."""
    for each in regions(verified):
        if each.kind is RegionKind.LAUNCH and lifted(each, Options(), groups=True).groups:
            return region(verified, each.name)
    raise LookupError("no items wait for each other")


class Program:
    """A program with the code of a launch of groups, which is entered the first time that control
    comes there."""

    def __init__(self, text: str, compiled: Callable[[Region], Run]) -> None:
        """Raises LookupError if control comes to none within `_MOST` instructions."""
        self.verified = verify(ferryvm.compile(text, "p"))
        place = grouped(self.verified)
        self.run = compiled(place)
        self._entry = place.entry
        self._before = self._count()
        self.expected = self._end(*self._started())

    def _started(self) -> tuple[Execution, list[bytes]]:
        printed: list[bytes] = []
        return Engine("reference", output=printed.append).start(self.verified), printed

    def _count(self) -> int:
        execution, _ = self._started()
        for count in range(_MOST):
            if execution.machine.control.pc == self._entry:
                return count
            try:
                execution.run(1)
            except TrapError:
                break
        raise LookupError("control does not come to the region")

    @staticmethod
    def _end(execution: Execution, printed: list[bytes]) -> End:
        trap = ""
        try:
            execution.run(_MOST)
        except TrapError as error:
            trap = str(error)
        return b"".join(printed).decode(), trap, execution.machine.snapshot()

    def left_at(self, number: int) -> tuple[bool, End]:
        """True if the code leaves at its safepoint of a number, from 1 on, and not before by
        itself; the end to which the reference comes from there."""
        execution, printed = self._started()
        execution.run(self._before)
        control = execution.machine.control
        is_forced = self.run(control, number)
        control.status = Status.RUNNING
        return is_forced, self._end(execution, printed)

    def stopped_at(self, fuel: int) -> tuple[bool, tuple[End, int]]:
        """True if code that counts leaves since its fuel is used up; the end to which the reference
        comes from there, and the instructions that have completed then."""
        execution, printed = self._started()
        execution.run(self._before)
        control = execution.machine.control
        is_short = self.run(control, fuel)
        control.status = Status.RUNNING
        end = self._end(execution, printed)
        return is_short, (end, control.instructions)

    @functools.cached_property
    def instructions(self) -> int:
        """Those that complete, by the reference."""
        execution, printed = self._started()
        self._end(execution, printed)
        return execution.machine.control.instructions

    def entered_at(self, arrival: int) -> tuple[Status, End]:
        """The status with which the code leaves where it is entered when control comes to the
        launch the n-th time, from 1 on; the end to which the reference comes from there."""
        execution, printed = self._started()
        execution.run(self._before)
        control = execution.machine.control
        while arrival > 1:
            execution.run(1)
            arrival -= control.pc == self._entry
        self.run(control, _FAR)
        status, control.status = Status(control.status), Status.RUNNING
        return status, self._end(execution, printed)


def differences(
    text: str,
    step: int = 1,
    growth: float = 0.0,
    compiled: Callable[[Region], Run] = llvm,
) -> Iterator[tuple[int, End, End]]:
    """The safepoints, every `step`-th of them, from which the reference comes to another end than
    without compiled code; each with both ends. `growth`: of the step, for each safepoint so far.
    Raises LookupError if there is no such code."""
    program = Program(text, compiled)
    number, is_forced = 1, True
    while is_forced:
        is_forced, end = program.left_at(number)
        if end != program.expected:
            yield number, end, program.expected
        number += step + int(growth * number)


def miscounts(text: str, compiler: Compiler, step: int = 1) -> Iterator[int]:
    """The amounts of fuel, every `step`-th of them, with which code of a program's first launch of
    groups that counts instructions stops in a state from which the reference comes to another end,
    or to this one after another number of instructions."""
    program = Program(text, counting(compiler))
    fuel, is_short = 0, True
    while is_short:
        is_short, found = program.stopped_at(fuel)
        if found != (program.expected, program.instructions):
            yield fuel
        fuel += step
