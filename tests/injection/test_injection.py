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


@pytest.mark.nightly
def test_failing_calls_lose_nothing_and_are_told_in_a_line(tmp_path: Path) -> None:
    failures = ["disk full once", "disk broken", "interrupted", "no large memory once"]
    points = list(tried(tmp_path, ["compile", "save"], failures, 3))
    assert len(points) >= 20
    assert [point for point in points if point["wrong"]] == []
    assert {point["kind"] for point in points} >= {"refused", "unaffected"}


def test_small_memory_may_fail_at_once_and_while_backends_are_found(tmp_path: Path) -> None:
    # The first calls set the floating-point environment, make a lock and look for plugins.
    calls = [*range(1, 12), *range(900, 1900, 100)]
    points = list(tried(tmp_path, ["load"], ["no small memory once"], 1, calls))
    assert len(points) == len(calls)
    assert [point for point in points if point["wrong"]] == []
