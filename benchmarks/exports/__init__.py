# SPDX-License-Identifier: Apache-2.0
"""Exported C against the same functions in ferryvm with `llvm`, called from Python with the same
arrays.

Both run in one process, in turn; CPU time counts, and the least of the rounds.
"""

from __future__ import annotations

import ctypes
import functools
import json
import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ferryvm
from benchmarks.benchmark import BenchmarkError
from ferryvm.portable import ExportOptions, export_region
from ferryvm.portable.harness.check import pointer
from ferryvm.portable.harness.golden import SCALARS, Memory, Passed, inputs_of, passed
from ferryvm.verify import verify

TARGET = 1.02
"""The geometric mean that exports should have."""

_LENGTH, _ROWS = 50_000, 160
_SOURCE = Path(__file__).with_name("kernels.skiff")


def _arguments() -> dict[str, tuple[object, ...]]:
    """Arguments by function."""
    chance = np.random.default_rng(7)
    x, y = chance.uniform(-1, 1, (2, _LENGTH))
    single = chance.uniform(0, 8, (2, _LENGTH)).astype(np.float32)
    a, b, c = chance.uniform(-1, 1, (3, _ROWS * _ROWS))
    bytes_ = chance.integers(0, 256, _LENGTH, dtype=np.uint8)
    return {
        "axpy": (1e-9, x, y),
        "dot": (x, y),
        "steps": (3_000,),
        "roots": (single[0], single[1]),
        "histogram": (bytes_, np.zeros(256, np.int32)),
        "norm": (x,),
        "daxpy": (_LENGTH, 1e-9, x, y),
        "product": (a, b, c, _ROWS),
    }


def measure(
    rounds: int, compiler: str, flags: str, optimize: int, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Seconds of both, and their ratios. Raises BenchmarkError if results differ."""
    program = ferryvm.read(_SOURCE)
    verified = verify(program)
    instance = ferryvm.Engine("llvm").instantiate(program)
    found: dict[str, Any] = {}
    ratios: list[float] = []
    for name, arguments in _arguments().items():
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "folder"
            export_region(verified, name, made, ExportOptions(optimize=optimize, vectors=20))
            exported = _imported(made, compiler, flags)
        outside = functools.partial(exported, arguments)
        inside = functools.partial(getattr(instance, name), *arguments)
        _check(name, outside, inside, arguments)
        times = _least({"exported": outside, "ferryvm": inside}, rounds)
        ratio = times["exported"] / times["ferryvm"]
        ratios.append(ratio)
        progress(f"{name}: {ratio:.2f}")
        found[f"{name}: exported"], found[f"{name}: ferryvm"] = times.values()
        found[f"{name}: ratio"] = ratio
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return {
        "command": f"{compiler} {flags}, --optimize {optimize}",
        **found,
        "mean": mean,
        "target": TARGET,
        "is_met": mean <= TARGET,
    }


def _imported(folder: Path, compiler: str, flags: str) -> Callable[[Sequence[object]], object]:
    """A call of an exported function that takes its arguments as ferryvm does, the same in each call,
    and returns its result. They are made ready for C once: a receiver's program has them so."""
    words = ["make", "all", f"CC={compiler}", f"CFLAGS={flags}"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"{compiler} did not compile it: {done.stderr[-300:]}")
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    library = ctypes.CDLL(str(folder / f"lib{manifest['entry']}.so"))
    function = getattr(library, manifest["entry"])
    function.restype = ctypes.c_int32
    types = [each["type"] for each in inputs_of(manifest)]

    bound: list[Passed] = []

    def call(arguments: Sequence[object]) -> object:
        if not bound:
            given = [
                Memory(each.ctypes.data, each.size)
                if isinstance(each, np.ndarray)
                else SCALARS[t](each)
                for t, each in zip(types, arguments, strict=True)
            ]
            bound.append(passed(manifest, given, 0, pointer, lambda number: number, False))
        (made,) = bound
        status = function(*made.given)
        if status:
            raise BenchmarkError(f"status {status}")
        return next((each.value for each in made.results.values()), None)

    return call


def _check(
    name: str,
    outside: Callable[[], object],
    inside: Callable[[], object],
    arguments: Sequence[object],
) -> None:
    """Raise BenchmarkError if both do not compute the same."""
    arrays = [each for each in arguments if isinstance(each, np.ndarray)]
    before = [each.copy() for each in arrays]
    outcomes = []
    for call in (outside, inside):
        for array, content in zip(arrays, before, strict=True):
            array[:] = content
        outcomes.append((call(), [each.tobytes() for each in arrays]))
    if outcomes[0] != outcomes[1]:
        raise BenchmarkError(f"{name}: the exported function computes something else")


def _least(tasks: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The least seconds of CPU time of each task, in turn."""
    found = dict.fromkeys(tasks, math.inf)
    repeats = 1
    while _seconds(tasks["ferryvm"], repeats) < 0.01:
        repeats *= 2
    for _ in range(rounds):
        for title, task in tasks.items():
            found[title] = min(found[title], _seconds(task, repeats) / repeats)
    return found


def _seconds(task: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        task()
    return time.process_time() - start
