# SPDX-License-Identifier: Apache-2.0
"""One trial: a file is refused in one clear line, or it runs alike on every backend."""

from __future__ import annotations

import enum
import random

import ferryvm
from ferryvm.engine import Engine, Execution, TrapError
from ferryvm.engine.saved import STATE, pack_state, unpack_state
from ferryvm.errors import FerryError
from ferryvm.image import ImageError, from_bytes, to_bytes
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.program import Program
from ferryvm.verify import Verified, VerifyError, verify

from .seed import LIMITS

FUEL = 20_000
SHORT_FUEL = 400
"""For trials in which the reference, which is slow, takes part."""


class Outcome(enum.Enum):
    """How a trial that found no fault ended."""

    NO_IMAGE = "refused as a file"
    NO_PROGRAM = "refused by the verifier"
    NO_START = "refused at the start"
    LARGE = "has more data than the heap's limit"
    HALTED = "ran to a halt"
    TRAPPED = "ran to a trap"
    STOPPED = "ran out of fuel"


class Fault(Exception):  # noqa: N818 - what a trial looks for, not an error of the trial
    """Something that must not happen did."""


ENDS = {
    Status.HALT: Outcome.HALTED,
    Status.TRAP: Outcome.TRAPPED,
    Status.FUEL: Outcome.STOPPED,
}


class Judge:
    """Engines that live as long as the process."""

    def __init__(self) -> None:
        self.engines = {
            name: Engine(name, limits=LIMITS) for name in ("threaded", "switch", "reference")
        }
        self._verified: Verified | None = None
        """The program being tried, once it has been verified."""

    def judge(self, rng: random.Random, content: bytes) -> Outcome:
        """How the file fared. Raises Fault; any error that is no FerryError is one, too."""
        self._verified = None
        try:
            # Comparing gigabytes of zeros that such data leaves would take all the time there is.
            if self._machine(content).control.hp > LIMITS.heap:
                return Outcome.LARGE
        except ImageError as error:
            _check_message(error)
            return Outcome.NO_IMAGE
        except VerifyError as error:
            _check_message(error)
            return Outcome.NO_PROGRAM
        except FerryError as error:
            _check_message(error)
            return Outcome.NO_START
        if self._verified is not None and rng.random() < 0.01:
            _check_listing(self._verified.program, content)
        # The reference is slow and strict: it sees a wrong state that happens to do no harm.
        with_reference = rng.random() < (0.3 if content.startswith(STATE.magic) else 0.04)
        fuel = SHORT_FUEL if with_reference else FUEL
        names = ["threaded", "switch", *["reference"] * with_reference]
        try:
            states = {name: self._run(content, name, fuel) for name in names}
        except FerryError as error:
            _check_message(error)
            return Outcome.NO_START
        _check_equal(states)
        end = states["threaded"]["status"]
        assert isinstance(end, Status)
        if end is not Status.FUEL:
            # Without fuel other code runs, with fused instructions; now it is known to end.
            plain = {f"{name} without fuel": self._run(content, name, None) for name in names[:2]}
            _check_equal({"with fuel": states["threaded"], **plain})
        if rng.random() < 0.1:
            stop = rng.randrange(SHORT_FUEL if with_reference else 2000)
            first, second = rng.choice(names), rng.choice(names)
            moved = self._run_with_move(content, first, second, stop, fuel)
            _check_equal({"at home": states["threaded"], f"{first} to {second}": moved})
        return ENDS[end]

    def _machine(self, content: bytes) -> Machine:
        if content.startswith(STATE.magic):
            return unpack_state(content, LIMITS, "mutant")[0]
        if self._verified is None:
            self._verified = verify(from_bytes(content, "mutant"))
        return Machine(self._verified, LIMITS)

    def _execution(self, content: bytes, name: str) -> Execution:
        return Execution(self.engines[name], self._machine(content), 0.0)

    def _run(self, content: bytes, name: str, fuel: int | None) -> dict[str, object]:
        execution = self._execution(content, name)
        return _state(execution, _go_on(execution, fuel))

    def _run_with_move(
        self, content: bytes, first: str, second: str, stop: int, fuel: int
    ) -> dict[str, object]:
        """As `_run`, but saved after `stop` instructions and resumed elsewhere."""
        execution = self._execution(content, first)
        output = _go_on(execution, stop)
        left = fuel - stop if execution.machine.status is Status.FUEL else fuel
        saved = pack_state(execution.machine, None)
        try:
            resumed = self._execution(saved, second)
        except FerryError as error:
            raise Fault(f"saved by {first} after {stop}, then refused: {error}") from None
        return _state(resumed, output + _go_on(resumed, left))


def _go_on(execution: Execution, fuel: int | None) -> str:
    """Run on; what the program writes."""
    chunks: list[bytes] = []
    execution.output = chunks.append
    try:
        execution.run(fuel)
    except TrapError as trap:
        if len(str(trap).splitlines()) > 40:
            raise Fault(f"the message of a trap is long:\n{trap}") from None
    return b"".join(chunks).decode(errors="replace")


def _state(execution: Execution, output: str) -> dict[str, object]:
    control, memory = execution.machine.control, execution.machine.memory
    return {
        "status": execution.machine.status,
        "trap": control.trap,
        "pc": control.pc,
        "sp": control.sp,
        "fp": control.fp,
        "hp": control.hp,
        "statics": memory.statics.tobytes(),
        "stack": memory.stack[: control.sp].tobytes(),
        "heap": memory.heap[: control.hp].tobytes(),
        "output": output,
    }


def _check_equal(states: dict[str, dict[str, object]]) -> None:
    (first, expected), *others = states.items()
    for name, state in others:
        different = [key for key in expected if expected[key] != state[key]]
        if different:
            shown = ", ".join(
                f"{key} {str(expected[key])[:60]} and {str(state[key])[:60]}" for key in different
            )
            raise Fault(f"{first} and {name} differ in {shown}")


def _check_listing(program: Program, image: bytes) -> None:
    """Check that assembling a disassembly, where there is one, gives the same image."""
    try:
        text = ferryvm.disassemble(program)
    except FerryError as error:
        _check_message(error)
        return
    if to_bytes(ferryvm.assemble(text)) != image:
        raise Fault("its disassembly assembles to another image")


def _check_message(error: FerryError) -> None:
    if len(str(error).splitlines()) != 1 or len(str(error)) > 2000:
        raise Fault(f"not one clear line: {str(error)[:2000]!r}") from None
