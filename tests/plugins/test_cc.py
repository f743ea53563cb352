# SPDX-License-Identifier: Apache-2.0
"""The plugin in plugins/ferryvm-cc, installed by pip as a user would, without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugins" / "ferryvm-cc"

pytestmark = pytest.mark.skipif(
    not any(shutil.which(name) for name in ("cc", "gcc", "clang")),
    reason="there is no C compiler here",
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH with the plugin in it, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    copy = folder / "source"  # pip and hatchling may write beside what they build
    shutil.copytree(PLUGIN, copy, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    site = folder / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", site, copy]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return site


def run(site: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """`python -m …` with the plugin on its path."""
    return subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(site), "COLUMNS": "200", **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def backends(site: Path, **environment: str) -> dict[str, str]:
    """The lines of `ferry backends` by name."""
    done = run(site, "ferryvm.cli", "backends", **environment)
    assert done.returncode == 0, done.stderr
    return {line.split()[0]: line for line in done.stdout.splitlines()}


@pytest.mark.nightly
def test_the_installed_plugin_is_listed_as_usable(installed: Path) -> None:
    line = backends(installed)["cc"]
    assert "ferryvm-cc:cc" in line
    assert "usable" in line


@pytest.mark.nightly
def test_without_a_compiler_it_is_listed_with_the_reason_and_the_rest_works(
    installed: Path,
) -> None:
    lines = backends(installed, CC="no-such-compiler")
    assert "CC names 'no-such-compiler', which is not there or cannot be run" in lines["cc"]
    assert "usable" in lines["reference"]


def test_a_program_runs_on_it_and_gives_what_others_give(installed: Path) -> None:
    program = "examples/looptest.skiff"
    done = run(installed, "ferryvm.cli", "run", "--backend", "cc", program)
    plain = run(installed, "ferryvm.cli", "run", "--backend", "threaded", program)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr


def test_a_backend_asked_for_by_name_that_cannot_run_is_one_line(installed: Path) -> None:
    command = ("ferryvm.cli", "run", "--backend", "cc", "examples/looptest.skiff")
    done = run(installed, *command, CC="no-such-compiler")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "no-such-compiler" in done.stderr


@pytest.mark.nightly
def test_its_own_tests_pass(installed: Path) -> None:
    # pytest would rewrite the asserts of all of ferryvm, which has a plugin of pytest.
    options = ("-q", "-p", "no:cacheprovider", "--assert", "plain", "-n", "0")
    done = run(installed, "pytest", *options, PLUGIN / "tests")
    assert done.returncode == 0, done.stdout[-3000:]
