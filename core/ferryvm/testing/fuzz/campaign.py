# SPDX-License-Identifier: Apache-2.0
"""A campaign: the distribution of trials to worker processes, and their results.

    parent ── deals stretches of trials ──> worker ── findings, done ──> parent
       └────── reads the notes ─── how far, counts ─────┘

A worker that dies or hangs is a finding: of the trial in its notes. Another worker continues after
that trial. Trials depend on seed and number alone, so a campaign with a fixed number of programs
has one outcome, however many workers share it.
"""

from __future__ import annotations

import collections
import contextlib
import selectors
import time
from collections import Counter
from collections.abc import Callable

from ferryvm.deadline import Deadline
from ferryvm.errors import FerryError
from ferryvm.image import to_bytes
from ferryvm.testing.differential import Verdict
from ferryvm.testing.fuzz.child import WorkerProcess
from ferryvm.testing.fuzz.notes import Stage
from ferryvm.testing.fuzz.outcome import Finding, TrialOutcome
from ferryvm.testing.fuzz.plan import GRACE, CampaignPlan
from ferryvm.testing.fuzz.report import Report
from ferryvm.testing.fuzz.store import Store
from ferryvm.testing.generate import (
    MUTATED,
    OF_PYTHON,
    Corner,
    ProgramKind,
    generate,
    mutated_image,
    python_program,
)
from ferryvm.testing.generate.weights import Weights

_STRETCH_SECONDS = 0.2
"""Intended duration of a worker's stretch of trials."""

_LONGEST_STRETCH = 64
_LONGEST_START = 120.0
"""Seconds within which a worker must be ready; longer if a program may take longer."""

_TICK = 0.1
"""Seconds between two checks of silent workers."""


