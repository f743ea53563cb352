# SPDX-License-Identifier: Apache-2.0
"""Instances: functions of a loaded program called from Python, and host functions that call
back."""

from __future__ import annotations

import copy
import dis
import inspect
import math
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm import Instance, host, i64
from ferryvm.engine.call import Calls
from ferryvm.engine.execution import Execution
from ferryvm.machine.memory import Limits

from .calls_program import PROGRAM, TEXT, ask


def test_functions_are_called_with_python_numbers(instance: Instance) -> None:
    for _ in range(3):  # the first call prepares the ones after it
        assert instance.add(3, -10) == -7
        assert instance.add(True, -(1 << 63)) == 1 - (1 << 63)
        assert instance.scale(1.5, 2) == 3.0
        assert instance.scale(1, 0.1) == 0.10000000149011612  # rounded to an f32
        assert math.isnan(instance.scale(math.nan, 1.0))
        assert instance.narrow(-5) == -5
        assert instance.both(1, 2.5) == (1, 2.5)
        assert instance.nothing() is None
    assert instance.call("add", 1, 2) == 3
    assert instance.static("calls") == 3


def test_what_does_not_fit_is_told_and_changes_nothing(instance: Instance) -> None:
    cases = [
        ("add", (1 << 63, 1), r"add: argument 1 is 9223372036854775808; an int from -9223"),
        ("add", (1, "x"), "add: argument 2 is 'x'; an int from"),
        ("add", (1, 2.0), "add: argument 2 is 2.0; an int from"),
        ("narrow", (1 << 31,), r"narrow: argument 1 is 2147483648; .* to 2147483647 for an i32"),
        ("scale", (None, 1.0), "scale: argument 1 is None; a number for an f64 is expected"),
        ("scale", (1.0, 1e300), "scale: argument 2 is 1e\\+300; a number for an f32"),
        ("add", (1, np.array([3])), r"add: argument 2 is array\(\[3\]\); an int from"),
        ("add", (1,), r"add\(i64, i64\) -> i64 takes 2 arguments, found 1"),
    ]
    for _ in range(2):
        for name, arguments, message in cases:
            with pytest.raises(ferryvm.CallError, match=message):
                instance.call(name, *arguments)  # type: ignore[arg-type] # the fault to be found
        assert instance.add(1, 2) == 3  # from here on, calls take the short way
    with pytest.raises(TypeError, match=r"add\(\) takes 2 positional arguments but 3 were given"):
        instance.add(1, 2, 3)
    with pytest.raises(ferryvm.FerryError, match="no exported function 'ad'; did you mean 'add'"):
        instance.call("ad", 1, 2)
    with pytest.raises(AttributeError, match="exports no 'begin'"):
        instance.begin()
    assert instance.add(1, 2) == 3


@pytest.mark.parametrize("name", ["_calls", "_exports", "__dict__", "call", "class"])
def test_export_of_any_name_leaves_the_instance_whole(name: str) -> None:
    program = ferryvm.assemble(TEXT.replace("narrow", name))
    instance = ferryvm.Engine("threaded").instantiate(program, hosts=[ask])
    for _ in range(2):
        assert instance.call(name, -5) == -5
        assert instance.call("add", 1, 2) == instance.add(1, 2) == 3
    assert name in instance.exports


def test_notes_name_each_call_once(instance: Instance) -> None:
    with pytest.raises(ValueError, match="0") as caught:
        instance.asking(-13)
    names = [note.split()[1] for note in caught.value.__notes__]
    assert names == ["asking", "<call"] * 3 + ["begin"]


def test_no_signal_handler_runs_between_taking_an_instance_and_the_block(
    instance: Instance,
) -> None:
    """It would raise KeyboardInterrupt there, and the instance would be in use for ever."""
    for function in (instance.add, Calls.call, Calls.alone, Execution.alone):
        code = function.__code__
        found = list(dis.get_instructions(code))
        taken = next(n for n, one in enumerate(found) if one.opname == "DELETE_ATTR")
        # Python looks for signals at calls and backward jumps; then comes the block.
        assert found[taken].argval == "free"
        assert found[taken + 1].opname in ("NOP", "JUMP_FORWARD")


def test_nested_calls_share_the_fuel(instance: Instance) -> None:
    needed = next(fuel for fuel in range(100) if _answers(instance, fuel))
    reference = ferryvm.Engine("reference").instantiate(PROGRAM, hosts=[ask])
    assert not _answers(reference, needed - 1)
    assert _answers(reference, needed)


