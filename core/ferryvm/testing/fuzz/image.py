# SPDX-License-Identifier: Apache-2.0
"""Trials of files that may be altered: they are refused in one clear line, or run alike
everywhere."""

from __future__ import annotations

import dataclasses

from ferryvm import asm
from ferryvm.backend import BackendError, RefusalError
from ferryvm.engine import Engine, Execution, TrapError
from ferryvm.engine.saved import STATE, pack_state, unpack_state
from ferryvm.errors import FerryError
from ferryvm.image import from_bytes, to_bytes
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.program import Program
from ferryvm.testing.differential import Comparison, Differ, Verdict, judge
from ferryvm.testing.fuzz.plan import CampaignPlan
from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.schedule import Schedule
from ferryvm.testing.trial import Trial
from ferryvm.verify import Verified, verify

MOST = 4_000
"""Instructions that an altered program runs: many loop for ever, and the reference is slow."""

_LATEST_SAVE = 2_000
"""Instructions after which a state is saved at the latest."""

_LONGEST_MESSAGE = 2000
_MOST_TRAP_LINES = 40


class Refused(Exception):  # noqa: N818 - most mutants are; nothing is wrong
    """The file is not a program or state, and was refused as it should be."""


class ImageFault(Exception):  # noqa: N818 - what a trial looks for, not an error of the trial
    """A violation of this promise."""

    def __init__(self, what: str, text: str) -> None:
        super().__init__(text)
        self.what = what


@dataclasses.dataclass(frozen=True)
class Tried:
    """A comparison, with the data for repeating it if a program's start is enough."""

    comparison: Comparison
    differ: Differ | None = None
    program: Verified | None = None
    schedule: Schedule = Schedule.NONE
    seed: int = 0


Judged = tuple[Status, list[Tried]]
"""The end of a program on the baseline, and its comparisons."""


def compare(differ: Differ, program: Verified, plan: CampaignPlan, seed: int) -> Judged:
    """A program compared under all schedules of a plan."""
    expected = differ.finish(differ.start(program))
    return expected.status, [
        Tried(comparison, differ, program, schedule, seed)
        for schedule in plan.schedules
        for comparison in differ.compare(program, schedule, seed, expected=expected)
    ]


class ImageJudge:
    """Tries files, with engines that live as long as the process."""

    def __init__(self, plan: CampaignPlan, differ: Differ) -> None:
        """`differ`: one whose trials take at most MOST instructions."""
        self.plan, self.differ = plan, differ
        self.limits = differ.limits or Limits()
        self.engine = Engine(plan.against, limits=self.limits, registry=differ.registry)

    def judge(self, chance: Chance, content: bytes, seed: int) -> Judged:
        """The comparison of the backends on the file; `seed` is that of schedules.

        Raises Refused, ImageFault; any other error that is no BackendError is a fault, too.
        """
        try:
            start, verified = self._start(content)
        except BackendError:
            raise
        except FerryError as error:
            _check_message(error)
            raise Refused from None
        if verified is not None and chance.flip(0.01):
            _check_listing(verified.program, content)
        tried: list[Tried] = []
        if verified is not None:
            status, tried = compare(self.differ, verified, self.plan, seed)
            if not chance.flip(0.1):
                return status, tried
        expected = self.differ.finish(start.again_from_here())
        if expected.status is Status.TRAP:
            _check_trap(expected)
        if verified is None:
            program = start.execution.machine.verified
            tried += [Tried(one) for one in self.differ.compare(program, expected=expected)]
        if all(one.comparison.verdict is Verdict.AGREE for one in tried):
            tried.append(Tried(self._compare_saved(chance, start, expected)))
        return expected.status, tried

    def _start(self, content: bytes) -> tuple[Trial, Verified | None]:
        """A trial of the file's content, and its program if it has nothing else."""
        if content.startswith(STATE.magic):
            machine, _ = unpack_state(content, self.limits, "mutant")
            return Trial(Execution(self.engine, machine, 0.0), MOST), None
        verified = verify(from_bytes(content, "mutant"))
        return Trial(self.engine.start(verified), MOST), verified

    def _compare_saved(self, chance: Chance, start: Trial, expected: Trial) -> Comparison:
        """A program that is saved on one backend and resumed on another."""
        names = (self.plan.against, *self.plan.backends)
        pair = first, second = chance.pick(names), chance.pick(names)
        trial = start.fork()
        try:
            steps = chance.below(_LATEST_SAVE)
            failure = trial.attempt(first, steps, self.plan.patience) if steps else None
            if failure is None:
                trial = self._resumed(first, trial)
                failure = (
                    trial.attempt(second, MOST, self.plan.patience) if trial.remaining else None
                )
        except RefusalError as error:
            return Comparison(pair, Verdict.UNSUPPORTED, 1, 0, reason=str(error))
        found = judge(expected, trial, failure)
        verdict = Verdict.AGREE if found is None else Verdict.DISAGREE
        return Comparison(pair, verdict, 1, trial.instructions, difference=found)

    def _resumed(self, first: str, trial: Trial) -> Trial:
        """The trial, saved and loaded again."""
        saved = pack_state(trial.execution.machine, None)
        try:
            machine, _ = unpack_state(saved, self.limits, "state")
        except FerryError as error:
            after = f"{trial.instructions} instructions"
            text = f"saved by {first} after {after}, then refused: {error}"
            raise ImageFault("saved state", text) from None
        resumed = Trial(Execution(self.engine, machine, 0.0), trial.most)
        resumed.remaining = trial.remaining
        resumed.output += trial.output
        return resumed


def _check_listing(program: Program, image: bytes) -> None:
    """Check that assembling a disassembly, where there is one, gives the same image."""
    try:
        text = asm.disassemble(program)
    except FerryError as error:
        _check_message(error)
        return
    if to_bytes(asm.assemble(text)) != image:
        raise ImageFault("disassembly", "its disassembly assembles to another image")


def _check_message(error: FerryError) -> None:
    text = str(error)
    if len(text.splitlines()) != 1 or len(text) > _LONGEST_MESSAGE:
        shown = text[:_LONGEST_MESSAGE]
        raise ImageFault("message", f"refused, but not in one clear line: {shown!r}") from None


def _check_trap(trial: Trial) -> None:
    text = str(TrapError(trial.execution.machine))
    if len(text.splitlines()) > _MOST_TRAP_LINES:
        raise ImageFault("message", f"the message of a trap is long: {text[:_LONGEST_MESSAGE]!r}")
