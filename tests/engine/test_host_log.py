# SPDX-License-Identifier: Apache-2.0
"""Logs of host calls: what is recorded plays again, and any other call is found."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

import ferryvm
from ferryvm import HostFunction, HostLog, Instance, ReplayError, f64, host, i32, i64
from ferryvm.engine.call_log import is_same_value
from ferryvm.image.container import ImageError
from ferryvm.isa.type import F32, F64, I64

CLOCKS = """
.host tick () -> (i64)
.host scale (i64 f64) -> (f64)
.host print_f64 (f64)
.function main
.local n i64
:top
    host tick
    f64.const 0.5
    host scale
    host print_f64
    local.get n
    i64.const 1
    i64.add
    local.set n
    local.get n
    i64.const 3
    i64.lt_s
    jump_if top
    host tick
    halt
"""


def clock(start: int = 100) -> HostFunction:
    times = itertools.count(start, 7)

    @host(replayable=True)
    def tick() -> i64:
        return next(times)

    return tick


@host(pure=True)
def scale(x: i64, by: f64) -> f64:
    return x * by


def recorded(backend: str = "reference") -> tuple[HostLog, ferryvm.RunResult]:
    log = HostLog()
    engine = ferryvm.Engine(backend, hosts=[clock(), scale])
    return log, engine.start(ferryvm.assemble(CLOCKS), record=log).run()


def test_log_has_calls_in_order_with_arguments_and_results() -> None:
    log, _ = recorded()
    assert [str(call) for call in log][:4] == [
        "tick() = 100",
        "scale(100, 0.5) = 50.0",
        "print_f64(50.0)",
        "tick() = 107",
    ]
    assert len(log) == 10


def test_log_plays_on_another_backend_without_the_functions(backend: str) -> None:
    log, first = recorded()
    played = ferryvm.Engine(backend).start(ferryvm.assemble(CLOCKS), replay=log).run()
    assert (played.value, played.output) == (first.value, first.output) == (121, first.output)


def test_log_survives_its_file(tmp_path: Path) -> None:
    log, _ = recorded()
    log.save(tmp_path / "log")
    assert HostLog.load(tmp_path / "log") == log


def changed(old: str, new: str) -> ferryvm.Program:
    assert old in CLOCKS
    return ferryvm.assemble(CLOCKS.replace(old, new), "clocks.fasm")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "f64.const 0.5",
            "f64.const 0.25",
            "clocks.fasm:10:5: host call 2 is scale(100, 0.25), the log has scale(100, 0.5)",
        ),
        (
            "    host tick\n    halt",
            "    host tick\n    host tick\n    halt",
            "clocks.fasm:21:5: host call 11 is tick(), the log has no more calls",
        ),
        (
            ":top\n    host tick",
            ":top\n    host tick\n    drop\n    host tick",
            "clocks.fasm:10:5: host call 2 is tick(), the log has scale(100, 0.5)",
        ),
    ],
)
def test_another_call_than_the_log_has_is_an_error(old: str, new: str, message: str) -> None:
    log, _ = recorded()
    execution = ferryvm.Engine("reference").start(changed(old, new), replay=log)
    with pytest.raises(ReplayError) as caught:
        execution.run()
    assert str(caught.value) == message


def test_functions_that_a_log_does_not_have_must_be_there() -> None:
    log = HostLog()
    with pytest.raises(ferryvm.FerryError, match="host function"):
        ferryvm.Engine("reference").start(ferryvm.assemble(CLOCKS), replay=log)


CATCHING = """
.host ask () -> (i64)
.tag python.LookupError i64
.function main
:try
    host ask
    halt
:end
:caught
    drop
    i64.const -1
    halt
.catch python.LookupError from try to end using caught
"""


def test_exceptions_of_host_functions_play_again(backend: str) -> None:
    class LostError(KeyError):
        pass

    @host(replayable=True)
    def ask() -> i64:
        raise LostError("gone")

    plain = ferryvm.assemble(".host ask () -> (i64)\n.function main\n    host ask\n    halt\n")
    log = HostLog()
    execution = ferryvm.Engine(backend, hosts=[ask]).start(plain, record=log)
    with pytest.raises(LostError):
        execution.run()
    assert [str(call) for call in log] == ["ask() raised LostError: 'gone'"]
    again = HostLog.from_bytes(log.to_bytes(), "log")
    with pytest.raises(KeyError) as caught:
        ferryvm.Engine(backend).start(plain, replay=again).run()
    assert (type(caught.value).__name__, str(caught.value)) == ("LostError", "'gone'")
    catching = ferryvm.assemble(CATCHING)
    assert ferryvm.Engine(backend).start(catching, replay=again).run().value == -1


READING = """
.host read (i64) -> (i32)
.function main
    i64.const 16
    heap.alloc
    drop
    i64.const 3
    host read
    drop
    i64.const 0
    i64.load 0
    halt
