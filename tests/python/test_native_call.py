# SPDX-License-Identifier: Apache-2.0
"""Calls of compiled functions by built-in functions: as the calls in Python, and as CPython."""

from __future__ import annotations

import ctypes
import gc
import math
import random
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

import ferryvm
from ferryvm.architecture import IS_X86
from ferryvm.engine import built_in
from ferryvm.engine.call_length import most_instructions
from ferryvm.machine.python_call import MOST_ATTEMPTS, Boxed
from ferryvm.python.call import fast_call
from ferryvm.python.call import function as function_module

from .native_call import is_native, natively, outcome

pytestmark = pytest.mark.skipif(
    built_in.problem() is not None, reason=f"no built-in functions: {built_in.problem()}"
)

FACTOR = 3
UPWARD = 0x800 if IS_X86 else 0x400000
"""FE_UPWARD."""


def add(a, b):
    return a + b


def scaled(a, b):
    return a * FACTOR - b


def less(a, b):
    return a < b


def nothing(a, b):
    if a == b:
        raise ValueError(a, "and", b)


def reciprocal(a, b):
    return a / b


def summed(a, b):
    total = b
    for n in range(3):
        total += n * a
    return total


_NUMBERS = (
    *(0, 1, -1, 7, 255, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63), 2**63, -(2**64)),
    *(0.0, -0.0, 1.5, -2.25, 1e308, 5e-324, math.inf, -math.inf, math.nan, True, False),
)


@pytest.mark.parametrize("python", [add, scaled, less, nothing, reciprocal, summed])
@pytest.mark.parametrize("types", [(1.5, 2.5), (1, 2), (1, 2.5), (True, 2)])
def test_results_and_exceptions_are_those_of_cpython(
    python: Callable[..., Any], types: tuple[Any, ...]
) -> None:
    function = natively(python, *types)
    random_ = random.Random(f"{python.__name__} {types}")
    own = [[n for n in _NUMBERS if type(n) is type(each)] for each in types]
    pairs = [tuple(map(random_.choice, own)) for _ in range(40)]
    pairs += [(random_.choice(_NUMBERS), random_.choice(_NUMBERS)) for _ in range(10)]
    for pair in pairs:
        assert outcome(function, *pair) == outcome(python, *pair), pair
    assert is_native(function)


def test_other_calls_are_left_to_python_code() -> None:
    class Whole(int):
        pass

    function = natively(add, 1, 2)
    for given, named in (
        *(((1,), {}), ((1, 2, 3), {}), ((), {"a": 1, "b": 2}), ((1,), {"b": 2}), ((1,), {"c": 2})),
        *(((1, 2.5), {}), ((1.5, 2.5), {}), ((Whole(1), 2), {}), ((1, 2), {})),
    ):
        kinds = outcome(function, *given, **named), outcome(add, *given, **named)
        if Whole not in map(type, given):
            assert kinds[0] == kinds[1], (given, named)
        else:
            assert kinds[0][0] == "UnsupportedError"
    assert is_native(function)


def test_a_function_called_often_gets_a_built_in_function() -> None:
    done: list[Any] = []
    with mock.patch.object(function_module, "submit", done.append):
        function = ferryvm.function(add)
        for n in range(fast_call.CALLS_BEFORE + 1):  # the first one makes the method
            assert not done
            assert function(n, 1) == n + 1
    (job,) = done
    job.run()
    assert is_native(function)
    assert function(5, 1) == 6


def test_the_reason_for_calls_by_python_code_is_recorded() -> None:
    function: Any = ferryvm.function(lambda a: (a, a))
    plain: Any = ferryvm.function(lambda a: a + 1)
    function(1)
    plain(1)
    assert function._direct is None  # the result is no single number
    with mock.patch.object(built_in, "problem", return_value="this is a debug build of Python"):
        plain._call_natively((int,), plain._plain[int,])
    assert not is_native(plain)
    assert "enter by Python code once: this is a debug build of Python" in str(plain.explain())


def test_no_reference_is_lost_or_left() -> None:
    functions = [natively(python, 1.5, 2.5) for python in (add, less, nothing, summed)]
    a, b = float("1234.5"), float("0.25")

    def counts() -> list[int]:
        return [*map(sys.getrefcount, (a, b, True, False, None)), sys.getallocatedblocks()]

    def work() -> None:
        for function in functions:
            for _ in range(5000):
                function(a, b)

    work()
    before = counts()
    work()
    for now, old in zip(counts(), before, strict=True):
        assert abs(now - old) < 1000


def test_the_function_ends_with_its_last_reference() -> None:
    function = natively(lambda a: a + 1.0, 1.0)
    call, last = type(function).__call__, weakref.ref(function)
    del function
    gc.collect()
    assert call(2.0) == 3.0  # it owns what it needs
    del call
    gc.collect()
    assert last() is None


def test_the_traceback_has_the_lines_of_python() -> None:
    function = natively(reciprocal, 1, 2)
    with pytest.raises(ZeroDivisionError) as raised:
        function(1, 0)
    assert traceback.extract_tb(raised.tb)[-1].line == "return a / b"


