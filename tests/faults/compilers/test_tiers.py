# SPDX-License-Identifier: Apache-2.0
"""A fault counts as found by a tier if a test fails with it, not if something else does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from . import tiers
from .table import by_name

(FAULT,) = by_name(["comparison-holds-for-nan"])


def ended(output: str, code: int) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess([], code, output, "")


def test_a_failed_test_finds_a_fault() -> None:
    output = "ERROR tests/a.py::x\nFAILED tests/b.py::y[1] - no\n1 failed, 1 error in 3 s\n"
    assert tiers.judge(FAULT, ended(output, 1)) == "tests/b.py::y[1]"


def test_the_end_of_the_process_finds_a_fault() -> None:
    assert tiers.judge(FAULT, ended("", -11)) == "exit code -11"


@pytest.mark.parametrize(
    ("output", "code"),
    [("3 passed in 2 s\n", 0), ("ERROR tests/a.py::x\n3 passed, 1 error in 2 s\n", 1)],
)
def test_neither_success_nor_an_error_in_a_fixture_finds_a_fault(output: str, code: int) -> None:
    assert tiers.judge(FAULT, ended(output, code)) is None


@pytest.mark.parametrize("output", ["ERROR tests/a.py\n1 error in 0.1 s\n", "no tests ran\n"])
def test_a_run_without_tests_is_an_error_of_the_campaign(output: str) -> None:
    with pytest.raises(AssertionError, match="comparison-holds-for-nan"):
        tiers.judge(FAULT, ended(output, 2))


@pytest.mark.nightly  # it builds the interpreters anew
def test_a_fault_that_breaks_every_program_is_found_by_a_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The fixture that runs all backends has such a program, too."""
    (fault,) = by_name(["exit-at-the-next-instruction"])
    file = "tests/backends/llvm/test_folding.py"
    monkeypatch.setitem(tiers.TESTS, "llvm", (file,))
    cache = tmp_path / "cache"
    cache.mkdir()
    found = tiers.look(fault, cache, ["default"])
    assert found.tier == "default"
    assert found.test.startswith(file)
