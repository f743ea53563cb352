# SPDX-License-Identifier: Apache-2.0
"""Texts in which GCC would fuse products with sums and differences in turn are without vectors."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import ferryvm
from ferryvm.ir.c.contraction import WITHOUT_VECTORS

FORBIDS = '#pragma GCC optimize("-fno-tree-vectorize")'


def turned(out: Any, x: Any, y: Any) -> None:
    """Products of complex numbers, whose parts are neighbours."""
    for i in range(0, len(out), 2):
        out[i] = x[i] * y[i] - x[i + 1] * y[i + 1]
        out[i + 1] = x[i] * y[i + 1] + x[i + 1] * y[i]


def summed(out: Any, x: Any, y: Any) -> None:
    """Sums only."""
    for i in range(0, len(out), 2):
        out[i] = x[i] * y[i] + x[i + 1] * y[i + 1]
        out[i + 1] = x[i] * y[i + 1] + x[i + 1] * y[i]


def apart(out: Any, x: Any, y: Any) -> None:
    """One result, which has no neighbour."""
    for i in range(len(out)):
        out[i] = (x[i] * y[i] + 1.0) * (x[i] * y[i] - 2.0)


@pytest.mark.parametrize(("function", "forbids"), [(turned, True), (summed, False), (apart, False)])
def test_an_export_forbids_vectors_where_results_alternate(
    function: Any, forbids: bool, tmp_path: Path
) -> None:
    made = ferryvm.export(function, ("float64[:]",) * 3, tmp_path / "folder")
    assert (FORBIDS in (made.directory / f"{function.__name__}.c").read_text("utf-8")) == forbids


ALTERNATING = """
void turn(double *restrict out, const double *x, const double *y)
{
    const double a = x[0] * y[0], b = x[1] * y[1], c = x[0] * y[1], d = x[1] * y[0];
    out[0] = a - b;
    out[1] = c + d;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_gcc_fuses_nothing_then(tmp_path: Path) -> None:
    file = tmp_path / "turn.c"
    file.write_text(WITHOUT_VECTORS + ALTERNATING, encoding="utf-8")
    command = f"gcc -std=c11 -ffp-contract=off -O3 -march=native -S -o - {file}"
    done = subprocess.run(command.split(), capture_output=True, text=True, check=True)
    assert "fma" not in done.stdout.replace("fmax", "")
