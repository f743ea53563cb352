# SPDX-License-Identifier: Apache-2.0
"""One trial of a random Python function: CPython against each backend, and a reduced finding."""

from __future__ import annotations

import ast
import linecache
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ferryvm import policy as policies
from ferryvm.deadline import Deadline
from ferryvm.engine.marshal import CallError
from ferryvm.engine.runnable import MIXED
from ferryvm.python.fault import UnsupportedError
from ferryvm.registry import Registry
from ferryvm.testing.differential import Verdict
from ferryvm.testing.fuzz.notes import Notes
from ferryvm.testing.fuzz.outcome import Finding, TrialOutcome
from ferryvm.testing.fuzz.plan import CampaignPlan
from ferryvm.testing.generate import ProgramKind, python_program
from ferryvm.testing.generate.weights import Weights
from ferryvm.testing.map_check import Each, Folded, differences, item_outcomes
from ferryvm.testing.python_check import CheckedFunction, PythonDifference, outcome_of

_FILE = "<random function>"


class PythonJudge:
    """Compares random Python functions with CPython."""

    def __init__(self, plan: CampaignPlan, notes: Notes) -> None:
        self.plan, self.notes = plan, notes
        self._policy = None if plan.policy is None else policies.load(plan.policy, Registry().names)

    def judge(
        self, number: int, kind: ProgramKind, weights: Weights | None
    ) -> tuple[TrialOutcome, list[tuple[Finding, bytes]]]:
        """The outcome of a trial, and its findings with texts for a corpus of tests. Raises what a
        backend should not."""
        program = python_program(self.plan.seed, number, weights, kind)
        self.notes.run()
        function, arguments = _load(program.source(), program.calls)
        oracle = _ORACLES[kind]
        wanted = [oracle.wanted(function, each) for each in arguments]
        has_raised = bool(wanted) and all(each.error is not None for each in wanted)
        outcome = TrialOutcome.TRAPPED if has_raised else TrialOutcome.HALTED
        found = []
        for name in self.plan.backends:
            self._enter(name)
            checked = self._checked(function, name)
            try:
                for call, given, each in zip(program.calls, arguments, wanted, strict=True):
                    self.notes.step()
                    difference = oracle.difference(checked, each, given)
                    if difference is not None:
                        self.notes.compare(name, Verdict.DISAGREE)
                        found.append(
                            self._finding((number, kind), name, program.source(), call, difference)
                        )
                        outcome = TrialOutcome.DISAGREE
                        break
                else:
                    self.notes.compare(name, Verdict.AGREE)
            except oracle.refusals:
                outcome = TrialOutcome.REFUSED
                break  # on every backend
        return outcome, found

    def _enter(self, backend: str) -> None:
        self.notes.enter(self.notes.names.index(backend))

    def _checked(self, function: Callable[..., Any], backend: str) -> CheckedFunction:
        if backend == MIXED:
            return CheckedFunction(function, None, self._policy)
        return CheckedFunction(function, backend)

    def _finding(
        self,
        origin: tuple[int, ProgramKind],
        backend: str,
        text: str,
        call: str,
        difference: PythonDifference,
    ) -> tuple[Finding, bytes]:
        from ferryvm.testing.reduction.python_cut import EndlessError, bounded, reduced

        number, kind = origin
        oracle, deadline = _ORACLES[kind], Deadline(self.plan.patience)
        last = difference

        def is_interesting(text: str, call: str) -> bool:
            nonlocal last
            if deadline.is_over:
                return False
            try:
                function, (given,) = _load(text, [call])
                if not isinstance(given, tuple):
                    return False
                wanted = oracle.wanted(lambda *each: bounded(function, *each), given)
                found = oracle.difference(self._checked(function, backend), wanted, given)
            except (Exception, EndlessError):  # noqa: BLE001  # such a text shows something else
                return False
            if found is None or found.what != difference.what:
                return False
            last = found
            return True

        text, call = reduced(text, call, is_interesting, self.notes.step)
        shown = " ".join(last.text.split())
        name = f"random_{self.plan.seed}_{number}"
        detail = "\n".join([*_for_corpus(text, call, name), "", f"# {backend}: {shown}", ""])
        finding = Finding(
            number,
            kind,
            TrialOutcome.DISAGREE,
            backend,
            difference.what,
            f"f{call} on {backend}: {shown}",
            detail,
        )
        return finding, detail.encode()


class _Oracle(NamedTuple):
    """The outcome of a call by CPython, and the difference of another one to it."""

    wanted: Callable[[Callable[..., Any], tuple[Any, ...]], Any]
    difference: Callable[[CheckedFunction, Any, tuple[Any, ...]], PythonDifference | None]
    refusals: tuple[type[Exception], ...]


_ORACLES = {
    ProgramKind.PYTHON: _Oracle(outcome_of, CheckedFunction.difference, (UnsupportedError,)),
    ProgramKind.MAP: _Oracle(
        item_outcomes,
        lambda *call: next(differences(*call), None),
        (UnsupportedError, CallError),
    ),
}


def _load(text: str, calls: Sequence[str]) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
    """The function `f` of a text, and arguments."""
    linecache.cache[_FILE] = len(text), None, text.splitlines(keepends=True), _FILE
    names: dict[str, Any] = {"__name__": _FILE, "Each": Each, "Folded": Folded}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler, about odd code
        exec(compile(text, _FILE, "exec"), names)  # noqa: S102  # a generated text
        return names["f"], [eval(call, names) for call in calls]


def _for_corpus(text: str, call: str, name: str) -> Iterator[str]:
    """The lines of a case for a corpus."""
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            if node is tree.body[-1]:
                yield f"@case({call})"
                node.name = name
            yield from [*ast.unparse(node).splitlines(), "", ""]
