# SPDX-License-Identifier: Apache-2.0
"""Native code of a region that leaves at its n-th safepoint; the reference goes on, and comes to the same end.

Code with `Forcing.DEOPT` leaves at a place that follows from the number of its entries; here that number is set, and
the place is all that it says.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from unittest import mock

import ferryvm
from ferryvm import Engine, TrapError
from ferryvm.backend import Forcing, Options
from ferryvm.engine.execution import Execution
from ferryvm.machine.control import Status
from ferryvm.region.region import RegionKind, region, regions
from ferryvm.verify import Verified, verify
from ferryvm_backends.llvm import BACKEND, lower
from ferryvm_backends.llvm.build import improved
from ferryvm_backends.llvm.region_code import RegionCode
from ferryvm_backends.llvm.symbol import ENTRIES

_ENTER = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
_FAR = 1 << 40
_MOST = 20_000
"""Instructions, where a fault makes a program endless."""

End = tuple[str, str, object]
"""Output, trap and state at the end of a program."""


def compiled(verified: Verified, name: str) -> RegionCode:
    """The code of a region, which leaves at the safepoint whose number is one more than its entries."""
    word = lower.word

    def every(value: int) -> object:
        return word(_FAR if value == 7 else value)

    with mock.patch.object(lower, "word", every):
        code = BACKEND.compile(
            region(verified, name),
            Options(forcing=frozenset({Forcing.DEOPT}), cache=False, lanes=1, check=True),
        )
    assert isinstance(code, RegionCode)
    return code


def grouped(verified: Verified) -> str:
    """The first launch of a program whose code has parallel regions. Raises LookupError."""
    for each in regions(verified):
        if each.kind is RegionKind.LAUNCH:
            module, _ = improved(each, Options(lanes=1))
            if module.groups:
                return each.name
    raise LookupError("no items wait for each other")


class Program:
    """A program with the code of a launch of groups, which is entered the first time that control comes there."""

    def __init__(self, text: str) -> None:
        """Raises LookupError if control comes to none within `_MOST` instructions."""
        self.verified = verify(ferryvm.compile(text, "p"))
        name = grouped(self.verified)
        self.code = compiled(self.verified, name)
        self._entry = region(self.verified, name).entry
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
        """True if the code leaves at its safepoint of a number, from 1 on, and not before by itself; the end to
        which the reference comes from there."""
        execution, printed = self._started()
        execution.run(self._before)
        control = execution.machine.control
        self.code._activity[ENTRIES] = number - 1
        _ENTER(self.code.address)(ctypes.addressof(control))
        control.status = Status.RUNNING
        return not control.scratch[0], self._end(execution, printed)


def differences(text: str, step: int = 1, growth: float = 0.0) -> Iterator[tuple[int, End, End]]:
    """The safepoints, every `step`-th of them, from which the reference comes to another end than without native
    code; each with both ends. `growth`: of the step, for each safepoint so far. Raises LookupError if there is no
    such code."""
    program = Program(text)
    number, is_forced = 1, True
    while is_forced:
        is_forced, end = program.left_at(number)
        if end != program.expected:
            yield number, end, program.expected
        number += step + int(growth * number)
