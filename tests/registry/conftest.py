# SPDX-License-Identifier: Apache-2.0
"""A place to install plugins in, for tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ferryvm import plugin


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on sys.path to install distributions in."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delenv(plugin.VARIABLE, raising=False)
    monkeypatch.setattr(plugin, "_reported", set())
    for name in [name for name in sys.modules if name.endswith("_plugin")]:
        if getattr(sys.modules[name], "__file__", "").endswith(f"site/{name}.py"):
            monkeypatch.delitem(sys.modules, name)  # another test's
    return folder
