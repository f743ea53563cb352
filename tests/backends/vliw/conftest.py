# SPDX-License-Identifier: Apache-2.0
"""Every program that these tests compile is proved."""

from __future__ import annotations

import pytest

from ferryvm_backends.vliw.prove import ENVIRONMENT


@pytest.fixture(autouse=True)
def _schedules_are_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "1")