def _answers(instance: Instance, fuel: int) -> bool:
    """True if a call with a call inside it ends with this fuel."""
    try:
        assert instance.call("asking", 1, fuel=fuel) == 102
    except ferryvm.OutOfFuelError:
        if instance.suspended is not None:
            instance.suspended.abandon()
        return False
    return True


def test_what_is_of_the_wrong_type_is_named() -> None:
    instance: Any = ferryvm.Engine("threaded").instantiate(PROGRAM, hosts=[ask])
    for call, message in (
        (lambda: instance.call(3), "no exported function 3"),
        (lambda: instance.call("add", 1, 2, fuel="x"), "fuel is 'x'; 0 to"),
        (lambda: instance.call("add", 1, 2, fuel=1.5), "fuel is 1.5; 0 to"),
        (lambda: instance.call("add", 1, 2, backend=3), "no backend 3"),
        (lambda: instance.allocate(1.5), "1.5 bytes cannot be allocated; an int"),
        (lambda: instance.static(3), "no static 3"),
    ):
        with pytest.raises(ferryvm.FerryError, match=message):
            call()
        assert instance.add(1, 2) == 3


def test_trap_shows_both_sides_and_leaves_the_instance_usable(instance: Instance) -> None:
    for _ in range(2):
        with pytest.raises(ferryvm.TrapError) as caught:
            instance.deep(3)
        names = [frame.function for frame in caught.value.stack]
        assert names == ["deep"] * 4 + ["<call of deep>", "begin"]
        assert instance.add(1, 2) == 3


def test_host_function_calls_back_into_the_program(instance: Instance) -> None:
    assert instance.asking(0) == 101
    assert instance.asking(20) == 121
    with pytest.raises(LookupError, match="nothing to answer"):
        instance.asking(-1)
    with pytest.raises(ferryvm.TrapError) as caught:
        instance.asking(-2)
    names = [frame.function for frame in caught.value.stack]
    assert names == ["divide", "<call of divide>", "asking", "<call of asking>", "begin"]
    assert instance.asking(1) == 102


def test_calls_back_without_end_are_an_error(instance: Instance) -> None:
    with pytest.raises(ferryvm.CallError, match="called back 100 times inside each other"):
        instance.asking(1000)
    assert instance.asking(1) == 102


def test_host_function_of_a_plain_run_can_call_back(backend: str) -> None:
    text = TEXT.replace("    halt\n", "    i64.const 5\n    call asking\n    halt\n", 1)
    engine = ferryvm.Engine(backend, hosts=[ask])
    assert engine.start(ferryvm.assemble(text)).run().value == 106


def test_other_thread_is_refused_while_a_call_runs(backend: str) -> None:
    errors: list[BaseException] = []

    @host(name="ask")
    def interfere(x: i64) -> i64:
        def call() -> None:
            try:
                instance.add(1, 2)
            except BaseException as error:  # noqa: BLE001 - looked at below
                errors.append(error)

        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
        return x

    instance = ferryvm.Engine(backend).instantiate(PROGRAM, hosts=[interfere])
    for _ in range(2):
        assert instance.asking(5) == 6
    assert [str(error) for error in errors] == [
        "this instance is in use by another thread; each thread needs its own"
    ] * 2


def test_instance_moves_from_thread_to_thread(instance: Instance) -> None:
    results: list[object] = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: results.append(instance.add(1, 2)))
        thread.start()
        thread.join()
        results.append(instance.add(3, 4))
    assert results == [3, 7] * 3


def test_ctrl_c_stops_a_call_that_can_go_on(instance: Instance) -> None:
    instance.spin(1)
    before = signal.getsignal(signal.SIGINT)
    for _ in range(2):
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        began = time.monotonic()
        with pytest.raises(ferryvm.ProgramInterrupted, match="interrupted") as caught:
            instance.endless()
        assert time.monotonic() - began < 30
        timer.join()
        assert caught.value.call is not None
        assert caught.value.call is instance.suspended
        assert instance.add(1, 2) == 3
        caught.value.call.abandon()
    assert signal.getsignal(signal.SIGINT) is before
    assert instance.spin(5) == 77


@pytest.mark.parametrize("name", ["switch", "threaded", None])
def test_handler_that_does_not_raise_lets_a_native_call_go_on(name: str | None) -> None:
    instance = ferryvm.Engine(name).instantiate(PROGRAM, hosts=[ask])
    seen: list[int] = []
    old = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    try:
        instance.add(1, 2)
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        while not seen:
            assert instance.spin(30000) == 77
        timer.join()
    finally:
        signal.signal(signal.SIGINT, old)
    assert seen == [signal.SIGINT]


