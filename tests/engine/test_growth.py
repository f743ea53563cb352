# SPDX-License-Identifier: Apache-2.0
"""A process that runs many programs keeps next to nothing of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("backend", "programs"), [("threaded", 150), ("llvm", 60)])
def test_programs_that_are_gone_leave_nothing_behind(backend: str, programs: int) -> None:
    """A leaked pass manager of LLVM is 30 KiB and more; pages and warm caches are a few."""
    command = [sys.executable, "-m", "tests.engine.growing", backend, str(programs)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[1]) < 16_000
