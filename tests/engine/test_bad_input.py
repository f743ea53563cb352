# SPDX-License-Identifier: Apache-2.0
"""Bad input of each kind is one clear error, and the instance can be used afterwards."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

import ferryvm
from ferryvm import f64, host, i64
from ferryvm.machine.host import HostError

PROGRAM = """
.host ask (i64) -> i64
.tag error i64 f64
.static calls i64
.static small i32
.export f
.export g
.export again
.export spin
.function start
    halt
.function f (a i64 b f32) -> i64
    static.get calls
    i64.const 1
    i64.add
    static.set calls
    local.get a
    host ask
    return
.function g (a i64)
    local.get a
    f64.const 1.5
    throw error
.function again (tag i64)
    local.get tag
    i64.const 1
    i64.const 2
    i64.const 3
    i64.const 4
    throw_record
.function spin
:top
    static.get calls
    i64.const 1
    i64.add
    static.set calls
    jump top
"""
I64_RANGE = "-9223372036854775808 to 9223372036854775807"


@host(name="ask")
def ask(x: i64) -> i64:
    """The answer, of a type that the argument asks for."""
    answers: dict[int, object] = {-1: "seven", -2: None, -3: 1 << 63, -4: 0.5}
    return answers.get(x, x)  # type: ignore[return-value]  # the fault to be found


@host(name="ask")
def other_type(x: f64) -> f64:
    """A function of another signature."""
    return x


def assembled(old: str = "", new: str = "") -> ferryvm.Program:
    assert old in PROGRAM
    return ferryvm.assemble(PROGRAM.replace(old, new), "p.fasm")


def instantiated(old: str = "", new: str = "", hosts: Any = (ask,)) -> Any:
    return ferryvm.Engine("threaded").instantiate(assembled(old, new), hosts=hosts)


CALLS: list[tuple[Callable[[Any], object], type[Exception], str]] = [
    (lambda one: one.f(1), TypeError, "f() missing 1 required positional argument: 'b'"),
    (lambda one: one.f(1, 2, 3), TypeError, "f() takes 2 positional arguments but 3 were given"),
    (lambda one: one.call("f", 1), ferryvm.CallError,
     "f(a: i64, b: f32) -> i64 takes 2 arguments, found 1"),
    (lambda one: one.call("f"), ferryvm.CallError,
     "f(a: i64, b: f32) -> i64 takes 2 arguments, found 0"),
    (lambda one: one.f(1 << 63, 1), ferryvm.CallError,
     f"f: argument 1 (a) is 9223372036854775808; an int from {I64_RANGE} for an i64 is expected"),
    (lambda one: one.f(0.5, 1), ferryvm.CallError,
     f"f: argument 1 (a) is 0.5; an int from {I64_RANGE} for an i64 is expected"),
    (lambda one: one.f(1, 1e39), ferryvm.CallError,
     "f: argument 2 (b) is 1e+39; a number for an f32 is expected"),
    (lambda one: one.f(1, "x"), ferryvm.CallError,
     "f: argument 2 (b) is 'x'; a number for an f32 is expected"),
    (lambda one: one.set_static("small", 1 << 31), ferryvm.CallError,
     "static small is 2147483648; an int from -2147483648 to 2147483647 for an i32 is expected"),
    (lambda one: one.call("h"), ferryvm.FerryError,
     "no exported function 'h' (known: again, f, g, spin)"),
    (lambda one: one.h(), AttributeError,
     "the program exports no 'h'; it exports f, g, again, spin"),
    (lambda one: one.f(-1, 1), HostError,
     f"host function ask returned 'seven'; an int from {I64_RANGE} for an i64 is expected"),
    (lambda one: one.f(-2, 1), HostError,
     f"host function ask returned None; an int from {I64_RANGE} for an i64 is expected"),
    (lambda one: one.f(-3, 1), HostError,
     f"host function ask returned 9223372036854775808; an int from {I64_RANGE} for an i64"),
    (lambda one: one.f(-4, 1), HostError,
     f"host function ask returned 0.5; an int from {I64_RANGE} for an i64 is expected"),
    (lambda one: one.again(7), ferryvm.TrapError,
     "p.fasm:30:5: trap: record of no exception thrown"),
    (lambda one: one.again(-1), ferryvm.TrapError,
     "p.fasm:30:5: trap: record of no exception thrown"),
    (lambda one: one.g(3), ferryvm.UncaughtError,
     "p.fasm:23:5: trap: uncaught exception error(3, 1.5)"),
    (lambda one: one.call("f", 1, 2, fuel=-1), ferryvm.FerryError,
     "fuel is -1; 0 to 9223372036854775807 is allowed"),
    (lambda one: one.call("f", 1, 2, backend="thread"), ferryvm.FerryError,
     "no backend 'thread'; did you mean 'threaded'?"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), CALLS, ids=[text for *_, text in CALLS])
def test_call_that_cannot_be_made_or_finished_is_one_error(
    call: Callable[[Any], object], kind: type[Exception], message: str
) -> None:
    instance = instantiated()
    for count in (1, 2):
        with pytest.raises(kind) as caught:
            call(instance)
        assert str(caught.value).startswith(message)
        called = instance.static("calls")
        assert instance.f(5, 0.5) == 5
        assert instance.static("calls") == called + 1
        assert instance.suspended is None, count


CLAUSES = """
.tag error i64
.function main
:a
    i64.const 1
    throw error
