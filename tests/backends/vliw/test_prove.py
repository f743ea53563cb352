# SPDX-License-Identifier: Apache-2.0
"""Each way in which a schedule can be wrong is found, and said in its own words."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from ferryvm.backend import Options
from ferryvm_backends.vliw import VliwBackend
from ferryvm_backends.vliw.code.operation import EXITS, MemoryOperand, Segment
from ferryvm_backends.vliw.code.program import Bypass, Immediate, Program, Read, Slot
from ferryvm_backends.vliw.machine.model import Machine, Work
from ferryvm_backends.vliw.machine.read import find, shipped
from ferryvm_backends.vliw.prove import ENVIRONMENT, proof
from ferryvm_backends.vliw.prove.claim import ScheduleError

from ...tier import nightly, sample
from .mutation import Proved, altered, changed, moved, proved, slots
from .program import whole
from .test_mutation import PROGRAMS

ROOT = Path(__file__).parents[3]
EXAMPLES = [
    nightly(path) if path.stem in ("arrays", "nbody", "words") else path
    for path in sorted((ROOT / "examples").glob("*.skiff"))
]


LINKS = """
    (define-struct cell (value i64))
    (define cells (array cell (make-cell 1) (make-cell 2))) (define s 0) (define i 0)
    (define a (array-ref cells 0)) (define b (array-ref cells 1))
    (while (< i 4)
      (set-cell-value! a i)
      (set! s (+ s (cell-value b)))
      (set! i (+ i 1)))
    s
