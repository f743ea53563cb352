# SPDX-License-Identifier: Apache-2.0
"""An instance can be used again whatever ended a call: a signal handler that raises at any place,
Python's recursion limit, a finaliser that calls a program meanwhile."""

from __future__ import annotations

import itertools
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import ferryvm
from ferryvm import Instance, float_environment
from ferryvm.backend import BackendError
from ferryvm.engine import interrupt
from ferryvm.engine.active_call import InUseError
from ferryvm.engine.compilation import Job
from ferryvm.engine.marshal import CallError
from ferryvm.garbage import collector_suspended
from ferryvm.machine.control import ControlBlock

from .stepping import Action, runs, signal_comes, stepped
from .test_instance import PROGRAM, ask

BACKENDS = ["threaded", "reference", "default policy"]

CALLS: dict[str, Callable[[Any], object]] = {
    "short": lambda instance: instance.add(1, 2),
    "misfit": lambda instance: instance.add(1, "x"),
    "nested": lambda instance: instance.asking(2),
    "trap": lambda instance: instance.divide(1, 0),
    "exception": lambda instance: instance.asking(-1),
    "fuel": lambda instance: instance.call("asking", 2, fuel=1000),
    "suspended": lambda instance: instance.call("spin", 1000, fuel=100),
}
PLACES = 60
"""Bytecodes that a call is stepped to in the default tier; the nightly one takes each."""


class Alarm(Exception):  # noqa: N818 - it is no error
    """The signal handler's."""


@pytest.fixture
def alarm() -> Iterator[Action]:
    def handle(*_: object) -> None:
        raise Alarm

    old = signal.signal(signal.SIGALRM, handle)
    # Callbacks of collections, as Hypothesis has one, lose what a handler raises in them.
    with collector_suspended():
        yield signal_comes(signal.SIGALRM)
    signal.signal(signal.SIGALRM, old)


def instantiated(backend: str) -> Any:
    engine = ferryvm.Engine(None if backend == "default policy" else backend)
    return engine.instantiate(PROGRAM, hosts=[ask])


def outcome(instance: Any, call: Callable[[Any], object]) -> object:
    """The result of a call, or the class of its error; one that stopped is taken off the stack."""
    try:
        return call(instance)
    except (ferryvm.FerryError, LookupError, RecursionError, Alarm) as error:
        if instance.suspended is not None:
            instance.suspended.abandon()
        return type(error)


def descriptor() -> int:
    found = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(found, warn_on_full_buffer=False)
    return found


def check_usable(instance: Any) -> None:
    assert instance.add(3, 4) == 7
    assert instance.asking(1) == 102
    assert instance.suspended is None


