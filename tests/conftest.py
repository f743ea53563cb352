# SPDX-License-Identifier: Apache-2.0
"""Fixtures that every room of the tests shares."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import ferryvm
from ferryvm_backends import ferryvm_backends

BACKENDS = tuple(entry.name for entry in ferryvm_backends())


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """Each in-tree backend's name in turn."""
    return str(request.param)


@pytest.fixture(scope="session", autouse=True)
def _usable_backends() -> None:
    """A backend that silently did not run would make every comparison with it hollow."""
    program = ferryvm.assemble(".function main\nhalt\n")
    for name in BACKENDS:
        # Running it also builds native code, so that no test pays for that or sees the notice.
        assert ferryvm.run(program, name).statistics.backend == name


@pytest.fixture(scope="session", autouse=True)
def _python_handles_sigint() -> None:
    """Tests may have been started with SIGINT ignored, as from a shell's background, and would hand
    that on to the commands that they run."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of this test's own, empty."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FERRYVM_CACHE_DIR", str(folder))
    return folder
