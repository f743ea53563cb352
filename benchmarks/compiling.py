# SPDX-License-Identifier: Apache-2.0
"""What it takes to make native code of the loop, and to have it from the cache."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.benchmark import BY_NAME, BenchmarkError, Scale
from benchmarks.measure import median
from benchmarks.peers.ferry import CACHE, compiled
from ferryvm.backend import Code, Compiler, Options
from ferryvm.errors import FerryError
from ferryvm.region.region import Region, RegionKind, regions
from ferryvm.registry import Registry
from ferryvm.verify import verify

COMPILE_MILLISECONDS = 15.0
CACHED_MILLISECONDS = 2.0


def measure(name: str, rounds: int, progress: Callable[[str], None]) -> dict[str, Any]:
    """Median milliseconds in which a compiler makes the region of `loop`, by step, and in which it
    finds it. Another region has been compiled before: what a process does once is no part of it.

    Raises BenchmarkError where there is no such compiler or it fails.
    """
    try:
        compiler = Registry().get(name)
        if not isinstance(compiler, Compiler):
            raise BenchmarkError(f"backend {name!r} is no compiler")
        return _measured(compiler, rounds, progress)
    except FerryError as error:
        raise BenchmarkError(str(error)) from error


def nest(program: str) -> Region:
    """The outermost loop of a program's first function."""
    verified = verify(compiled(BY_NAME[program], Scale.SCALAR))
    return next(r for r in regions(verified) if r.kind is RegionKind.NEST and r.function == 0)


def _measured(compiler: Compiler, rounds: int, progress: Callable[[str], None]) -> dict[str, Any]:
    options = Options(optimize=2, cache=False)
    kept = dataclasses.replace(options, cache=True)
    compiler.compile(nest("loopmix"), options)
    fresh, found = [], []
    steps: dict[str, list[float]] = {}
    before = os.environ.get(CACHE)
    with tempfile.TemporaryDirectory(prefix="ferry-bench-") as folder:
        os.environ[CACHE] = folder
        try:
            compiler.compile(nest("loop"), kept)
            for _ in range(rounds):
                # A region of a program that was just verified: nothing about it is known yet.
                code, milliseconds = _timed(compiler, nest("loop"), options)
                fresh.append(milliseconds)
                for step, seconds in code.notes.items():
                    steps.setdefault(step, []).append(1e3 * seconds)
                code, milliseconds = _timed(compiler, nest("loop"), kept)
                if not code.is_from_cache:
                    raise BenchmarkError(f"{compiler.name} did not find the loop in its cache")
                found.append(milliseconds)
                progress(f"compiled {fresh[-1]:.2f} ms, found {found[-1]:.2f} ms")
        finally:
            os.environ.pop(CACHE) if before is None else os.environ.update({CACHE: before})
    return {
        "backend": compiler.name,
        "rounds": rounds,
        "compile_ms": median(fresh),
        **{f"of that {step}_ms": median(times) for step, times in steps.items()},
        "compile_target_ms": COMPILE_MILLISECONDS,
        "compile_is_met": median(fresh) <= COMPILE_MILLISECONDS,
        "cached_ms": median(found),
        "cached_target_ms": CACHED_MILLISECONDS,
        "cached_is_met": median(found) <= CACHED_MILLISECONDS,
    }


def _timed(compiler: Compiler, region: Region, options: Options) -> tuple[Code, float]:
    began = time.perf_counter()
    code = compiler.compile(region, options)
    return code, 1e3 * (time.perf_counter() - began)
