# SPDX-License-Identifier: Apache-2.0
"""Limits of time: what is left of them, and those that users set."""

from __future__ import annotations

import math

import pytest

from ferryvm.deadline import Deadline, seconds_from
from ferryvm.errors import FerryError


def test_a_limit_of_nothing_is_over_at_once() -> None:
    assert Deadline(0).is_over
    assert Deadline(0).remaining <= 0


def test_no_limit_is_never_over() -> None:
    assert not Deadline(None).is_over
    assert Deadline(None).remaining == Deadline(math.inf).remaining == math.inf


def test_what_is_left_of_a_limit_gets_less() -> None:
    deadline = Deadline(1000)
    first = deadline.remaining
    assert 0 < deadline.remaining <= first <= 1000
    assert not deadline.is_over


@pytest.mark.parametrize(("text", "seconds"), [("", 5.0), ("0.3", 0.3), ("1e3", 1000.0)])
def test_a_variable_sets_a_limit(
    monkeypatch: pytest.MonkeyPatch, text: str, seconds: float
) -> None:
    monkeypatch.setenv("LIMIT", text)
    assert seconds_from("LIMIT", 5.0, FerryError) == seconds


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_what_is_no_limit_is_an_error(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("LIMIT", text)
    with pytest.raises(FerryError, match=rf"^LIMIT={text} is not a number of seconds above 0$"):
        seconds_from("LIMIT", 5.0, FerryError)
