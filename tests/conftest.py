# SPDX-License-Identifier: Apache-2.0
"""Fixtures that every room of the tests shares."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ferryvm
from ferryvm.cache import entry
from ferryvm_backends import ferryvm_backends

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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
    """A cache directory of this test's own, empty; what was said of others counts no more."""
    monkeypatch.setattr(entry, "_told", set())
    folder = tmp_path / "cache"
    monkeypatch.setenv("FERRYVM_CACHE_DIR", str(folder))
    return folder


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser to look at pages with."""
    from playwright.sync_api import sync_playwright  # few tests need it

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)}")
    with sync_playwright() as playwright:
        # Tests may run as root, where Chromium's sandbox cannot; the pages are our own.
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()
