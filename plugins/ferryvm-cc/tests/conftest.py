# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a cache and a temporary folder of each test's own, and programs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import ferryvm
import pytest
from ferryvm.cache import ENVIRONMENT
from ferryvm.region.region import Region, region
from ferryvm.verify import verify

from ferryvm_cc.backend import CcBackend

LOOP = """\
(define limit 1000)
(define i 0)
(define sum 0)
(while (< i limit) (set! sum (+ sum i)) (set! i (+ i 1)))
sum
"""


@pytest.fixture(scope="session", autouse=True)
def _interpreter() -> None:
    """The interpreter, loaded from the user's own cache: no test builds it in one of its own."""
    assert ferryvm.run(ferryvm.compile("7"), "threaded").value == 7


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache directory."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(ENVIRONMENT, str(folder))
    return folder


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def backend() -> CcBackend:
    return CcBackend()


@pytest.fixture
def loop() -> Region:
    """The whole of a program that adds the numbers below 1000."""
    return region(verify(ferryvm.compile(LOOP)), "program")


Write = Callable[[str], str]


@pytest.fixture
def script(tmp_path: Path) -> Write:
    """Makes an executable file from lines of shell; yields its path."""

    def write(lines: str) -> str:
        file = tmp_path / "compiler"
        file.write_text(f"#!/bin/sh\n{lines}\n")
        file.chmod(0o755)
        return str(file)

    return write