"""
"""A store and a load of the same iteration that may be of one place, with no check in between."""


@functools.cache
def given(name: str, machine: str = "multi16") -> Proved:
    text = LINKS if name == "links" else PROGRAMS[name]
    return proved(whole(text), find(machine))


def messages(right: Proved, programs: Iterable[Program], last: str | None = None) -> list[str]:
    """What is said of each program, to the first of which `last` is said; nothing of one that is
    right."""
    found: list[str] = []
    for program in programs:
        if last is not None and found and re.search(last, found[-1]):
            break
        try:
            right.prove(program)
            found.append("")
        except ScheduleError as error:
            found.append(str(error))
    return found


@pytest.mark.rotate("path", "machine", most=4)
@pytest.mark.parametrize("machine", sorted(shipped()))
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_is_proved(path: Path, machine: str) -> None:
    proved(whole(path.read_text(encoding="utf-8")), find(machine)).prove()


# --- faults of a program --------------------------------------------------------------------


def _earlier(program: Program) -> Iterator[Program]:
    for number, slot in slots(program):
        is_free = number and all(each.unit != slot.unit for each in program.bundles[number - 1])
        if is_free and slot.has_result and slot.place is None:
            yield moved(program, (number, slot), -1)


def _bypass_late(program: Program) -> Iterator[Program]:
    for number, slot in slots(program):
        units = [source.unit for source in slot.sources if isinstance(source, Bypass)]
        later = program.bundles[number + 1] if number + 1 < len(program.bundles) else ()
        is_free = all(each.unit != slot.unit for each in later)
        is_next = any(each.unit in units for each in program.bundles[number])
        if units and is_free and is_next and slot.name not in EXITS:
            yield moved(program, (number, slot), 1)


def _swapped_numbers(program: Program) -> Iterator[Program]:
    for number, slot in slots(program):
        if slot.written is not None:
            other = dataclasses.replace(slot.written, number=slot.written.number ^ 1)
            yield altered(program, (number, slot), written=other)


def _without(name: str) -> Callable[[Program], Iterator[Program]]:
    def programs(program: Program) -> Iterator[Program]:
        for number, slot in slots(program):
            if slot.name == name:
                yield changed(program, (number, slot, None))

    return programs


def _never_looked(program: Program) -> Iterator[Program]:
    for number, slot in slots(program):
        if slot.name == "repeat":
            yield altered(program, (number, slot), target=None)


def _stores_above(program: Program) -> Iterator[Program]:
    exits = [number for number, slot in slots(program) if slot.name in EXITS]
    for number, slot in slots(program):
        before = [exit_ for exit_ in exits if number - 6 <= exit_ < number]
        if slot.name == "store" and before:
            yield moved(program, (number, slot), before[0] - number)


def _loads_above(program: Program) -> Iterator[Program]:
    units = [n for n, unit in enumerate(program.machine.units) if Work.LOAD in unit.work]
    stores = [each for each in slots(program) if each[1].name == "store"]
    for number, slot in slots(program):
        for at, store in stores:
            if slot.name != "load" or not slot.place or not store.place or not at < number < at + 9:
                continue
            free = [u for u in units if all(each.unit != u for each in program.bundles[at])]
            if slot.place.segment is store.place.segment and free:
                above = dataclasses.replace(slot, unit=free[0])
                yield changed(program, (number, slot, None), (at, None, above))


def _inverted(program: Program) -> Iterator[Program]:
    names = {"exit": "exit_unless", "exit_unless": "exit"}
    for number, slot in slots(program):
        if slot.name in names:
            yield altered(program, (number, slot), name=names[slot.name])


def _elsewhere(program: Program) -> Iterator[Program]:
    places = sorted(program.labels)
    for number, slot in slots(program):
        if slot.target is not None:
            other = places[(places.index(slot.target) + 1) % len(places)]
            yield altered(program, (number, slot), target=other)


def _nowhere(program: Program) -> Iterator[Program]:
    number, slot = next(each for each in reversed(slots(program)) if each[1].name == "stop")
    yield changed(program, (number, slot, None))


def _round(program: Program) -> Iterator[Program]:
    for number, slot in slots(program):
        if slot.name == "jump":
            yield altered(program, (number, slot), target=number)


def _no_unit(program: Program) -> Iterator[Program]:
    machine = program.machine
    wrong = next(n for n, unit in enumerate(machine.units) if set(unit.work) == {Work.BRANCH})
    for number, slot in slots(program):
        if slot.has_result and all(each.unit != wrong for each in program.bundles[number]):
            yield altered(program, (number, slot), unit=wrong)


def _twice(program: Program) -> Iterator[Program]:
    for number, slot in slots(program):
        yield changed(program, (number, None, slot))


def _busy(program: Program) -> Iterator[Program]:
    for number, slot in slots(program):
        if slot.name == "div_s":
            for after in range(1, 4):
                if all(each.unit != slot.unit for each in program.bundles[number + after]):
                    extra = Slot(slot.unit, "move", (), (Immediate(0),), None, True)
                    yield changed(program, (number + after, None, extra))


def _together(program: Program) -> Iterator[Program]:
    for number, slot in slots(program):
        if slot.name == "div_s":
            early = number - 2
            there = [each for each in program.bundles[early] if each.unit == slot.unit]
            multiply = Slot(slot.unit, "mul", slot.static, (Immediate(0),) * 2, None, True)
            move = Slot(slot.unit, "move", (), (Immediate(0),), None, True)
            old = there[0] if there else None
            yield changed(program, (early, old, multiply), (number, slot, move))


def _same_register(program: Program) -> Iterator[Program]:
    for number, slot in slots(program):
        for other in program.bundles[number]:
            if other is not slot and slot.written and other.written and not slot.place:
                yield altered(program, (number, slot), written=other.written)


def _same_file(program: Program) -> Iterator[Program]:
    for number, slot in slots(program):
        for other in program.bundles[number]:
            if other is not slot and slot.written and other.written and not slot.place:
                beside = dataclasses.replace(other.written, number=other.written.number ^ 1)
                yield altered(program, (number, slot), written=beside)


def _never_set(program: Program) -> Iterator[Program]:
    for number, slot in slots(program):
        if slot.name in ("exit", "exit_unless") and isinstance(slot.sources[0], Read):
            far = Read(slot.sources[0].file, 15)
            yield altered(program, (number, slot), sources=(far,))


def _other_place(program: Program) -> Iterator[Program]:
    for number, slot in slots(program):
        if slot.name == "store" and slot.place and slot.place.segment is not Segment.CONTROL:
            place = MemoryOperand(slot.place.segment, slot.place.offset + 8, slot.place.size)
            yield altered(program, (number, slot), place=place)


def _return_elsewhere(program: Program) -> Iterator[Program]:
    for number, slot in slots(program):
        if slot.name == "jump_to":
            yield altered(program, (number, slot), sources=(Immediate(0),))


_MOST_PLACES = 12
NEEDS = r"which block \S+ needs, should be .* and is "


@pytest.mark.rotate("faults", most=10)
@pytest.mark.parametrize(
    ("name", "machine", "faults", "said", "is_each"),
    [
        ("nest", "multi16", _earlier, NEEDS, False),
        nightly(("nest", "single", _earlier, "should be .* and is", False)),
        ("vectors", "wide16", _bypass_late, "should be .* and is", False),
        ("nest", "multi16", _swapped_numbers, NEEDS + "nothing that was set", False),
        ("nest", "multi16", _without("move"), NEEDS, False),
        ("vectors", "multi16", _without("store"), r"the store \S+\[.* is not done, by the", True),
        ("vectors", "multi16", _stores_above, r"the store \S+\[.* should not be done, by", False),
        ("links", "wide16", _loads_above, r"load .* does not see the store \S+\[", False),
        ("nest", "multi16", _inverted, r"control goes to block \S+, and should leave by the", True),
        (
            "nest",
            "multi16",
            _without("exit"),
            r"control \S+ .*without a check of .*, by the",
            False,
        ),
        ("nest", "multi16", _never_looked, "time is over is never looked at", False),
        ("nest", "multi16", _elsewhere, r"control goes to block \S+, and should leave by", False),
        ("nest", "multi16", _nowhere, r"control comes to bundle \d+ after it, which is not", True),
        ("nest", "multi16", _round, "control goes round here, and comes to no", True),
        ("nest", "multi16", _no_unit, r"unit control cannot do \S+, which \S+ \(pc -?\d+\)", True),
        ("nest", "multi16", _twice, r"unit \S+ has two operations", True),
        ("division", "multi16", _busy, r"unit alu\d is not ready for move \(pc -1\) until", True),
        (
            "division",
            "multi16",
            _together,
            r"of move \(pc -1\) on unit alu\d is written back together",
            True,
        ),
        (
            "nest",
            "wide16",
            _same_register,
            r"is written to int\.\d+ together with one that was",
            True,
        ),
        ("nest", "multi16", _same_file, r"2 results are written to file \S+ together, \d", True),
        ("nest", "multi16", _never_set, "depends on what was never set", True),
        ("vectors", "multi16", _other_place, r"the store \S+\[.* should be done, and", True),
        (
            "calls",
            "multi16",
            _return_elsewhere,
            r"where control goes to \(pc \d+\) should be",
            True,
        ),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
@pytest.mark.parametrize("is_every_place_tried", sample([False, True], 1))
def test_a_fault_is_found(
    name: str,
    machine: str,
    faults: Callable[[Program], Iterator[Program]],
    said: str,
    is_each: bool,
    is_every_place_tried: bool,
) -> None:
    """`is_each`: no change of the kind where control comes to leaves a program that is right, so
    that every place is tried: in the default tier the first ones."""
    right = given(name, machine)
    reached = right.reached()
    programs: Iterator[Program] = (
        each for each in faults(right.program) if right.differing(each) <= reached
    )
    if not is_every_place_tried:
        programs = itertools.islice(programs, _MOST_PLACES)
    found = messages(right, programs, None if is_each or is_every_place_tried else said)
    assert any(re.search(said, each) for each in found), found
    assert all(found) or not is_each
    assert all(each.startswith(right.program.name + ": bundle ") for each in found if each)


# --- machines that have less ----------------------------------------------------------------


def _units(machine: Machine, **fields: object) -> Machine:
    units = tuple(dataclasses.replace(unit, **fields) for unit in machine.units)  # type: ignore[arg-type]  # tests
    return dataclasses.replace(machine, units=units)


def _files(machine: Machine, **fields: object) -> Machine:
    files = tuple(dataclasses.replace(file, **fields) for file in machine.files)  # type: ignore[arg-type]  # tests
    return dataclasses.replace(machine, files=files)


def _slow_loads(machine: Machine) -> Machine:
    units = tuple(
        dataclasses.replace(
            unit,
            work={
                work: dataclasses.replace(timing, latency=timing.latency + (work is Work.LOAD))
                for work, timing in unit.work.items()
            },
        )
        for unit in machine.units
    )
    return dataclasses.replace(machine, units=units)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda m: dataclasses.replace(m, slots=1), r"\d operations, and the machine has 1 slots"),
        (lambda m: dataclasses.replace(m, immediates=1), r"\d constants, and a bundle holds 1"),
        (lambda m: dataclasses.replace(m, instructions=9), r"and the instruction memory holds 9"),
        (lambda m: dataclasses.replace(m, bypass=False), r"and the machine has no bypass"),
        (lambda m: dataclasses.replace(m, delay_slots=1), r"control|should|needs|written"),
        (lambda m: dataclasses.replace(m, delay_slots=4), r"control|should|needs|written"),
        (lambda m: _files(m, read_ports=1), r"\d reads of file int, which has 1 ports"),
        (lambda m: _files(m, write_ports=1), r"\d results are written to file int together"),
        (lambda m: _files(m, registers=4), r"register \d+ of file int, which has 4"),
        (lambda m: _units(m, reads=frozenset()), r"reads file int, which the unit does not reach"),
        (lambda m: _units(m, writes=frozenset()), r"writes file int, which the unit does not"),
        (_slow_loads, "should be .* and is|never set"),
    ],
)
def test_a_machine_that_has_less_is_not_what_a_program_was_made_for(
    change: Callable[[Machine], Machine], said: str
) -> None:
    right = given("nest", "wide16")
    program = dataclasses.replace(right.program, machine=change(right.program.machine))
    with pytest.raises(ScheduleError, match=said):
        right.prove(program)


# --- claims ---------------------------------------------------------------------------------


def test_two_registers_that_are_needed_together_stand_in_two_places() -> None:
    right = given("nest")
    numbers = dict.fromkeys(right.claim.numbers, Read(0, 1))
    wrong = dataclasses.replace(right, claim=dataclasses.replace(right.claim, numbers=numbers))
    with pytest.raises(ScheduleError, match=r"are both needed by block \S+ in int0\.1"):
        wrong.prove()


def test_a_register_that_is_needed_stands_somewhere() -> None:
    right = given("nest")
    wrong = dataclasses.replace(right, claim=dataclasses.replace(right.claim, numbers={}))
    with pytest.raises(ScheduleError, match=r"v\d+, which block \S+ needs, stands nowhere"):
        wrong.prove()


def test_a_program_tells_of_the_memory_that_its_code_needs() -> None:
    right = given("calls")
    program = dataclasses.replace(right.program, call_bytes=8)
    with pytest.raises(ScheduleError, match=r"tells of 8 bytes for calls, and the code has \d+"):
        right.prove(program)


def test_an_error_knows_where_it_was_found() -> None:
    right = given("nest")
    program = next(_inverted(right.program))
    with pytest.raises(ScheduleError) as raised:
        right.prove(program)
    error = raised.value
    assert error.block == "entry"
    assert error.cycle > 0
    assert program.bundles[error.bundle]
    assert len(str(error).splitlines()) == 1


# --- when it is done ------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["", "1"])
def test_the_environment_has_programs_proved(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    proofs: list[object] = []
    monkeypatch.setattr(proof, "prove", lambda *them: proofs.append(them))
    monkeypatch.setenv(ENVIRONMENT, value)
    VliwBackend(find("single")).show(whole("1"), Options(), "vliw")
    assert len(proofs) == (value == "1")
