# SPDX-License-Identifier: Apache-2.0
"""The input of a report: the programs that were compared, and the results."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Mapping

from ferryvm.backend import BackendError
from ferryvm.testing.differential import Comparison, Differ, Verdict
from ferryvm.testing.disagreement import versions
from ferryvm.testing.report.coverage import MOST_OBSERVED, Coverage, observe
from ferryvm.testing.report.evidence import Evidence, gather
from ferryvm.testing.schedule import Schedule
from ferryvm.verify import Verified


@dataclasses.dataclass(frozen=True)
class Result:
    """One program, compared."""

    name: str
    """Its name for the reader, mostly a file's name; may hold any character."""
    program: Verified
    comparisons: tuple[Comparison, ...]
    coverage: Coverage | None = None
    """Its coverage; None if it was not observed."""
    evidence: Mapping[int, Evidence] = dataclasses.field(default_factory=dict)
    """Details of the disagreements, by number in `comparisons`."""


@dataclasses.dataclass(frozen=True)
class Report:
    """Programs that were compared under the same conditions."""

    against: str
    schedule: Schedule
    seed: int
    versions: Mapping[str, str]
    """Versions of the backends, of ferryvm and of the libraries that they use, by name."""
    results: tuple[Result, ...]
    made: datetime.datetime


def examine(
    differ: Differ,
    name: str,
    program: Verified,
    comparisons: list[Comparison],
    seed: int = 0,
    progress: Callable[[], object] = lambda: None,
    most_observed: int = MOST_OBSERVED,
    schedule: Schedule = Schedule.RANDOM,
) -> Result:
    """A program's comparisons, made under a schedule, with all that the page shows beside them.

    Runs the program again: one instruction at a time for its coverage, `most_observed` of them at
    most, and to bisect each disagreement.
    """
    evidence = {
        number: gather(differ, program, one, seed, progress, schedule)
        for number, one in enumerate(comparisons)
        if one.verdict is Verdict.DISAGREE
    }
    try:
        coverage = observe(differ.start(program), differ.against, most_observed, progress)
    except BackendError:  # it cannot run the program or cannot count: the comparisons say so
        coverage = None
    return Result(name, program, tuple(comparisons), coverage, evidence)


def report(differ: Differ, schedule: Schedule, seed: int, results: list[Result]) -> Report:
    """A report that was made now."""
    now = datetime.datetime.now(datetime.UTC)
    return Report(
        differ.against,
        schedule,
        seed,
        versions((differ.against, *differ.backends), differ.registry),
        tuple(results),
        now,
    )
