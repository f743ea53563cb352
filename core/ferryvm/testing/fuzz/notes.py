# SPDX-License-Identifier: Apache-2.0
"""Progress notes of a worker in memory shared with its parent, readable after its death.

    word 0         what the worker is doing, a `Stage`
         1         number of the trial that it is at, or was at last
         2         number of the backend that was entered last
         3         trials done
         4         steps of bisecting, so that it is seen to get on
         5         regions compiled
         6 ...     trials by kind and outcome, comparisons by backend and verdict, then programs
                   by what is rare in them

A word is written whole, so a worker that dies at any moment leaves counts that add up.
"""

from __future__ import annotations

import enum
import mmap
import os
from collections.abc import Iterable

from ferryvm.testing.differential import Verdict
from ferryvm.testing.fuzz.outcome import TrialOutcome
from ferryvm.testing.fuzz.plan import CampaignPlan
from ferryvm.testing.generate import Corner, ProgramKind

_STAGE, _NUMBER, _BACKEND, _DONE, _STEPS, _COMPILED, _COUNTS = range(7)
_KINDS, _OUTCOMES, _VERDICTS = tuple(ProgramKind), tuple(TrialOutcome), tuple(Verdict)
_CORNERS = tuple(Corner)


class Stage(enum.IntEnum):
    """The stage of a worker's work."""

    IDLE = 0
    GENERATING = 1
    RUNNING = 2


class Notes:
    """The shared words of one worker."""

    def __init__(self, descriptor: int, plan: CampaignPlan, is_new: bool) -> None:
        """`descriptor`: of a file that both processes map; `is_new`: it is empty still."""
        self.names = (plan.against, *plan.backends)
        self._corners = _COUNTS + len(_KINDS) * len(_OUTCOMES) + len(self.names) * len(_VERDICTS)
        size = 8 * (self._corners + len(_CORNERS))
        if is_new:
            os.truncate(descriptor, size)
        self._words = memoryview(mmap.mmap(descriptor, size)).cast("Q")

    @property
    def stage(self) -> Stage:
        """The worker's current stage."""
        return Stage(self._words[_STAGE])

    @property
    def number(self) -> int:
        """The trial that it is at, or was at last."""
        return self._words[_NUMBER]

    @property
    def done(self) -> int:
        """Trials done."""
        return self._words[_DONE]

    @property
    def backend(self) -> str:
        """The backend that was entered last."""
        return self.names[self._words[_BACKEND]]

    @property
    def progress(self) -> tuple[int, ...]:
        """A number that changes while the worker makes progress."""
        return self._words[_DONE], self._words[_STAGE], self._words[_STEPS]

    @property
    def compiled(self) -> int:
        """Regions that compilers have made code of."""
        return self._words[_COMPILED]

    def outcomes(self) -> dict[tuple[ProgramKind, TrialOutcome], int]:
        """Trials done, by kind and outcome."""
        pairs = [(kind, outcome) for kind in _KINDS for outcome in _OUTCOMES]
        return dict(zip(pairs, self._words[_COUNTS:].tolist(), strict=False))

    def verdicts(self) -> dict[tuple[str, Verdict], int]:
        """Comparisons, by backend and verdict."""
        pairs = [(name, verdict) for name in self.names for verdict in _VERDICTS]
        first = _COUNTS + len(_KINDS) * len(_OUTCOMES)
        return dict(zip(pairs, self._words[first : self._corners].tolist(), strict=True))

    def corners(self) -> dict[Corner, int]:
        """Programs that had it, by what is rare."""
        return dict(zip(_CORNERS, self._words[self._corners :].tolist(), strict=True))

    # --- the worker's side ------------------------------------------------------------------

    def begin(self, number: int) -> None:
        """A trial begins: its program is being generated."""
        self._words[_NUMBER] = number
        self._words[_STAGE] = Stage.GENERATING

    def run(self) -> None:
        """The program is there: backends come next."""
        self._words[_STAGE] = Stage.RUNNING

    def occur(self, corners: Iterable[Corner]) -> None:
        """The program has these."""
        for corner in corners:
            self._words[self._corners + _CORNERS.index(corner)] += 1

    def enter(self, backend: int) -> None:
        """A backend is entered."""
        self._words[_BACKEND] = backend

    def compile(self) -> None:
        """A compiler has made code of a region."""
        self._words[_COMPILED] += 1

    def step(self) -> None:
        """Bisecting has got on."""
        self._words[_STEPS] += 1

    def end(self, kind: ProgramKind, outcome: TrialOutcome) -> None:
        """The trial has ended."""
        self._words[_STAGE] = Stage.IDLE
        self._words[_COUNTS + _KINDS.index(kind) * len(_OUTCOMES) + _OUTCOMES.index(outcome)] += 1
        self._words[_DONE] += 1

    def compare(self, backend: str, verdict: Verdict) -> None:
        """A backend was compared."""
        first = _COUNTS + len(_KINDS) * len(_OUTCOMES)
        place = self.names.index(backend) * len(_VERDICTS) + _VERDICTS.index(verdict)
        self._words[first + place] += 1
