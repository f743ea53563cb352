# SPDX-License-Identifier: Apache-2.0
"""Kernels of random programs under Oclgrind: no access outside of a buffer, no race, no value that
nobody set. And it would see them: without their checks the same programs do access what is not
theirs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ...tier import nightly

LIBRARIES = [
    Path(folder) / "liboclgrind-rt-icd.so"
    for folder in ("/usr/lib/oclgrind", "/usr/local/lib/oclgrind", "/usr/lib/x86_64-linux-gnu")
]
FOUND = [library for library in LIBRARIES if library.exists()]
SEED = int(os.environ.get("FERRYVM_FUZZ_SEED", "20261122"))
PROGRAMS = 60
ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(not FOUND, reason="Oclgrind is not here: apt-get install oclgrind")


def grind(folder: Path, *arguments: object, races: bool = True) -> tuple[int, str]:
    """How many kernels ran, and what Oclgrind found; `races`: data races, too."""
    (folder / "oclgrind.icd").write_text(str(FOUND[0]))
    log = folder / "log"
    environment = {
        **os.environ,
        "OCL_ICD_VENDORS": str(folder),
        "OCLGRIND_LOG": str(log),
        "OCLGRIND_DATA_RACES": str(int(races)),
        "OCLGRIND_UNINITIALIZED": "1",
    }
    command = [sys.executable, "-m", "tests.backends.opencl.grind", *map(str, arguments)]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    programs, kernels = map(int, done.stdout.split())
    assert programs == arguments[2]
    return kernels, log.read_text()


@pytest.mark.nightly
def test_items_of_launches_access_nothing_that_is_not_theirs(tmp_path: Path) -> None:
    # Work-items look at a flag that others set: that race is meant.
    kernels, found = grind(tmp_path, SEED, 0, 0, "--launches", races=False)
    assert kernels == 5
    assert found == ""


@pytest.mark.nightly
@pytest.mark.parametrize(("programs", "least"), [(2, 2 * 2), nightly((PROGRAMS, 3 * PROGRAMS))])
def test_kernels_of_random_programs_access_nothing_that_is_not_theirs(
    tmp_path: Path, programs: int, least: int
) -> None:
    kernels, found = grind(tmp_path, SEED, 0, programs)
    assert kernels > least
    assert found == ""


@pytest.mark.nightly
def test_kernels_on_objects_access_nothing_that_is_not_theirs(tmp_path: Path) -> None:
    kernels, found = grind(tmp_path, SEED, 0, 0, "--objects")
    assert kernels > 8
    assert found == ""


@pytest.mark.nightly
def test_without_the_checks_of_bounds_they_do(tmp_path: Path) -> None:
    _, found = grind(tmp_path, SEED, PROGRAMS, PROGRAMS, "--without-bounds")
    assert "Invalid read" in found
