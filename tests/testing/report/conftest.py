# SPDX-License-Identifier: Apache-2.0
"""A report with every verdict in it, as a file."""

from __future__ import annotations

from pathlib import Path

import pytest

import ferryvm
from ferryvm.testing import Differ, Schedule
from ferryvm.testing.report import Report, examine, report, write
from ferryvm.verify import verify

from ...double.suspect import with_suspects

FLOATS = """
(define v (make-array f64 2))
(define (half x) (/ x 2.0))
(define total 0.0)
(define i 0)
(while (< i 2)
  (array-set! v i (half (f64 i)))
  (set! total (+ total (array-ref v i)))
  (set! i (+ i 1)))
total
"""
LONG = "(define i 0) (while (< i 400) (set! i (+ i 1)))"
HEAP = "(define v (heap.alloc 168)) (i64.store 0 v 20) (i64.load 0 v)"

NAMES = {
    "floats.skiff": FLOATS,
    "<script>alert(1)</script>.fasm": LONG,
    f"{'a' * 300}.skiff": HEAP,
    "\u202egnirts\udcff\n&amp;\"'{{ 7 * 7 }}.skiff": "1",
}
"""Programs by name."""

MOST_OBSERVED = 1000


def make_report(schedule: Schedule = Schedule.NONE) -> Report:
    differ = Differ(["threaded", "wrong", "picky", "small"], registry=with_suspects())
    results = []
    for name, text in NAMES.items():
        program = verify(ferryvm.compile(text))
        comparisons = differ.compare(program, schedule)
        found = examine(differ, name, program, comparisons, most_observed=MOST_OBSERVED)
        results.append(found)
    return report(differ, schedule, 0, results)


@pytest.fixture(scope="session")
def made() -> Report:
    return make_report()


@pytest.fixture(scope="session")
def file(made: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write(path, made)
    return path