def test_program_that_ends_inside_a_call_is_an_error(instance: Instance) -> None:
    for _ in range(2):
        with pytest.raises(ferryvm.CallError, match=r"stop: the program ended at calls.fasm"):
            instance.stop()
        assert instance.add(1, 2) == 3


def test_heap_is_a_view_that_both_sides_see(instance: Instance) -> None:
    start = instance.allocate(20)
    view = instance.heap
    assert len(view) >= start + 24
    assert instance.bytes(start + 8) == 9
    assert view[start + 8 : start + 16].view("i8").tolist() == [9]
    big = instance.allocate(16 << 20)
    assert instance.heap[big:].view("u8")[-1] == 0
    assert view[start + 8] == 9  # it stays where it is
    with pytest.raises(ferryvm.CallError, match="-1 bytes cannot be allocated"):
        instance.allocate(-1)


def test_statics_are_read_and_written_by_name(instance: Instance) -> None:
    instance.set_static("calls", 41)
    instance.both(1, 1.0)
    assert instance.static("calls") == 42
    with pytest.raises(ferryvm.FerryError, match="no static 'call'; did you mean 'calls'"):
        instance.static("call")
    with pytest.raises(ferryvm.CallError, match=r"static calls is 0.5; an int from"):
        instance.set_static("calls", 0.5)


def test_call_without_room_on_the_stack_is_refused(backend: str) -> None:
    engine = ferryvm.Engine(backend, limits=Limits(stack=1024))
    instance = engine.instantiate(PROGRAM, hosts=[ask])
    with pytest.raises((ferryvm.CallError, ferryvm.TrapError), match=r"no room|stack overflow"):
        instance.asking(90)
    assert instance.add(1, 2) == 3


def test_functions_tell_their_signatures() -> None:
    instance = ferryvm.Engine("reference").instantiate(PROGRAM, hosts=[ask])
    assert str(inspect.signature(instance.both)) == "(x0: i64, x1: f64, /) -> (i64, f64)"
    assert "Defined at calls.fasm:" in (instance.both.__doc__ or "")
    assert {"add", "spin", "call"} <= set(dir(instance))
    assert list(instance.exports)[:2] == ["add", "scale"]


def test_instance_goes_on_with_what_an_earlier_one_left(instance: Instance) -> None:
    instance.both(1, 1.0)
    offset = instance.allocate(8)
    instance.heap[offset] = 7
    engine = ferryvm.Engine("threaded")
    later = engine.instantiate(PROGRAM, hosts=[ask], after=instance)
    later.both(1, 1.0)
    assert (later.static("calls"), instance.static("calls")) == (2, 1)
    assert later.heap[offset] == 7
    with pytest.raises(ferryvm.OutOfFuelError):
        instance.call("spin", 1000, fuel=10)
    with pytest.raises(ferryvm.CallError, match="a call is under way"):
        engine.instantiate(PROGRAM, hosts=[ask], after=instance)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_copy_by_python_is_refused_with_what_to_do(copied: Callable[[object], object]) -> None:
    engine, program = ferryvm.Engine("reference"), ferryvm.compile("(define (f (x i64)) x)")
    with pytest.raises(TypeError, match=r"instantiate the program again.*instance\.save\(path\)"):
        copied(engine.instantiate(program))
    with pytest.raises(TypeError, match=r"execution\.fork\(\) copies it"):
        copied(engine.start(program))


def test_an_instance_at_rest_is_in_the_state_that_its_start_function_leaves() -> None:
    program = ferryvm.assemble("""
.function main
    halt
.function double (x i64) -> i64
    local.get x
    i64.const 2
    i64.mul
    return
.export double
""")
    engine = ferryvm.Engine("reference")
    rest = engine.instantiate_at_rest(program)
    started = engine.instantiate(program)
    executions = [one.double.__ferryvm__[0].execution for one in (rest, started)]
    found, wanted = [each.machine.snapshot() for each in executions]
    assert found == wanted
    assert [each.entries for each in executions] == [0, 1]
    assert (rest.double(4), rest.double(5)) == (8, 10)


def test_an_instance_of_a_program_with_a_start_function_is_not_at_rest() -> None:
    program = ferryvm.compile("(define x 1) (define (f (y i64)) (+ x y))")
    with pytest.raises(ValueError, match="has instructions before its halt"):
        ferryvm.Engine("reference").instantiate_at_rest(program)