"""


def test_writes_of_a_replayable_function_play_again(backend: str) -> None:
    @host(replayable=True)
    def read(instance: Instance, at: i64) -> i32:
        instance.heap[at : at + 2] = (1, 2)
        at = instance.allocate(8)
        instance.heap[at] = 9
        return 2

    log = HostLog()
    first = ferryvm.Engine(backend, hosts=[read]).start(ferryvm.assemble(READING), record=log)
    assert first.run().value == (1 << 24) + (2 << 32)
    log = HostLog.from_bytes(log.to_bytes(), "log")
    again = ferryvm.Engine(backend).start(ferryvm.assemble(READING), replay=log)
    assert again.run().value == (1 << 24) + (2 << 32)
    assert bytes(again.machine.memory.heap[:24]) == bytes(first.machine.memory.heap[:24])


def test_calls_that_were_given_up_are_not_in_the_log() -> None:
    stops = iter([True, False])

    @host(replayable=True)
    def tick() -> i64:
        if next(stops):
            raise KeyboardInterrupt
        return 5

    text = ".host tick () -> (i64)\n.function main\n    host tick\n    halt\n"
    log = HostLog()
    execution = ferryvm.Engine("reference", hosts=[tick]).start(ferryvm.assemble(text), record=log)
    with pytest.raises(KeyboardInterrupt):
        execution.run()
    assert len(log) == 0
    assert execution.run().value == 5
    assert [str(call) for call in log] == ["tick() = 5"]


NESTED = """
.host outer () -> (i64)
.host tick () -> (i64)
.export inner
.function begin
    host outer
    drop
    halt
.function inner () -> (i64)
    host tick
    return
"""


def test_calls_within_calls_are_recorded_after_the_outer_one(backend: str) -> None:
    @host
    def outer(instance: Instance) -> i64:
        return int(instance.inner()) + 1

    @host(replayable=True, name="outer")
    def wrong(instance: Instance) -> i64:
        return int(instance.inner()) + 1

    log = HostLog()
    engine = ferryvm.Engine(backend, hosts=[outer, clock()])
    engine.start(ferryvm.assemble(NESTED), record=log).run()
    assert [str(call) for call in log] == ["outer() = 101", "tick() = 100"]
    log = HostLog.from_bytes(log.to_bytes(), "log")
    ferryvm.Engine(backend, hosts=[outer]).start(ferryvm.assemble(NESTED), replay=log).run()
    with pytest.raises(ferryvm.FerryError, match="outer"):
        ferryvm.Engine(backend).start(ferryvm.assemble(NESTED), replay=log)
    engine = ferryvm.Engine(backend, hosts=[wrong, clock()])
    with pytest.raises(ferryvm.FerryError, match="it called tick"):
        engine.start(ferryvm.assemble(NESTED), record=HostLog()).run()


def test_instance_records_and_plays() -> None:
    log = HostLog()
    program = ferryvm.assemble(NESTED.replace("    host outer\n    drop\n", ""))
    hosts: list[HostFunction] = [host(name="outer", signature="() -> (i64)")(int), clock()]
    assert ferryvm.Engine("threaded").instantiate(program, hosts, record=log).inner() == 100
    played = ferryvm.Engine("threaded").instantiate(program, hosts[:1], replay=log)
    assert played.inner() == 100


@pytest.mark.parametrize("number", range(40))
def test_damaged_file_is_one_clear_line(number: int, tmp_path: Path) -> None:
    log, _ = recorded()
    content = bytearray(log.to_bytes())
    chance = random.Random(number)
    if number % 2:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    else:
        del content[chance.randrange(len(content)) :]
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(ImageError) as caught:
        HostLog.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_any_nan_is_the_same_value() -> None:
    assert is_same_value(F64, 0x7FF8 << 48, 0xFFF8 << 48 | 1)
    assert is_same_value(F32, 0x7FC00000, 0xFFC00001)
    assert not is_same_value(F64, 0x7FF0 << 48, 0x7FF8 << 48)
    assert not is_same_value(F64, 0, 1 << 63)
    assert not is_same_value(I64, 0x7FF8 << 48, 0xFFF8 << 48 | 1)
