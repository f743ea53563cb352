# SPDX-License-Identifier: Apache-2.0
"""Programs with clocks and input compare: one run's results are played to the other backends."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest

import ferryvm
from ferryvm import HostFunction, Instance, host, i64
from ferryvm.errors import FerryError
from ferryvm.machine.host import Determinism, System
from ferryvm.testing import Differ, Schedule, Verdict
from ferryvm.testing.bisect import Bisector
from ferryvm.testing.disagreement import load, record, save, show_again
from ferryvm.testing.reduction import reduce
from ferryvm.verify import Verified, verify

from ..double.meaning import with_wrong

WAITS = """
.host tick () -> (i64)
.host note (i64)
.host print_i64 (i64)
.function main
.local began i64
.local n i64
    host tick
    local.set began
:top
    host tick
    local.get began
    i64.sub
    host note
    local.get n
    i64.const 1
    i64.add
    local.set n
    local.get n
    i64.const 5
    i64.lt_s
    jump_if top
    host tick
    host print_i64
    halt
"""


class Clock:
    """A clock that is never asked twice for the same time, and notes of what a program did."""

    def __init__(self) -> None:
        self.times = itertools.count(1000, 3)
        self.asked = 0
        self.notes: list[int] = []

    def hosts(self) -> list[HostFunction]:
        @host(replayable=True)
        def tick() -> i64:
            self.asked += 1
            return next(self.times)

        @host
        def note(x: i64) -> None:
            self.notes.append(x)

        return [tick, note]


def program(text: str = WAITS) -> Verified:
    return verify(ferryvm.assemble(text, "waits.fasm"))


@pytest.mark.parametrize("schedule", Schedule)
def test_backends_agree_on_a_program_with_a_clock(schedule: Schedule) -> None:
    clock = Clock()
    differ = Differ(["switch", "threaded"], hosts=clock.hosts())
    found = differ.compare(program(), schedule, 3)
    assert {one.verdict for one in found} == {Verdict.AGREE}
    assert (clock.asked, clock.notes) == (7, [3, 6, 9, 12, 15])


def test_plain_function_that_gets_the_memory_is_not_comparable() -> None:
    """It would be performed on each backend, and may write what another call did not."""
    times = itertools.count()

    @host
    def stamp(system: System, address: i64) -> None:
        system.heap(address, 1)[0] = next(times)

    text = """
.host stamp (i64)
.host write_bytes (i64 i64)
.function main
    i64.const 8
    heap.alloc
    host stamp
    i64.const 0
    i64.const 8
    host write_bytes
    halt
"""
    with pytest.raises(FerryError, match=r"stamp is not comparable.*replayable=True"):
        Differ(["switch"], hosts=[stamp]).compare(program(text))
    replayed = dataclasses.replace(stamp, determinism=Determinism.REPLAYABLE)
    found = Differ(["switch", "threaded"], hosts=[replayed]).compare(program(text))
    assert {one.verdict for one in found} == {Verdict.AGREE}
    assert next(times) == 1


def test_first_call_that_differs_is_the_difference() -> None:
    differ = Differ(["wrong-operands"], registry=with_wrong(), hosts=Clock().hosts())
    (found,) = differ.compare(program())
    assert found.verdict is Verdict.DISAGREE
    assert str(found.difference) == "host call 3: note(3) here, note(-3) there"


def test_fault_is_bisected_in_a_program_with_a_clock() -> None:
    clock = Clock()
    differ = Differ(["wrong-operands"], registry=with_wrong(), hosts=clock.hosts())
    parting = Bisector(differ, "wrong-operands", program()).find()
    assert parting is not None
    assert (parting.mnemonic, parting.number, clock.asked) == ("i64.sub", 4, 7)
    assert parting.position is not None
    assert parting.position.line == 13


def test_disagreement_shows_again_without_the_functions(tmp_path: Path) -> None:
    differ = Differ(["wrong-operands"], registry=with_wrong(), hosts=Clock().hosts())
    verified = program()
    (comparison,) = differ.compare(verified)
    save(record(differ, verified, comparison), tmp_path / "d")
    one = load(tmp_path / "d")
    assert one.log is not None
    assert [str(call) for call in one.log][:3] == ["tick() = 1000", "tick() = 1003", "note(3)"]
    shown = show_again(one.differ(with_wrong()), verify(one.program), one)
    assert shown.difference == comparison.difference


@pytest.mark.nightly
def test_reduction_needs_the_calls_of_the_first_run_alone() -> None:
    clock = Clock()
    differ = Differ(["wrong-operands"], registry=with_wrong(), hosts=clock.hosts())
    found = reduce(differ, "wrong-operands", program(), 1e6)
    assert found is not None
    assert clock.asked == 7
    lines = ferryvm.disassemble(found.program).splitlines()
    assert "i64.sub" in [line.strip() for line in lines]
    assert len(found.program.code) <= 4


RAISES = """
.host fail (i64) -> (i64)
.function main
    i64.const {first}
    i64.const 1
    i64.sub
    host fail
    halt
"""


def test_exceptions_of_host_functions_are_compared() -> None:
    @host(pure=True)
    def fail(x: i64) -> i64:
        return 1 // x

    differ = Differ(["switch", "threaded"], hosts=[fail])
    agreeing = differ.compare(program(RAISES.format(first=1)))
    assert {one.verdict for one in agreeing} == {Verdict.AGREE}
    differ = Differ(["wrong-operands"], registry=with_wrong(), hosts=[fail])
    (found,) = differ.compare(program(RAISES.format(first=3)))
    assert str(found.difference) == "host call 1: fail(2) here, fail(-2) there"


def test_functions_with_effects_and_a_result_are_refused() -> None:
    @host
    def spend(x: i64) -> i64:
        return x

    @host(name="spend")
    def change(instance: Instance) -> None:
        instance.allocate(8)

    text = ".host spend (i64) -> (i64)\n.function main\n    i64.const 1\n    host spend\n    halt\n"
    message = "host function spend is not comparable: .* declare it pure=True or replayable=True"
    with pytest.raises(FerryError, match=message):
        Differ(["switch"], hosts=[spend]).compare(program(text))
    text = ".host spend ()\n.function main\n    host spend\n    halt\n"
    with pytest.raises(FerryError, match=message):
        Differ(["switch"], hosts=[change]).compare(program(text))
