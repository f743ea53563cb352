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
from benchmarks.exports.arrays import Arrays
from benchmarks.exports.turn import Calls, Ratios
from ferryvm.portable import ExportOptions, export_region
from ferryvm.portable.harness.check import pointer
from ferryvm.portable.harness.golden import SCALARS, Memory, inputs_of, passed
from ferryvm.verify import verify

_LENGTH, _ROWS = 50_000, 160
_SOURCE = Path(__file__).with_name("kernels.skiff")


def _arguments(length: int, rows: int, steps: int) -> dict[str, tuple[object, ...]]:
    """Arguments by function."""
    arrays = Arrays(length, rows)
    x, y = arrays.x, arrays.y
    return {
        "axpy": (1e-9, x, y),
        "dot": (x, y),
        "steps": (steps,),
        "roots": tuple(arrays.single),
        "histogram": (arrays.bytes, np.zeros(256, np.int32)),
        "norm": (x,),
        "daxpy": (length, 1e-9, x, y),
        "product": (*arrays.matrices, rows),
    }


def measure(
    rounds: int, compiler: str, flags: str, optimize: int, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Times of both, and their ratios. Raises BenchmarkError if results differ."""
    program = ferryvm.read(_SOURCE)
    verified = verify(program)
    instance = ferryvm.Engine("llvm").instantiate(program)
    ratios = Ratios(rounds, progress)
    least = _arguments(1, 1, 1)
    for name, arguments in _arguments(_LENGTH, _ROWS, 3_000).items():
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "folder"
            export_region(verified, name, made, ExportOptions(optimize=optimize, vectors=20))
            exported = _Function(made, compiler, flags)
        inside = getattr(instance, name)
        ratios.add(
            name,
            Calls(exported.bound(arguments), exported.bound(least[name])),
            Calls(functools.partial(inside, *arguments), functools.partial(inside, *least[name])),
            arguments,
        )
    return ratios.result(f"{compiler} {flags}, --optimize {optimize}")


class _Function:
    """An exported function."""

    def __init__(self, folder: Path, compiler: str, flags: str) -> None:
        words = ["make", "all", f"CC={compiler}", f"CFLAGS={flags}"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchmarkError(f"{compiler} did not compile it: {done.stderr[-300:]}")
        self._manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
        library = ctypes.CDLL(str(folder / f"lib{self._manifest['entry']}.so"))
        self._function = getattr(library, self._manifest["entry"])
        self._function.restype = ctypes.c_int32

    def bound(self, arguments: Sequence[object]) -> Callable[[], object]:
        """A call with arguments, which returns its result. They are made ready for C once, as a
        receiver's program has them."""
        types = [each["type"] for each in inputs_of(self._manifest)]
        given = [
            Memory(each.ctypes.data, each.size)
            if isinstance(each, np.ndarray)
            else SCALARS[t](each)
            for t, each in zip(types, arguments, strict=True)
        ]
        made = passed(self._manifest, given, 0, pointer, lambda number: number, False)
        function = self._function

        def call() -> object:
            status = function(*made.given)
            if status:
                raise BenchmarkError(f"status {status}")
            return next((each.value for each in made.results.values()), None)

        return call