def test_changed_names_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    step = 5

    def stepped(a):
        return helper(a) * FACTOR + step

    def helper(a, more=1):
        return a + more

    function = natively(stepped, 1)
    assert function(1) == stepped(1) == 11
    step = 6
    assert function(1) == stepped(1) == 12
    monkeypatch.setitem(globals(), "FACTOR", 10)
    assert function(1) == stepped(1) == 26
    helper.__defaults__ = (2,)
    assert function(1) == stepped(1) == 36
    helper.__code__ = (lambda a, more=1: a).__code__
    assert function(1) == stepped(1) == 16
    stepped.__code__ = stepped.__code__.replace(co_name="other")  # not the code of its source
    assert outcome(function, 1)[0] == "UnsupportedError"


def test_a_name_that_hides_a_built_in_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    function = natively(summed, 1, 2)
    assert function(1, 2) == 5
    monkeypatch.setitem(globals(), "range", lambda n: (n, n))
    assert function(1, 2) == summed(1, 2) == 8
    monkeypatch.undo()
    assert function(1, 2) == 5


def test_bits_do_not_depend_on_the_thread_s_rounding() -> None:
    function = natively(reciprocal, 1.0, 2.0)
    library = ctypes.CDLL("libm.so.6") if sys.platform == "linux" else ctypes.CDLL(None)
    values = [float(n) for n in range(1, 40)]
    expected = [function(1.0, x) for x in values]
    library.fesetround(UPWARD)
    try:
        found = [function(1.0, x) for x in values]
        assert library.fegetround() == UPWARD
    finally:
        library.fesetround(0)
    assert found == expected


def endless(n):
    while n != -1:
        n ^= 2
    return n


def guarded(n):
    try:
        while n != -1:
            n ^= 2
    except KeyboardInterrupt:
        return 77
    return n


def test_ctrl_c_ends_a_call_and_is_caught_by_its_clauses() -> None:
    first, second = natively(endless, -1), natively(guarded, -1)

    def soon() -> None:
        threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)).start()

    soon()
    with pytest.raises(KeyboardInterrupt):
        first(1)
    assert first(-1) == -1
    soon()
    assert second(1) == 77
    assert second(-1) == -1
    assert is_native(second)


def test_threads_have_instances_of_their_own() -> None:
    function, wrong = natively(summed, 1, 2), []

    def work(first: int) -> None:
        wrong.extend(n for n in range(first, first + 300) if function(n, 1) != 3 * n + 1)

    threads = [threading.Thread(target=work, args=(1000 * n,)) for n in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    assert function(1, 1) == 4


class Calling:
    """Standard output that calls a function for each text."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.found = function, []

    def write(self, text: str) -> None:
        """Call it, unless it prints by itself."""
        if text.strip() == "7":
            self.found.append(self.function(5, 9))

    def flush(self) -> None:
        """Nothing is left."""


def printing(a, b):
    print(a)
    return a + b


def called_within() -> tuple[int, list[int]]:
    """The result of a call during which the function is called by the host, and that call's."""
    function = natively(printing, 1, 2)
    calling = Calling(function)
    with mock.patch.object(sys, "stdout", calling):
        return function(7, 1), calling.found


def test_a_host_function_may_call_the_function() -> None:
    assert called_within() == (8, [14])


def fails(times: int) -> tuple[list[object], str]:
    """The errors with which a call is left that cannot be taken so often, and its result."""
    compiled = ferryvm.function(summed)
    compiled(1, 2)
    version = compiled._plain[int, int]
    go_on, errors = version.function.__ferryvm_left__, list[object]()

    def left(arguments: tuple[Any, ...], error: BaseException | None) -> object:
        errors.append(error)
        if len(errors) <= times:
            raise KeyError(len(errors))
        try:
            return go_on(error)
        except BaseException as raised:  # noqa: BLE001  # it is the result
            return raised

    call, reason = built_in.built_in(
        version.function, (Boxed.INT, Boxed.INT), Boxed.INT, [], compiled, left
    )
    assert call is not None, reason
    found = outcome(call, 2**62, 2**62)  # it traps, so it is left
    assert outcome(call, 1, 2) == ("int", "5")
    return errors, found[1] if found[0] == "KeyError" else found[0]


def test_an_exception_before_a_call_is_taken_is_its_own() -> None:
    errors, found = fails(0)
    assert (errors, found) == ([None], "TrapError")
    errors, found = fails(2)
    assert [repr(each) for each in errors] == ["None", "KeyError(1)", "KeyError(2)"]
    assert found == "KeyError(2)"
    errors, found = fails(100)
    assert len(errors) == MOST_ATTEMPTS
    assert found == f"KeyError({MOST_ATTEMPTS})"


def recursive(n):
    return n if n < 2 else recursive(n - 1) + recursive(n - 2)


def calling(n):
    return helping(n) + helping(n)


def helping(n):
    return n * 2 + 1


def test_the_lock_is_released_where_a_call_may_be_long() -> None:
    def most(python: Callable[..., Any]) -> int | None:
        function = natively(python, -1)
        machine = function._plain[int,]._calls[0].machine
        (export,) = machine.program.exports
        return most_instructions(machine.program, export.function, 1000)

    assert most(endless) is None
    assert most(recursive) is None
    short, with_calls = most(helping), most(calling)
    assert short is not None
    assert with_calls is not None
    assert with_calls > 2 * short
