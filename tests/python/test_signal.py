# SPDX-License-Identifier: Apache-2.0
"""Signals, and statements that fail, in calls of compiled functions: as in CPython."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm.machine.control import Status

SOON = 0.02
"""Seconds until a signal comes: the calls here would never end without it."""
_BACKENDS = ("threaded", "switch", "llvm")
_Arm = Callable[..., None]


@pytest.fixture
def alarm() -> Iterator[_Arm]:
    """Sets the action for a signal that comes soon: in the middle of a call of a function, if one
    is given."""
    before = signal.getsignal(signal.SIGALRM)

    def arm(action: Callable[[], object], of: Any = None) -> None:
        has_acted = False

        def handle(_number: int, _frame: FrameType | None) -> None:
            # On a loaded machine the next signal may have come before the timer is off.
            nonlocal has_acted
            if not has_acted and (of is None or _stands(of)):
                has_acted = True
                signal.setitimer(signal.ITIMER_REAL, 0)
                action()

        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, SOON, SOON)

    yield arm
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def _stands(function: Any) -> bool:
    """True if a call of a function has stopped for a signal."""
    (version,) = function._versions.values()
    return any(calls.machine.status is Status.INTERRUPTED for calls in version._calls)


def _late() -> None:
    raise TimeoutError("late")


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _waiting(xs):
    count = 0
    while xs[0] == 0:
        count += 1
    return count


def _guarded(xs):
    try:
        return _waiting(xs)
    except (TimeoutError, KeyboardInterrupt) as e:
        xs[1] = len(e.args)
        raise
    finally:
        xs[2] = 1


@pytest.mark.parametrize("backend", _BACKENDS)
def test_a_signal_handler_runs_in_a_long_call_which_goes_on(alarm: _Arm, backend: str) -> None:
    waiting, xs = ferryvm.function(backend=backend)(_waiting), np.ones(3)
    assert waiting(xs) == 0  # it is compiled
    for _ in range(2):
        xs[:] = 0
        alarm(lambda: xs.__setitem__(0, 1))
        assert waiting(xs) > 0


@pytest.mark.parametrize("backend", _BACKENDS)
@pytest.mark.parametrize(
    ("action", "expected"), [(_late, TimeoutError), (_interrupt, KeyboardInterrupt)]
)
def test_exceptions_of_signal_handlers_are_raised_where_the_call_stands(
    alarm: _Arm, backend: str, action: Callable[[], object], expected: type[BaseException]
) -> None:
    guarded = ferryvm.function(backend=backend)(_guarded)
    assert guarded(np.ones(3)) == 0  # it is compiled
    for _ in range(2):  # the second call takes the fast path
        xs = np.zeros(3)
        alarm(action, guarded)
        with pytest.raises(expected) as caught:
            guarded(xs)
        assert xs.tolist() == [0, expected is TimeoutError, 1]
        lines = [each.line or "" for each in traceback.extract_tb(caught.tb)]
        start = lines.index("return _waiting(xs)")
        assert lines[start + 1] in ("while xs[0] == 0:", "count += 1")
        assert type(caught.value) is expected


def test_a_handler_of_ctrl_c_that_raises_nothing_lets_a_call_go_on(alarm: _Arm) -> None:
    xs = np.zeros(1)
    before = signal.signal(signal.SIGINT, lambda *_: xs.__setitem__(0, 1))
    try:
        waiting = ferryvm.function(_waiting)
        for _ in range(2):
            xs[0] = 0
            alarm(_interrupt)
            waiting(xs)
            assert xs[0] == 1
    finally:
        signal.signal(signal.SIGINT, before)


def _item(x, xs):
    return x + _waiting(xs)


def test_a_handler_s_exception_ends_a_map(alarm: _Arm) -> None:
    ferryvm.map(_item, np.ones(2), xs=np.ones(1))  # it is compiled
    alarm(_late)
    with pytest.raises(TimeoutError, match="late") as caught:
        ferryvm.map(_item, np.ones(2), xs=np.zeros(1))
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGALRM])
def test_a_handler_of_python_that_raises_keyboard_interrupt_stops_a_map(number: int) -> None:
    def raising(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def slow(x):
        for _ in range(20_000):
            x = x * 0.999 + 0.001
        return x

    xs = np.linspace(0.0, 1.0, 400_000)  # half a minute
    for _ in range(3):
        ferryvm.map(slow, xs[:2000])  # it is compiled
    before = signal.signal(number, raising)
    try:
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
        with pytest.raises(ferryvm.MapInterrupted) as caught:
            ferryvm.map(slow, xs)
    finally:
        signal.signal(number, before)
    is_left = np.zeros(len(xs), bool)
    for first, end in caught.value.left:
        is_left[first:end] = True
    done = np.flatnonzero(~is_left)
    assert len(done) == caught.value.done < len(xs)
    for item in done[:: max(len(done) // 4, 1)]:
        assert caught.value.results[item] == slow(float(xs[item]))


class _Full:
    """An output that takes two texts."""

    def __init__(self) -> None:
        self.left = 2

    def write(self, _text: str) -> None:
        """Take a text. Raises OSError if there is no room."""
        self.left -= 1
        if self.left < 0:
            raise OSError("full")


def test_exceptions_of_printing_go_to_clauses_and_have_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def printed(n):
        done = 0
        try:
            for i in range(n):
                print(f"{i}")
                done += 1
        except OSError:
            done += 100
        print(done)
        return done

    outcomes: list[Any] = []
    for function in (printed, ferryvm.function(printed)):
        monkeypatch.setattr(sys, "stdout", _Full())
        with pytest.raises(OSError, match="full") as caught:
            function(3)
        frames = traceback.extract_tb(caught.tb)
        lines = [each.line for each in frames if each.name in ("printed", "write")]
        outcomes.append((lines, hasattr(caught.value, "__notes__"), caught.value.__context__))
    assert outcomes[0] == outcomes[1]
