# SPDX-License-Identifier: Apache-2.0
"""States in the middle of a group move between any two backends, under every schedule."""

from __future__ import annotations

import itertools

import pytest

import ferryvm
from ferryvm.testing.differential import Differ, Verdict
from ferryvm.testing.schedule import Schedule
from ferryvm.verify import verify

from ..tier import nightly

TEXT = """
(define (member item number tile to)
  (define sum 0.5)
  (define k 0)
  (while (< k 2)
    (array-set! tile item (+ item k))
    (barrier)
    (set! sum (+ sum (f64 (array-ref tile (- 2 item)))))
    (barrier)
    (set! k (+ k 1)))
  (array-set! to (+ (* 3 number) item) sum))
(define (group number to) (for-each-item 3 (member number (make-array i64 3) to)))
(define to (make-array f64 6))
(for-each-item 2 (group to))
(print! (reduce + to))
"""

SCHEDULES = [s for s in Schedule if s is not Schedule.INDEPENDENCE]
"""That of independence moves nothing."""

BACKENDS = ("reference", "switch", "threaded", "llvm", "opencl", "vliw")
COMPILERS = BACKENDS[3:]
PAIRS = [
    nightly((pair,)) if {*COMPILERS} & {*pair} else pair
    for pair in itertools.combinations(BACKENDS, 2)
]
"""Those with compilers, which take seconds, are in the second tier."""


@pytest.mark.rotate("schedule", "pair", most=2)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.value)
def test_states_in_a_group_move_between_two_backends(
    schedule: Schedule, pair: tuple[str, str]
) -> None:
    one, other = pair
    program = verify(ferryvm.compile(TEXT, "p"))
    for seed in (1, 2) if schedule is Schedule.RANDOM else (1,):
        for found in Differ([other], one).compare(program, schedule, seed=seed):
            assert found.verdict is Verdict.AGREE, found
