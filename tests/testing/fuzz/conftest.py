# SPDX-License-Identifier: Apache-2.0
"""Backends that go wrong, installed as any plugin is, for the processes of a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from ...double.distribution import python_path


@pytest.fixture
def bad_backends(campaign_site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make processes that the test starts find the plugin."""
    monkeypatch.setenv("PYTHONPATH", python_path(campaign_site))
