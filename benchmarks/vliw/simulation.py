# SPDX-License-Identifier: Apache-2.0
"""Runs on a simulated machine, checked: its code did the work, and nothing of it was left over.

    kernel   an interpreter runs the program, and calls the kernel's code
    whole    an interpreter makes the arrays, and calls the code of `work` with them, once; a program
             without that function is one region, entered once

Every stay in compiled code is watched: it has to be code of the machine asked for, and to end where
the program, or the kernel, does.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.benchmark import BenchmarkError
from benchmarks.opencl.watched import result_of
from benchmarks.report import identity
from benchmarks.vliw.figure import Building, Figure, Kernel, LoopFigure
from benchmarks.vliw.program import Simulated
from ferryvm.engine import Engine
from ferryvm.engine.journal import Attempt
from ferryvm.engine.observer import Observer
from ferryvm.errors import FerryError
from ferryvm.hooks import TransferEvent
from ferryvm.machine.control import Status
from ferryvm.policy import Policy
from ferryvm.policy.model import build_ours
from ferryvm.region.code import code as code_of
from ferryvm.verify import Verified
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.entry import VliwCode
from ferryvm_backends.vliw.machine.model import Machine
from ferryvm_backends.vliw.machine.read import find
from ferryvm_backends.vliw.simulate.metric import Issue, Words

VLIW = "vliw"

WORK = "work"
"""The function that is all of a program but for making its arrays: the elements of large ones are
prepared by the engine, for which code leaves."""

_NEVER = 10**12

_ENDS = frozenset([Status.HALT, Status.HOST])
"""Statuses that the last stay of a whole program has: it has ended, or prints its result."""


@contextlib.contextmanager
def fatal() -> Iterator[None]:
    """Have what ferryvm raises be an error of the benchmark."""
    try:
        yield
    except FerryError as error:
        raise BenchmarkError(str(error)) from error


def machine_of(name: str) -> Machine:
    """The machine of a name or a file. Raises BenchmarkError if there is none."""
    with fatal():
        return find(name)


def policy(machine: str, kernel: str | None = None) -> Policy:
    """The whole program on a machine, or one function of it alone; nothing else is compiled."""
    backend = {"name": VLIW, "device": machine, "optimize": 3}
    backend |= {"background": False, "required": True}
    rule: dict[str, Any] = {"name": "measured", "backends": [backend]}
    profile: dict[str, Any] = {"enabled": False}
    if kernel is not None:
        rule["when"] = {"function": kernel}
        profile = {"loop_threshold": _NEVER, "function_threshold": 1, "scope_threshold": _NEVER}
    return build_ours({"whole_program": kernel is None, "profile": profile, "rule": [rule]})


def run_on(backend: str, program: Simulated, verified: Verified) -> int | float:
    """The result on another backend."""
    with fatal():
        found = Engine(backend).start(verified).run()
    if found.statistics.backend != backend:
        raise BenchmarkError(f"asked for {backend}, ran on {found.statistics.backend}")
    return result_of(program, found)


class Runs:
    """Runs of a program, all of it or its kernel, with code of one machine."""

    def __init__(
        self,
        program: Simulated,
        verified: Verified,
        machine: str,
        expected: int | float,
        is_whole: bool,
    ) -> None:
        """`machine`: its name or file; `expected`: the result that each run has to have."""
        self._program, self._verified, self.expected = program, verified, expected
        names = code_of(verified).names
        function = program.kernel
        if is_whole and WORK in names:
            function, is_whole = WORK, False
        self._machine, self._is_whole = machine_of(machine), is_whole
        self._observer = Observer(transfers=True)
        self._function = names.index(function)
        with fatal():
            engine = Engine(policy=policy(machine, None if is_whole else function))
            self._observer.watch(engine)
            self._execution = engine.start(verified)

    def run(self) -> list[TransferEvent]:
        """The stays in compiled code of one more run. Raises BenchmarkError unless that did all
        that it had to, and rightly."""
        self._observer.transfers.clear()
        with fatal():
            self._execution = self._execution.again()
            value = result_of(self._program, self._execution.run())
        if identity(value) != identity(self.expected):
            name = self._machine.name
            raise BenchmarkError(f"expected {self.expected!r}, found {value!r} on {name}")
        stays = list(self._observer.transfers)
        check_stays(stays, self._is_whole, self._is_left)
        return stays

    def code(self) -> VliwCode:
        """What was compiled. Raises BenchmarkError if that is not one region for this machine."""
        attempts = [happening.detail for happening in self._observer.happenings]
        return code_for([a for a in attempts if isinstance(a, Attempt)], self._machine)

    @property
    def entry(self) -> int:
        """The pc that the kernel, or `work`, begins at."""
        return self._verified.program.functions[self._function].entry

    def calls(self, stays: Sequence[TransferEvent]) -> int:
        """How many of these stays began there."""
        return sum(stay.entry == self.entry for stay in stays)

    def loops(self, program: Program, bundles: Words) -> list[LoopFigure]:
        """The loops that were run, longest first; `bundles`: how often each was fetched."""
        names, places = code_of(self._verified).names, self._verified.program.source_map
        found = [
            LoopFigure(
                loop,
                names[self._verified.owner(loop.pc)],
                str(places.position(loop.pc) or f"pc {loop.pc}"),
                count,
            )
            for loop in program.loops
            if (count := int(bundles[loop.start : loop.end].sum()))
        ]
        return sorted(found, key=lambda each: -each.cycles)

    def _is_left(self, pc: int) -> bool:
        return self._verified.owner(pc) != self._function


def check_stays(
    stays: Sequence[TransferEvent], is_whole: bool, is_left: Callable[[int], bool]
) -> None:
    """Raise BenchmarkError unless compiled code did all that it had to.

    `is_left`: true for a pc outside the function that is compiled.
    """
    if not stays:
        raise BenchmarkError(f"the code of {VLIW} was never entered")
    for number, stay in enumerate(stays, 1):
        if is_whole:
            is_over = number == len(stays) and stay.status in _ENDS
        else:
            is_over = stay.status is Status.LEAVE and is_left(stay.exit)
        if not is_over:
            raise BenchmarkError(
                f"{stay.region} left its work to the interpreter at pc {stay.exit}, "
                f"with {stay.status.name}"
            )


def code_for(attempts: Sequence[Attempt], machine: Machine) -> VliwCode:
    """The code of the one attempt to compile.

    Raises BenchmarkError if there were others, or it failed, or is for another machine.
    """
    if len(attempts) != 1:
        regions = ", ".join(attempt.region for attempt in attempts) or "nothing"
        raise BenchmarkError(f"one region was to be compiled for {machine.name}: {regions} was")
    (attempt,) = attempts
    code = attempt.code
    if not isinstance(code, VliwCode):
        reason = attempt.reason or attempt.outcome.value
        raise BenchmarkError(f"{VLIW} has no code of {attempt.region}: {reason}")
    if code.program.machine != machine:
        name = code.program.machine.name
        raise BenchmarkError(f"asked for the machine {machine.name}, compiled for {name}")
    return code


def kernel_of(runs: Runs) -> Kernel:
    """What the calls of a program's kernel take."""
    calls = runs.calls(runs.run())
    return Kernel(runs.code().totals.cycles, calls)


class Whole:
    """A whole program, compiled, and run once to have it so."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        runs.run()
        self._code = runs.code()

    @property
    def building(self) -> Building:
        """What compiling took."""
        code, notes = self._code, self._code.notes
        scheduling = notes["lift"] + notes["schedule"]
        return Building(len(code.program.bundles), scheduling, notes["build"])

    def round(self, kernel: Kernel, figure: Figure | None) -> Figure:
        """The figure after one more run. Raises BenchmarkError if it took other cycles."""
        totals = self._code.totals
        before = dataclasses.replace(totals, bundles=totals.bundles.copy())
        self._runs.run()
        cycles = totals.cycles - before.cycles
        if figure is None:
            program, bundles = self._code.program, totals.bundles - before.bundles
            figure = Figure(
                self._runs.expected,
                kernel,
                self.building,
                cycles,
                totals.transfer_cycles - before.transfer_cycles,
                int(Issue(program).operations(bundles).sum()),
                loops=self._runs.loops(program, bundles),
            )
        elif figure.cycles != cycles:
            raise BenchmarkError(f"it took {figure.cycles} cycles, then {cycles}")
        figure.seconds.append(totals.seconds - before.seconds)
        return figure