:b
    i64.const 1
    throw error
:c
:handler
    drop
    halt
.catch error from {} to {} using handler
.catch error from {} to {} using handler
"""

PROGRAMS: list[tuple[Callable[[], object], str]] = [
    (lambda: instantiated(hosts=()), "p.fasm:18:5: no host function 'ask'"),
    (lambda: instantiated(hosts=[other_type]),
     "p.fasm:18:5: host function ask is (f64) -> (f64), the program imports it as (i64) -> (i64)"),
    (lambda: instantiated(hosts=[3]),
     "a host function is 3 (int); a function or a HostFunction is expected"),
    (lambda: instantiated(hosts=ask),
     "hosts: HostFunction(name='ask'"),
    (lambda: instantiated("f64.const 1.5", "i64.const 1"),
     "V31 at pc 10 (p.fasm:23:5): throw: operand of type f64 expected, found i64"),
    (lambda: instantiated("    f64.const 1.5\n"),
     "V31 at pc 9 (p.fasm:22:5): throw: operand of type f64 expected, found i64"),
    (lambda: instantiated("    i64.const 4\n"),
     "V30 at pc 15 (p.fasm:29:5): throw_record: operand of type i64 expected, the stack is empty"),
    (lambda: ferryvm.run(ferryvm.assemble(CLAUSES.format(*"accc"[:2], *"ba"), "c.fasm")),
     "V42 (c.fasm:8:5): clause 1 covers pcs 2 to -1, code has 6"),
    (lambda: ferryvm.run(ferryvm.assemble(CLAUSES.format("a", "c", "a", "b"), "c.fasm")),
     "V43 (c.fasm:5:5): clause 1: the clause of pcs 0 to 1 comes after the clause of pcs 0 to 3"),
]  # fmt: skip


@pytest.mark.parametrize(("begin", "message"), PROGRAMS, ids=[text for _, text in PROGRAMS])
def test_program_that_cannot_be_instantiated_is_one_error(
    begin: Callable[[], object], message: str
) -> None:
    with pytest.raises(ferryvm.FerryError) as caught:
        begin()
    assert str(caught.value).startswith(message)


def test_clauses_that_cross_are_named_with_their_place() -> None:
    text = CLAUSES.replace(":c\n", ":c\n    i64.const 2\n    throw error\n:d\n")
    program = ferryvm.assemble(text.format("a", "c", "b", "d"), "c.fasm")
    message = (
        "V43 (c.fasm:8:5): clause 1: the clause of pcs 2 to 5 crosses the clause of pcs 0 to 3"
    )
    with pytest.raises(ferryvm.FerryError, match=re.escape(message)):
        ferryvm.run(program)


def test_text_in_the_place_of_a_program_is_named() -> None:
    engine: Any = ferryvm.Engine("threaded")
    for begin in (engine.instantiate, engine.start):
        with pytest.raises(
            TypeError, match=r"a Program expected, found str; ferryvm.compile makes"
        ):
            begin("(+ 1 2)")
    with pytest.raises(TypeError, match="after is 'earlier'; an Instance is expected"):
        engine.instantiate(assembled(), hosts=[ask], after="earlier")


@pytest.mark.parametrize("backend", ["threaded", "llvm", None])
def test_other_thread_is_refused_while_native_code_runs(backend: str | None) -> None:
    """No Python code runs then that could tell: it is the call of the other thread that is
    refused, at once, and the call that runs goes on."""
    instance: Any = ferryvm.Engine(backend).instantiate(assembled(), hosts=[ask])
    ends: list[BaseException] = []
    begins, busy = threading.Event(), instance._execution.busy

    def spin() -> None:
        instance.f(1, 1)  # prepares the next call to be short
        begins.set()
        try:
            instance.spin()
        except BaseException as error:  # noqa: BLE001 - looked at below
            ends.append(error)

    thread = threading.Thread(target=spin)
    thread.start()
    begins.wait()
    while hasattr(busy, "free"):
        pass
    before = instance.static("calls")
    for call in (
        lambda: instance.f(1, 1),
        lambda: instance.call("f", 1, 1, fuel=5),
        lambda: instance.allocate(8),
        lambda: instance.save("never"),
    ):
        with pytest.raises(ferryvm.CallError, match="in use by another thread; each thread needs"):
            call()
    instance.interrupt()
    thread.join()
    (end,) = ends
    assert isinstance(end, ferryvm.ProgramInterrupted)
    assert end.call is instance.suspended
    assert end.call is not None
    assert instance.static("calls") >= before
    end.call.abandon()
    assert instance.f(5, 0.5) == 5
