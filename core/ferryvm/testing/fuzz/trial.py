# SPDX-License-Identifier: Apache-2.0
"""One trial: the program of one number, made and compared."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ferryvm import policy as policies
from ferryvm.backend import Interpreter, RefusalError
from ferryvm.image import to_bytes
from ferryvm.machine.control import Status
from ferryvm.machine.memory import Limits
from ferryvm.program import Program
from ferryvm.registry import Registry
from ferryvm.testing.differential import Comparison, Differ, Verdict
from ferryvm.testing.fuzz.host import load_hosts
from ferryvm.testing.fuzz.image import MOST as MOST_OF_IMAGE
from ferryvm.testing.fuzz.image import ImageFault, ImageJudge, Refused, Tried, compare
from ferryvm.testing.fuzz.notes import Notes
from ferryvm.testing.fuzz.outcome import (
    ENDS,
    Finding,
    TrialOutcome,
    how_it_failed,
    outcome_of,
    what_differs,
)
from ferryvm.testing.fuzz.plan import CampaignPlan
from ferryvm.testing.fuzz.store import Store, StoreError
from ferryvm.testing.fuzz.watch import CompilerFault, WatchedRegistry
from ferryvm.testing.generate import (
    LIMITS,
    MOST_INSTRUCTIONS,
    MUTATED,
    OF_PYTHON,
    Corner,
    ProgramKind,
    generate,
    mutated_image,
    python_program,
)
from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.weights import Weights
from ferryvm.testing.schedule import Schedule
from ferryvm.verify import verify

if TYPE_CHECKING:
    from ferryvm.testing.fuzz.python_trial import PythonJudge


class Judge:
    """Tries programs, one after another."""

    def __init__(self, plan: CampaignPlan, notes: Notes) -> None:
        """Raises UnknownNameError or BackendError if one of the backends is not available."""
        self.plan, self.notes = plan, notes
        policy = None if plan.policy is None else policies.load(plan.policy, Registry().names)
        self.registry = WatchedRegistry(notes, policy)
        self.hosts = load_hosts(self.registry, plan.hosts)
        self._differs: dict[tuple[Limits, float], Differ] = {}
        """By the limits of programs, and the patience with them."""
        self.differ = self._differ_of(0)
        """The Differ of the current trial, if it is of no mutated file."""
        limits = LIMITS
        if plan.object_limit is not None:
            limits = dataclasses.replace(LIMITS, objects=plan.object_limit)
        self.images = ImageJudge(plan, self._differ(MOST_OF_IMAGE, limits, plan.patience))
        self.weights: Weights | None = Weights.load(plan.weights) if plan.weights else None
        self.store = Store(plan)
        self.reasons: dict[str, str] = {}
        """For each backend that could not run a program: one reason why."""
        self._warm_up()

    def _warm_up(self) -> None:
        """Trigger one-time builds of backends, so that they delay no trial."""
        program = verify(generate(0, 0))
        for name in self.notes.names:
            backend = self.registry.get(name)
            assert isinstance(backend, Interpreter)
            with contextlib.suppress(Exception):  # trials will show it
                if backend.accepts(program) is None:
                    backend.prepare(program)

    def _differ(self, most: int, limits: Limits, patience: float) -> Differ:
        plan = self.plan
        names = plan.backends, plan.against, self.registry
        return Differ(*names, limits, most, plan.forcing, patience)

    def _differ_of(self, number: int) -> Differ:
        """The Differ for a trial's program."""
        limits = self.plan.limits(number)
        patience = self.plan.patience_of(number)
        if (limits, patience) not in self._differs:
            self._differs[limits, patience] = self._differ(MOST_INSTRUCTIONS, limits, patience)
        return self._differs[limits, patience]

    def judge(self, number: int) -> list[Finding]:
        """Try one program; the findings, saved already."""
        began = time.monotonic()
        self.notes.begin(number)
        self.differ = self._differ_of(number)
        self._set_effort(number)
        kind = self.plan.kind(number)
        if kind in OF_PYTHON:
            return self._judge_python(number, kind)
        made: bytes | Program | None = None
        findings: list[Finding] = []
        faults: list[CompilerFault] = []
        try:
            if kind in MUTATED:
                made = content = mutated_image(self.plan.seed, number, kind)
                self.notes.run()
                chance = Chance("judge", self.plan.seed, number)
                status, tried = self.images.judge(chance, content, self._move_seed(number))
            else:
                corners: Counter[Corner] = Counter()
                made = program = generate(
                    self.plan.seed, number, kind, self.weights, corners, self.hosts
                )
                self.notes.run()
                self.notes.occur(corners)
                status, tried = compare(
                    self.differ, verify(program), self.plan, self._move_seed(number)
                )
            outcome = self._outcome(status, tried)
            is_slow = time.monotonic() - began >= self.plan.patience_of(number)
            faults = self._compiler_faults()
            trace = _trace(faults[0].error) if faults else ""
            for one in _once(tried):
                self._note(one.comparison)
                if one.comparison.verdict is Verdict.DISAGREE:
                    finding = self._disagreement(number, kind, one, trace)
                    findings.append(self._saved(finding, one, _content(made), is_slow))
            if outcome in _OF_COMPILERS:
                faults = []  # the trial has that outcome
                self.registry.compiler_faults.clear()  # what bisecting has raised again
        except Refused:
            outcome = TrialOutcome.REFUSED
        except RefusalError as error:
            outcome = TrialOutcome.UNSUPPORTED
            # Nothing can be compared if the baseline fails.
            for name in self.plan.backends:
                reason = str(error)
                self._note(Comparison((name,), Verdict.UNSUPPORTED, 0, 0, reason=reason))
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - any at all is what is being looked for
            outcome = TrialOutcome.ERROR
            findings.append(self.store.save(self._error(number, kind, error), _content(made)))
        for fault in faults or self._compiler_faults():
            outcome, content = TrialOutcome.ERROR, to_bytes(fault.program.program)
            findings.append(self.store.save(self._error(number, kind, fault.error), content))
        self.notes.end(kind, outcome)
        return findings

    def _judge_python(self, number: int, kind: ProgramKind) -> list[Finding]:
        """Try one Python function."""
        findings: list[Finding] = []
        try:
            outcome, found = self._python.judge(number, kind, self.weights)
            findings += [self.store.save(finding, content) for finding, content in found]
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - any at all is what is being looked for
            outcome = TrialOutcome.ERROR
            text = python_program(self.plan.seed, number, self.weights, kind).source()
            finding = self._error(number, kind, error)
            findings.append(self.store.save(finding, text.encode()))
        self.notes.end(kind, outcome)
        return findings

    @functools.cached_property
    def _python(self) -> PythonJudge:
        from ferryvm.testing.fuzz.python_trial import PythonJudge  # imports NumPy and more

        return PythonJudge(self.plan, self.notes)

    def _set_effort(self, number: int) -> None:
        """Make a trial thorough, or quick."""
        is_thorough = self.plan.is_thorough(number)
        self.registry.effort.quick = not is_thorough
        form = None if is_thorough else bool(number % 2)
        self.differ.form = self.images.differ.form = form

    def _compiler_faults(self) -> list[CompilerFault]:
        """Exceptions of compilers since the last trial, each place once."""
        found = {_place(fault.error): fault for fault in reversed(self.registry.compiler_faults)}
        self.registry.compiler_faults.clear()
        return list(found.values())

    def _move_seed(self, number: int) -> int:
        return self.plan.seed ^ number

    @staticmethod
    def _outcome(status: Status, tried: list[Tried]) -> TrialOutcome:
        verdicts = {one.comparison.verdict for one in tried}
        for one in tried:
            if one.comparison.difference is not None:
                return outcome_of(one.comparison.difference)
        for verdict, outcome in (
            (Verdict.UNSUPPORTED, TrialOutcome.UNSUPPORTED),
            (Verdict.DIVERGE, TrialOutcome.DIVERGED),
        ):
            if verdict in verdicts:
                return outcome
        return ENDS[status]

    def _note(self, comparison: Comparison) -> None:
        """Count a comparison for the backend that it is about; moves are about several."""
        if len(comparison.backends) == 1:
            (name,) = comparison.backends
            self.notes.compare(name, comparison.verdict)
            if comparison.reason and comparison.verdict is Verdict.UNSUPPORTED:
                self.reasons.setdefault(name, comparison.reason)

    def _disagreement(self, number: int, kind: ProgramKind, one: Tried, trace: str) -> Finding:
        """The finding of a comparison; `trace`: the traceback of a compiler's exception, if there
        was one."""
        comparison = one.comparison
        found = comparison.difference
        assert found is not None
        how = "" if comparison.is_counted else ", not counting"
        if len(comparison.backends) > 1:
            how = ", moved" if one.differ else ", saved and resumed"
        names = ", ".join(comparison.backends)
        outcome = outcome_of(found)
        if outcome in _OF_COMPILERS:  # it fails alike, however the program gets there
            return Finding(number, kind, outcome, names, what_differs(found), found.right, trace)
        text = f"{self.plan.against} and {names}{how}: {found}"
        return Finding(number, kind, outcome, names, what_differs(found) + how, text)

    def _saved(self, finding: Finding, one: Tried, content: bytes | None, is_slow: bool) -> Finding:
        """The finding, saved; bisected, unless the trial hit its time limit."""
        if one.differ is None or one.program is None:
            return self.store.save(finding, content)
        return self.store.record(
            finding,
            one.differ,
            one.program,
            one.comparison,
            one.schedule,
            one.seed,
            self.notes.step,
            0.0 if is_slow else self.plan.patience,
        )

    def _error(self, number: int, kind: ProgramKind, error: Exception) -> Finding:
        if isinstance(error, ImageFault):
            return Finding(number, kind, TrialOutcome.ERROR, "", error.what, str(error))
        name = type(error).__name__
        place = _place(error)
        text = f"{name}: {' '.join(str(error).split())} (at {place})"
        return Finding(
            number, kind, TrialOutcome.ERROR, "", f"{name} at {place}", text, _trace(error)
        )


_OF_COMPILERS = (TrialOutcome.MALFORMED, TrialOutcome.ERROR)


def _trace(error: Exception) -> str:
    return "".join(traceback.format_exception(error))


def _place(error: Exception) -> str:
    """The place where an exception was raised."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(where.filename).name}:{where.lineno}"


def _once(tried: list[Tried]) -> Iterator[Tried]:
    """Comparisons, without moves in which a backend makes no code as it made none alone."""
    failures = set()
    for one in tried:
        found = one.comparison.difference
        if found is not None and how_it_failed(found) is not None:
            if one.schedule is not Schedule.NONE and found.right in failures:
                continue
            failures.add(found.right)
        yield one


def _content(made: bytes | Program | None) -> bytes | None:
    """The file of a trial's program; None if it was not generated."""
    return to_bytes(made) if isinstance(made, Program) else made
