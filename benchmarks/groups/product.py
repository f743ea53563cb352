# SPDX-License-Identifier: Apache-2.0
"""A product of matrices of f32 that a device's registers and local memory bound: seconds in
kernels, without copies.

Items compute EACH x EACH elements in variables, by fused multiplications and additions, and load
both factors through arrays of their group. The same is written in Skiff and in plain OpenCL C, for
each EACH; the fastest of both are compared.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import numpy

from benchmarks.benchmark import PROGRAMS
from benchmarks.groups.sample import Array, uniform
from benchmarks.measure import median
from benchmarks.opencl.watched import Watched
from benchmarks.parallel.contender import OPENCL, launching
from ferryvm.backend import BackendError
from ferryvm.program import Program

EACH = (4, 8)
LARGE, SMALL = 4096, 256
"""Rows of the matrices: on a device of its own memory, and on processors."""


@dataclasses.dataclass
class Product:
    """Medians of seconds in kernels, by EACH."""

    n: int
    device: str
    ours: dict[int, float] = dataclasses.field(default_factory=dict)
    written: dict[int, float] = dataclasses.field(default_factory=dict)
    missing: list[str] = dataclasses.field(default_factory=list)

    @property
    def part(self) -> float | None:
        """The speed of our fastest kernel, as a part of that of the fastest that is written by
        hand."""
        if not self.ours or not self.written:
            return None
        return min(self.written.values()) / min(self.ours.values())

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return {**dataclasses.asdict(self), "part": self.part}

    def show(self, print_: Callable[[str], None]) -> None:
        """Print the figures."""
        for name, found in (("opencl", self.ours), ("OpenCL C", self.written)):
            for each, seconds in found.items():
                speed = 2e-9 * self.n**3 / seconds
                size = f"product of {self.n} x {self.n} f32, {each} x {each} an item"
                print_(f"{size}: {name} {1e3 * seconds:.2f} ms, {speed:,.0f} GFLOP/s")
        for reason in self.missing:
            print_(f"product: {reason}")


def text(each: int) -> str:
    """The product in Skiff."""
    block, both = 16 * each, [(i, j) for i in range(each) for j in range(each)]
    every = range(each)
    sums = [f"(define sum-{i}-{j} 0.0f32)" for i, j in both]
    loads = [
        line
        for i in every
        for line in (
            f"(copy! left (+ (* column {block + 4}) (+ row {16 * i})) a"
            + f" (+ (* (+ y (+ row {16 * i})) n) (+ from column)))",
            f"(copy! right (+ (* row {block}) (+ column {16 * i})) b"
            + f" (+ (* (+ from row) n) (+ x {16 * i})))",
        )
    ]
    factors = [
        line
        for i in every
        for line in (
            f"(define row-{i} (array-ref left (+ (* k {block + 4}) (+ (* row {each}) {i}))))",
            f"(define column-{i} (array-ref right (+ (* k {block}) (+ column {16 * i}))))",
        )
    ]
    steps = [f"(set! sum-{i}-{j} (fma row-{i} column-{j} sum-{i}-{j}))" for i, j in both]
    stores = [
        f"(array-set! c (+ (* (+ y (+ (* row {each}) {i})) n) (+ x {16 * j})) sum-{i}-{j})"
        for i, j in both
    ]
    lines = "\n".join
    return f"""
(define (copy! to place from index) (array-set! to place (array-ref from index)))
(define (item row column group-row group-column n left right a b c)
  (define x (+ (* group-column {block}) column))
  (define y (* group-row {block}))
  {lines(sums)}
  (define from 0)
  (while (< from n)
    {lines(loads)}
    (barrier)
    (define k 0)
    (while (< k 16)
      {lines(factors)}
      {lines(steps)}
      (set! k (+ k 1)))
    (barrier)
    (set! from (+ from 16)))
  {lines(stores)})
(define (group row column n a b c)
  (define left (make-array f32 {16 * (block + 4)}))
  (define right (make-array f32 {16 * block}))
  (for-each-item (16 16) (item row column n left right a b c)))
