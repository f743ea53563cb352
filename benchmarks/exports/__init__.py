# SPDX-License-Identifier: Apache-2.0
"""Exported C against the same functions in ferryvm with `llvm`, called from Python with the same
arrays.

Both run in one process, in turn: see `benchmarks.exports.turn`.
"""

from __future__ import annotations

import ctypes
import functools
import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ferryvm
from benchmarks.benchmark import BenchmarkError
from benchmarks.exports.turn import Ratios
from ferryvm.portable import ExportOptions, export_region
from ferryvm.portable.harness.check import pointer
from ferryvm.portable.harness.golden import SCALARS, Memory, Passed, inputs_of, passed
from ferryvm.verify import verify

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
    ratios = Ratios(rounds, progress)
    for name, arguments in _arguments().items():
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "folder"
            export_region(verified, name, made, ExportOptions(optimize=optimize, vectors=20))
            exported = _imported(made, compiler, flags)
        outside = functools.partial(exported, arguments)
        inside = functools.partial(getattr(instance, name), *arguments)
        ratios.add(name, outside, inside, arguments)
    return ratios.result(f"{compiler} {flags}, --optimize {optimize}")


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
