# SPDX-License-Identifier: Apache-2.0
"""A process that runs many programs keeps next to nothing of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MOST = 12_000
"""Bytes that a program may cost for good."""

PROCESSES = 3
"""In the best of so many."""


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("backend", "way", "programs"),
    [
        pytest.param("threaded", "distinct", 100, marks=pytest.mark.nightly),
        pytest.param("switch", "session", 100, marks=pytest.mark.nightly),
        pytest.param("threaded", "saved", 60, marks=pytest.mark.nightly),
        ("threaded", "forked", 60),
        pytest.param("llvm", "distinct", 20, marks=pytest.mark.nightly),
        pytest.param("llvm", "same", 40, marks=pytest.mark.nightly),
    ],
)
def test_programs_that_are_gone_leave_nothing_behind(backend: str, way: str, programs: int) -> None:
    """A leaked pass manager of LLVM is 30 KiB and more, a machine's segments are 64 MiB.

    A leak is in every process; one process in some hundred had 18 KB a program on a loaded machine.
    """
    found = []
    while not found or (found[-1] >= MOST and len(found) < PROCESSES):
        found.append(_allocated(backend, way, programs))
    assert min(found) < MOST


def _allocated(backend: str, way: str, programs: int) -> int:
    command = [sys.executable, "-m", "tests.engine.growing", backend, way, str(programs)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = re.search(r"(-?\d+) allocated", done.stdout)
    assert found is not None
    return int(found[1])