(define (work (n i64) (a (array f32)) (b (array f32)) (c (array f32)))
  (for-each-item ((/ n {block}) (/ n {block})) (group n a b c)))
"""


def program(each: int) -> Program:
    """The program."""
    from ferryvm.skiff import compile

    return compile(text(each), "product")


def measure(device: str, rounds: int, progress: Callable[[str], None], rows: int = 0) -> Product:
    """The figures of a device; `rows`: of the matrices, 0 for the usual ones."""
    try:
        from ferryvm_backends.opencl.device import find
    except ImportError as error:
        return Product(rows, device, missing=[str(error)])
    try:
        found = find(device)
    except BackendError as error:
        return Product(rows, device, missing=[str(error)])
    n = rows or (SMALL if found.is_cpu else LARGE)
    figures = Product(n, str(found))
    a, b = uniform(n * n, -1.0, 1.0, 0), uniform(n * n, -1.0, 1.0, 1)
    expected = _written(found, n, EACH[0], a, b, 1)[1]
    for each in EACH:
        figures.written[each], result = _written(found, n, each, a, b, rounds)
        progress(f"product: OpenCL C, {each} x {each}: {figures.written[each]:.4f} s")
        seconds, mine = _ours(device, n, each, a, b, rounds)
        if seconds is None:
            figures.missing.append(f"opencl does not run {each} x {each} an item as work-groups")
        else:
            figures.ours[each] = seconds
            progress(f"product: opencl, {each} x {each}: {seconds:.4f} s")
        if not (_equal(mine, expected) and _equal(result, expected)):
            figures.missing.append(f"the results of {each} x {each} an item differ")
    return figures


def _equal(one: Array, two: Array) -> bool:
    return bool((one.view(numpy.uint32) == two.view(numpy.uint32)).all())


def _ours(
    device: str, n: int, each: int, a: Array, b: Array, rounds: int
) -> tuple[float | None, Array]:
    watched = Watched(launching(OPENCL, threads=1, device=device), OPENCL)
    work = watched.engine.instantiate(program(each)).exports["work"]
    c = numpy.zeros(n * n, numpy.float32)
    times = []
    for _ in range(rounds + 1):  # the first one compiles
        before = _in_groups(watched)
        work(n, a, b, c)
        times.append(_in_groups(watched) - before)
    is_there = all(seconds > 0 for seconds in times[1:])
    return (median(times[1:]) if is_there else None), c


def _in_groups(watched: Watched) -> float:
    """Seconds in kernels of groups so far."""
    from ferryvm_backends.opencl.group.range import GroupRanges

    ranges = [each.code.ranges for each in watched.attempts if each.code is not None]
    groups = [each for each in ranges if isinstance(each, GroupRanges)]
    return sum(runner.seconds for each in groups for runner in each.runners)


def _written(
    device: Any, n: int, each: int, a: Array, b: Array, rounds: int
) -> tuple[float, Array]:
    import pyopencl as cl

    source = (PROGRAMS / "groups" / "product.cl").read_text(encoding="utf-8")
    context = cl.Context([device.handle])
    queue, flags = cl.CommandQueue(context), cl.mem_flags
    constants = [f"-DBLOCK={16 * each}", f"-DEACH={each}"]
    kernel = cl.Kernel(cl.Program(context, source).build(constants), "product")
    given = [cl.Buffer(context, flags.COPY_HOST_PTR | flags.READ_ONLY, hostbuf=x) for x in (a, b)]
    c = numpy.zeros(n * n, numpy.float32)
    result = cl.Buffer(context, flags.WRITE_ONLY, c.nbytes)
    times = []
    for _ in range(rounds + 1):
        queue.finish()
        began = time.perf_counter()
        kernel(queue, (n // each, n // each), (16, 16), numpy.int32(n), *given, result)
        queue.finish()
        times.append(time.perf_counter() - began)
    cl.enqueue_copy(queue, c, result)
    return median(times[1:]), c
