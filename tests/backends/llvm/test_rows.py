# SPDX-License-Identifier: Apache-2.0
"""Launches of dimensions go row by row: results and traps are those of the loop, and LLVM
vectorises a row."""

from __future__ import annotations

import numpy
import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.backend import Options
from ferryvm.region.region import RegionKind, regions
from ferryvm.verify import verify
from ferryvm_backends.llvm import build

GRID = """
(define (item (row i64) (column i64) (w i64) (x (array f64)) (to (array f64)))
  (define at (+ (* row w) column))
  (array-set! to at (+ (* 2.0 (array-ref x at)) (f64 (+ (* 1000 row) column)))))
(define (flat (i i64) (w i64) (x (array f64)) (to (array f64)))
  (array-set! to i (+ (* 2.0 (array-ref x i)) (f64 (+ (* 1000 (/ i w)) (% i w))))))
(define (grid (h i64) (w i64) (x (array f64)) (to (array f64)))
  (for-each-item (h w) (item w x to)))
(define (numbers (h i64) (w i64) (x (array f64)) (to (array f64)))
  (for-each-item (* h w) (flat w x to)))
"""

Array = numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.float64]]


def _work(name: str, backend: str, size: tuple[int, int], length: int) -> tuple[Array, str]:
    """What a launch stores, and its trap."""
    x, to = numpy.arange(size[0] * size[1], dtype=float), numpy.zeros(length)
    work = Engine(backend).instantiate(ferryvm.compile(GRID)).exports[name]
    trap = ""
    try:
        work(*size, x, to)
    except ferryvm.TrapError as error:
        trap = str(error)
    return to, trap


@pytest.mark.parametrize(
    ("size", "missing"), [((3, 40), 0), ((5, 16), 7), ((4, 15), 0), ((1, 70), 3)]
)
@pytest.mark.parametrize("name", ["grid", "numbers"])
def test_rows_end_as_the_loop(name: str, size: tuple[int, int], missing: int) -> None:
    length = size[0] * size[1] - missing
    to, trap = _work(name, "llvm", size, length)
    expected, same = _work(name, "switch", size, length)
    assert (to.tolist(), trap) == (expected.tolist(), same)
    assert bool(trap) == bool(missing)


@pytest.mark.parametrize("name", ["grid", "numbers"])
def test_llvm_vectorises_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "vector_bits", lambda: 512)
    program = verify(ferryvm.compile(GRID))
    function = "launch item in 2 dimensions" if name == "grid" else "numbers"
    launch = next(
        one
        for one in regions(program)
        if one.kind is RegionKind.LAUNCH and one.name == f"{function}/launch.1"
    )
    module, _ = build.improved(launch, Options(launches=frozenset({(launch.entry, 0)})))
    assert module.scalar == "LLVM vectorises the loop over its items itself"
