# SPDX-License-Identifier: Apache-2.0
"""A sample of the points of failure; the campaign tries them all."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from .campaign import tried

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD is of Linux"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="the shim is built by a C compiler"),
]


def test_failing_calls_lose_nothing_and_are_told_in_a_line(tmp_path: Path) -> None:
    failures = ["disk full once", "disk broken", "interrupted", "no large memory once"]
    points = list(tried(tmp_path, ["compile", "save"], failures, 4))
    assert len(points) >= 20
    assert [point for point in points if point["wrong"]] == []
    assert {point["kind"] for point in points} >= {"refused", "unaffected"}
