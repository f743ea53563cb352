# SPDX-License-Identifier: Apache-2.0
"""Items whose own loops have vectors are not run in lanes, others are."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.ir.graph import Module
from ferryvm.ir.lane.item import UnvectorisedError
from ferryvm.ir.lane.profit import REASON
from ferryvm.ir.lane.vectorise import lanes_of
from ferryvm.ir.lift import lift
from ferryvm.ir.passes import optimise
from ferryvm.region.region import region
from ferryvm.verify import verify

PROGRAM = """
(define (item i n from to)
  {sums}
  (define x 0)
  (while (< x n) {loop} (set! x (+ x 1)))
  {last})
(define from (make-array f64 64))
(define to (make-array f64 64))
(for-each-item 8 (item 8 from to))
"""

SCALAR = {
    "rows are stored": "(array-set! to (+ (* i n) x) 1)",
    "rows are loaded": "(array-set! to (+ (* i n) x) (array-ref from (+ (* i n) x)))",
    "blocks": "(array-set! to (+ (* i 8) x) (array-ref from (+ (* i 8) x)))",
}
LANES = {
    "columns": "(array-set! to (+ (* x n) i) (array-ref from (+ (* x n) i)))",
    "the same for all": "(set! a (+ a (array-ref from x)))",
    "no array": "(set! a (+ a 1.5))",
}


def source(loop: str) -> Module:
    """The module of a launch's loop before its items are run in lanes."""
    has_sum = "set! a" in loop
    sums = "(define a 0.0)" if has_sum else ""
    last = "(array-set! to i a)" if has_sum else "(while #f 0)"
    verified = verify(ferryvm.compile(PROGRAM.format(loop=loop, sums=sums, last=last)))
    module = lift(region(verified, "main/launch.1"))
    optimise(module, 2, verified)
    return module


@pytest.mark.parametrize("name", SCALAR)
def test_loops_over_consecutive_elements_are_not_run_in_lanes(name: str) -> None:
    module = source(SCALAR[name])
    with pytest.raises(UnvectorisedError, match=REASON):
        lanes_of(module, always=False)
    assert lanes_of(module).varying


def test_a_sum_of_a_row_is_not_run_in_lanes_for_it_gathers_each_term() -> None:
    module = source("(set! a (+ a (array-ref from (+ (* i n) x))))")
    with pytest.raises(UnvectorisedError, match="by an estimate"):
        lanes_of(module, always=False)


@pytest.mark.parametrize("name", LANES)
def test_other_loops_are_run_in_lanes(name: str) -> None:
    assert lanes_of(source(LANES[name]), always=False).varying
