# SPDX-License-Identifier: Apache-2.0
"""A thread runs once it is started, or that it does not is an error."""

from __future__ import annotations

import _thread
import sys
import threading
import types
from collections.abc import Callable

import pytest

from ferryvm.thread import ThreadError, start


def test_a_thread_that_is_started_runs() -> None:
    has_run = threading.Event()
    start(has_run.set)
    assert has_run.wait(60)


def test_a_thread_that_ends_before_its_first_frame_is_an_error_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[object] = []

    def no_memory(run: Callable[[], None], _: tuple[()]) -> None:
        for culprit in (None, run):
            sys.unraisablehook(types.SimpleNamespace(object=culprit))  # type: ignore[arg-type]  # what is read of it

    monkeypatch.setattr(_thread, "start_new_thread", no_memory)
    monkeypatch.setattr(sys, "unraisablehook", told.append)
    with pytest.raises(ThreadError, match=r"^a thread cannot be started: out of memory$"):
        start(lambda: None)
    assert [each.object for each in told] == [None], "what is not ours is told as ever"  # type: ignore[attr-defined]  # they are namespaces
    assert sys.unraisablehook == told.append


def test_too_many_threads_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    with pytest.raises(ThreadError, match="the limit is reached"):
        start(lambda: None)