class Campaign:
    """Trials `first` to `end`, tried by `jobs` workers at a time."""

    def __init__(
        self,
        plan: CampaignPlan,
        jobs: int = 1,
        programs: int | None = None,
        seconds: float | None = None,
        first: int = 0,
        most_findings: int | None = None,
    ) -> None:
        """`programs`: their number; `seconds`: a time limit instead; `most_findings`: the number
        after which it ends."""
        self.plan = plan
        self.jobs = jobs if programs is None else min(jobs, programs)
        self.first, self.seconds, self.most_findings = first, seconds, most_findings
        self.end = None if programs is None else first + programs
        self.report = Report(plan, self.jobs)
        self.store = Store(plan)
        self._children: list[WorkerProcess] = []
        self._next = first
        self._returned: collections.deque[tuple[int, int]] = collections.deque()
        """Stretches whose worker died before it came to them."""
        self._outcomes: Counter[tuple[ProgramKind, TrialOutcome]] = Counter()
        self._verdicts: Counter[tuple[str, Verdict]] = Counter()
        self._corners: Counter[Corner] = Counter()
        self._compiled = 0
        """Counts of workers that have ended."""
        self._began: float | None = None
        self._selector = selectors.DefaultSelector()

    def run(self, progress: Callable[[Report], None] = lambda _: None) -> Report:
        """Run all trials. `progress` is called several times a second.

        Ctrl-C ends it, which the report states. Raises FerryError if workers cannot work.
        """
        self.store.probe()
        try:
            try:
                self._loop(progress)
            except KeyboardInterrupt:
                self.report.is_interrupted = True
            self._count()
            self._stop()
        finally:
            for child in list(self._children):
                child.process.kill()
                self._dismiss(child)
            self._selector.close()
        self._count()
        return self.report

    # --- dealing ----------------------------------------------------------------------------

    def _loop(self, progress: Callable[[Report], None]) -> None:
        self._start()
        while not self._is_over():
            for key, _ in self._selector.select(_TICK):
                self._listen(key.data)
            for child in list(self._children):
                if child.is_stuck(self._longest(child)):
                    self._bury(child, is_hang=True)
            self._staff()
            self._count()
            progress(self.report)

    def _longest(self, child: WorkerProcess) -> float:
        """Seconds without progress after which a worker is taken to hang."""
        return self.plan.longest if child.is_ready else max(self.plan.longest, _LONGEST_START)

    def _is_over(self) -> bool:
        if self.most_findings is not None and len(self.report.findings) >= self.most_findings:
            return True
        if self.seconds is not None and self.report.seconds >= self.seconds:
            return True
        is_dealt = self.end is not None and self._next >= self.end and not self._returned
        return is_dealt and not any(child.stretch for child in self._children)

    def _staff(self) -> None:
        """Start missing workers: after the first one only when one has completed a trial.

        So one-time builds of backends run once.
        """
        if self.report.programs and not self._is_over():
            while len(self._children) < self.jobs:
                self._start()
        elif not self._children:
            self._start()

    def _start(self) -> None:
        child = WorkerProcess(self.plan)
        self._children.append(child)
        self._selector.register(child.process.output, selectors.EVENT_READ, child)

    def _deal(self, child: WorkerProcess) -> None:
        """Give a worker its next stretch, if there is one."""
        if self._returned:
            child.deal(*self._returned.popleft())
            return
        size = 1
        if child.notes.done:
            rate = child.notes.done / child.seconds
            size = max(1, min(_LONGEST_STRETCH, int(rate * _STRETCH_SECONDS)))
        end = self._next + size if self.end is None else min(self._next + size, self.end)
        if end > self._next:
            child.deal(self._next, end)
            self._next = end

    # --- what workers say -------------------------------------------------------------------

    def _listen(self, child: WorkerProcess) -> None:
        """Handle a worker's messages."""
        if self._hear(child):
            child.stretch = None
            if child.is_large:
                self._retire(child)
                return
            self._deal(child)
        if child.process.has_closed:
            self._bury(child)

    def _hear(self, child: WorkerProcess) -> bool:
        """Record a worker's messages; True if it waits for work."""
        is_waiting = False
        for message in child.messages():
            if "finding" in message:
                self.report.findings.append(Finding.from_json(message["finding"]))
            if "failed" in message:
                raise FerryError(message["failed"])
            if "unsupported" in message:
                self.report.reasons = {**message["unsupported"], **self.report.reasons}
            child.is_large = child.is_large or message.get("is_large", False)
            if "ready" in message:
                child.is_ready = True
                self._began = self._began or time.monotonic()
            is_waiting = is_waiting or "ready" in message or "done" in message
        return is_waiting

    def _retire(self, child: WorkerProcess) -> None:
        """End a worker that waits for work; another one will take its place."""
        child.finish()
        if not self._await(child, GRACE):
            child.process.kill()
        self._dismiss(child)

    def _bury(self, child: WorkerProcess, is_hang: bool = False) -> None:
        """Record the trial that ended a worker, and return the rest of its stretch."""
        end = child.end(with_traceback=is_hang)
        self._hear(child)
        stage, number, backend = child.notes.stage, child.notes.number, child.notes.backend
        if stage is Stage.IDLE and child.notes.done and child.was_killed and not is_hang:
            self._bury_late(child, number, end)
            return
        if stage is Stage.IDLE or child.stretch is None:
            if is_hang:
                where = f"no progress in {self._longest(child):g} s, {child.place}"
                raise FerryError(f"a worker got no further between programs ({where})")
            raise FerryError(f"a worker ended between programs ({end}): {child.last_line}")
        if number + 1 < child.stretch[1]:
            self._returned.append((number + 1, child.stretch[1]))
        kind = self.plan.kind(number)
        outcome = TrialOutcome.HANG if is_hang else TrialOutcome.CRASH
        self._outcomes[kind, outcome] += 1
        is_made = stage is Stage.RUNNING
        what = f"no progress in {self.plan.longest:g} s" if is_hang else end
        text = f"{what}, in {backend if is_made else 'the generator'}"
        finding = Finding(
            number, kind, outcome, backend if is_made else "", what, text, child.process.said
        )
        content = self._content(number, kind) if is_made else None
        self._dismiss(child)
        self.report.findings.append(self.store.save(finding, content))

    def _bury_late(self, child: WorkerProcess, number: int, end: str) -> None:
        """Record a worker that died between two trials, for example because the last one corrupted
        memory.

        The table counts that trial by its own outcome.
        """
        if child.stretch is not None and number + 1 < child.stretch[1]:
            self._returned.append((max(number + 1, child.stretch[0]), child.stretch[1]))
        kind, backend = self.plan.kind(number), child.notes.backend
        text = f"{end}, after the program, which {backend} ran last"
        finding = Finding(number, kind, TrialOutcome.CRASH, backend, end, text, child.process.said)
        self._dismiss(child)
        self.report.findings.append(self.store.save(finding, self._content(number, kind)))

    def _dismiss(self, child: WorkerProcess) -> None:
        """Remove a worker that has ended, except for its counts."""
        self._children.remove(child)
        if (
            child.process.output in self._selector.get_map()
        ):  # unless a signal came while it was started
            self._selector.unregister(child.process.output)
        self._outcomes.update(child.notes.outcomes())
        self._verdicts.update(child.notes.verdicts())
        self._corners.update(child.notes.corners())
        self._compiled += child.notes.compiled
        child.process.close()

    def _content(self, number: int, kind: ProgramKind) -> bytes:
        if kind in MUTATED:
            return mutated_image(self.plan.seed, number, kind)
        weights = Weights.load(self.plan.weights) if self.plan.weights else None
        if kind in OF_PYTHON:
            return python_program(self.plan.seed, number, weights, kind).source().encode()
        return to_bytes(generate(self.plan.seed, number, kind, weights))

    def _count(self) -> None:
        """Bring the report up to date."""
        outcomes, verdicts = Counter(self._outcomes), Counter(self._verdicts)
        corners = Counter(self._corners)
        for child in self._children:
            corners.update(child.notes.corners())
            outcomes.update(child.notes.outcomes())
            verdicts.update(child.notes.verdicts())
        self.report.outcomes, self.report.verdicts = outcomes, verdicts
        self.report.corners = corners
        living = sum(child.notes.compiled for child in self._children)
        self.report.compiled = self._compiled + living
        if self._began is not None:
            self.report.seconds = time.monotonic() - self._began

    def _stop(self) -> None:
        """Let workers end; their last findings count."""
        if not self.report.is_interrupted:
            for child in self._children:
                child.finish()
            try:
                for child in list(self._children):
                    is_hang = not self._await(child, self.plan.longest)
                    self._hear(child)
                    if is_hang or child.has_failed:
                        self._bury(child, is_hang)
                return
            except KeyboardInterrupt:
                self.report.is_interrupted = True
        for child in self._children:
            child.process.close_input()
        with contextlib.suppress(KeyboardInterrupt):  # a second one: at once
            for child in self._children:
                self._await(child, 2 * GRACE)
                self._hear(child)

    def _await(self, child: WorkerProcess, seconds: float) -> bool:
        """Wait for the end of a worker, and read its messages meanwhile: a full pipe would block
        it."""
        deadline = Deadline(seconds)
        while not (has_ended := child.process.wait(_TICK)) and not deadline.is_over:
            self._hear(child)
        return has_ended
