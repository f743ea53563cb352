# SPDX-License-Identifier: Apache-2.0
"""Backends that go wrong, installed as any plugin is, for the processes of a test."""

from __future__ import annotations

import pytest

from ...double.distribution import plant_campaign, python_path


@pytest.fixture
def bad_backends(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make processes that the test starts find the plugin."""
    site = tmp_path_factory.mktemp("site")
    plant_campaign(site)
    monkeypatch.setenv("PYTHONPATH", python_path(site))