def steps(instance: Any, call: Callable[[Any], object], every: bool) -> Iterator[int]:
    """Numbers of the bytecodes of a call, all or some, from the first to one past the last."""
    nothing = runs(lambda: None)
    if every:
        return itertools.count()
    low, high = 0, 1
    while stepped(high, nothing, lambda: outcome(instance, call)).has_acted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        has_acted = stepped(middle, nothing, lambda: outcome(instance, call)).has_acted
        low, high = (middle, high) if has_acted else (low, middle)
    stride = max(1, high // PLACES) | 1
    return iter([*range(0, high, stride), high + 1])


TIERS = [pytest.param(False, id="some"), pytest.param(True, id="all", marks=pytest.mark.nightly)]


@pytest.mark.parametrize("every", TIERS)
@pytest.mark.rotate("name", "backend", most=3)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_signal_handler_that_raises_anywhere_leaves_nothing_half_done(
    backend: str, name: str, every: bool, alarm: Action
) -> None:
    instance, call = instantiated(backend), CALLS[name]
    expected = outcome(instance, call)
    handler = signal.getsignal(signal.SIGINT)
    for step in steps(instance, call, every):
        before = descriptor()
        end = stepped(step, alarm, lambda: call(instance))
        if instance.suspended is not None:
            assert name == "suspended"
            instance.suspended.abandon()
        found = type(end.error) if end.error is not None else end.value
        assert found in (Alarm, expected), step
        assert signal.getsignal(signal.SIGINT) is handler, step
        assert descriptor() in (before, interrupt._watcher and interrupt._watcher.writer), step
        assert float_environment._thread.caller is None, step
        assert interrupt._watcher is None or interrupt._watcher._watched is None, step
        check_usable(instance)
        if not end.has_acted:
            return


@pytest.mark.parametrize("every", TIERS)
@pytest.mark.rotate("name", "backend", most=3)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_finaliser_that_calls_anywhere_gets_a_result_or_an_error_and_changes_none(
    backend: str, name: str, every: bool
) -> None:
    instance, other, call = instantiated(backend), instantiated(backend), CALLS[name]
    expected = outcome(instance, call)
    found: list[object] = []

    def finalise() -> None:
        found.append(other.asking(1))
        try:
            found.append(instance.call("asking", 1))
        except ferryvm.CallError:
            found.append(ferryvm.CallError)

    for step in steps(instance, call, every):
        found.clear()
        end = stepped(step, runs(finalise), lambda: call(instance))
        if instance.suspended is not None:
            instance.suspended.abandon()
        assert (type(end.error) if end.error is not None else end.value) == expected, step
        assert found in ([], [102, 102], [102, CallError], [102, InUseError]), step
        check_usable(instance)
        if not end.has_acted:
            return


def down(frames: int, call: Callable[[], object]) -> object:
    """The result of a call with so many frames beneath it."""
    return call() if frames <= 0 else down(frames - 1, call)


def depth() -> int:
    frame, count = sys._getframe(), 0
    while frame.f_back is not None:
        frame, count = frame.f_back, count + 1
    return count


@pytest.mark.rotate("name", "backend", most=3)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_recursion_limit_met_anywhere_is_a_recursion_error(backend: str, name: str) -> None:
    instance, call = instantiated(backend), CALLS[name]
    expected, found = outcome(instance, call), []
    free = sys.getrecursionlimit() - depth()
    for left in range(1, 70):
        try:
            found.append(down(free - left, lambda: outcome(instance, call)))
        except RecursionError:  # in the test itself
            found.append(RecursionError)
        check_usable(instance)
    assert set(found) == {expected, RecursionError}


@ferryvm.host(name="ask")
def ask_at_the_limit(instance: Instance, x: ferryvm.i64) -> ferryvm.i64:
    """Call the program again, without end."""
    result: int = instance.asking(x)
    return result


@pytest.mark.parametrize("backend", BACKENDS)
def test_calls_back_without_end_end_at_the_limit_that_comes_first(backend: str) -> None:
    engine = ferryvm.Engine(None if backend == "default policy" else backend)
    instance = engine.instantiate(PROGRAM, hosts=[ask_at_the_limit])
    free = sys.getrecursionlimit() - depth()
    for left, error in ((free - 10, ferryvm.CallError), (200, RecursionError)):
        with pytest.raises(error, match=r"inside each other|recursion"):
            down(free - left, lambda: instance.asking(1))
        assert instance.add(1, 2) == 3


def test_recursion_limit_met_in_the_backend_of_a_plain_run_ends_it() -> None:
    """Half of an instruction may be done then; only a call of an instance can be taken back."""
    execution = ferryvm.Engine("reference").start(ferryvm.compile("(+ 1 2)"))
    free = sys.getrecursionlimit() - depth()
    errors = []
    for left in range(1, 70):
        try:
            down(free - left, execution.run)
        except (RecursionError, ferryvm.FerryError) as error:
            errors.append(error)
    assert {type(error) for error in errors} == {RecursionError, BackendError}
    with pytest.raises(BackendError, match=r"cannot go on.*RecursionError was raised"):
        execution.run()


def test_job_is_waited_for_whatever_a_signal_handler_raised_in_the_wait(alarm: Action) -> None:
    """`threading.Event` has a lock that stayed locked, so that nobody could end the job."""
    control = ControlBlock()
    job = Job(lambda: None)
    for step in itertools.count():
        control.interrupt = 1  # else it would wait for what never comes
        end = stepped(step, alarm, lambda: job.wait(control))
        if not end.has_acted:
            break
        assert isinstance(end.error, Alarm)
    job.end()
    assert job.wait(control)
    assert step > 5
