# SPDX-License-Identifier: Apache-2.0
"""The differential runner agrees where backends do, and sees it where they do not."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.backend import Artifact, Backend, BackendError, Capabilities
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.hooks import BackendEntry, hookimpl
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.registry import Registry
from ferryvm.testing import Differ, Schedule, Verdict
from ferryvm.verify import Verified, verify

PROGRAM = """
(define v (make-vector f64 4))
(define (half x) (/ x 2.0))
(define (fill n) (if (> n 0) (begin (vector-set! v (- n 1) (half (f64 n))) (fill (- n 1)))))
(fill 4)
(define total 0.0)
(define i 0)
(while (< i 4) (set! total (+ total (vector-ref v i))) (print! i) (set! i (+ i 1)))
total
"""


class Faulty(Backend):
    """The reference backend, which does harm after each time it is entered."""

    name = "faulty"
    version = "1"

    def __init__(self, harm: Callable[[Machine, bool], None]) -> None:
        self.harm = harm
        self.real = Registry().get("reference")

    def prepare(self, program: Verified) -> Artifact:
        harm, real = self.harm, self.real.prepare(program)

        class FaultyArtifact(Artifact):
            def enter(self, machine: Machine, counting: bool) -> Status:
                status = real.enter(machine, counting)
                harm(machine, counting)
                return status

        return FaultyArtifact()


class Uncounted(Faulty):
    capabilities = Capabilities(fuel=False)


def registry_with(backend: Backend) -> Registry:
    def ferryvm_backends() -> list[BackendEntry]:
        return [BackendEntry(backend.name, lambda: backend)]

    registry = Registry()
    registry.register(types.SimpleNamespace(ferryvm_backends=hookimpl(ferryvm_backends)), "test")
    return registry


def compare(
    harm: Callable[[Machine, bool], None], schedule: Schedule = Schedule.NONE, text: str = PROGRAM
) -> tuple[Verdict, str]:
    differ = Differ(["faulty"], registry=registry_with(Faulty(harm)))
    (comparison,) = differ.compare(verify(ferryvm.compile(text)), schedule)
    return comparison.verdict, str(comparison.difference)


@pytest.mark.parametrize("schedule", list(Schedule))
@pytest.mark.parametrize("text", [PROGRAM, "(print! 1)\n(/ 1 0)", ""])
def test_in_tree_backends_agree(schedule: Schedule, text: str) -> None:
    differ = Differ(["switch", "threaded"])
    comparisons = differ.compare(verify(ferryvm.compile(text)), schedule, seed=3)
    assert [one.verdict for one in comparisons] == [Verdict.AGREE] * len(comparisons)
    assert len(comparisons) == (2 if schedule is Schedule.NONE else 1)
    assert all(one.instructions > 0 or not text for one in comparisons)
    if schedule is Schedule.EVERY_BOUNDARY and text == PROGRAM:
        assert comparisons[0].moves == comparisons[0].instructions - 1


def _static(machine: Machine, _counting: bool) -> None:
    machine.memory.statics[1] |= 1


def _heap(machine: Machine, _counting: bool) -> None:
    if machine.control.status == Status.HALT:
        machine.memory.heap[machine.control.hp - 1] |= 0x80


def _fuel(machine: Machine, counting: bool) -> None:
    if counting:
        machine.control.fuel -= 1


def _uncounted_only(machine: Machine, counting: bool) -> None:
    if not counting:
        machine.memory.statics[1] |= 1


def _pc(machine: Machine, _counting: bool) -> None:
    if machine.control.status == Status.HALT:
        machine.control.pc -= 1


@pytest.mark.parametrize(
    ("harm", "field"),
    [
        (_static, "static 1 (total): "),
        (_heap, "heap at byte 39: "),
        (_fuel, "fuel left: "),
        (_uncounted_only, "static 1 (total): "),
        (_pc, "pc: "),
    ],
)
def test_harm_is_found_and_named(harm: Callable[[Machine, bool], None], field: str) -> None:
    verdict, shown = compare(harm)
    assert verdict is Verdict.DISAGREE
    assert shown.startswith(field)


@pytest.mark.parametrize("schedule", [Schedule.RANDOM, Schedule.EVERY_BOUNDARY])
def test_harm_is_found_where_a_program_moves(schedule: Schedule) -> None:
    verdict, shown = compare(_fuel, schedule)
    assert verdict is Verdict.DISAGREE
    assert shown.startswith("fuel left: ")


def test_any_nan_equals_any_nan_in_a_float_and_nowhere_else() -> None:
    def other_nan(machine: Machine, _counting: bool) -> None:
        machine.memory.statics[0] = 0xFFF8_0000_0000_0001

    text = "(define x (/ 0.0 0.0)) (define y {})"
    assert compare(other_nan, text=text.format("1"))[0] is Verdict.AGREE
    other_nan_as_integer = "(define x (i64.reinterpret_f64 (/ 0.0 0.0)))"
    verdict, shown = compare(other_nan, text=other_nan_as_integer)
    assert verdict is Verdict.DISAGREE
    assert shown == "static 0 (x): 0x7ff8000000000000 here, 0xfff8000000000001 there"


def test_unsupported_is_no_agreement() -> None:
    differ = Differ(["faulty"], registry=registry_with(Uncounted(lambda _machine, _counting: None)))
    (comparison,) = differ.compare(verify(ferryvm.compile(PROGRAM)))
    assert comparison.verdict is Verdict.UNSUPPORTED
    assert comparison.reason == "backend 'faulty' cannot count instructions"


def test_program_that_never_ends_is_compared_where_fuel_ends() -> None:
    program = verify(ferryvm.compile("(define n 0) (while #t (set! n (+ n 1)))"))
    for schedule in Schedule:
        for comparison in Differ(["switch", "threaded"], most=5000).compare(program, schedule):
            assert comparison.verdict is Verdict.AGREE
            assert comparison.instructions == 5000


def test_same_seed_gives_the_same_moves() -> None:
    program = verify(ferryvm.compile("(define n 0) (while (< n 9999) (set! n (+ n 1)))"))
    differ = Differ(["switch", "threaded"])
    first, again, other = (differ.compare(program, Schedule.RANDOM, seed) for seed in (5, 5, 6))
    assert first == again
    assert first[0].moves != other[0].moves


def test_backends_that_cannot_be_had_are_errors() -> None:
    with pytest.raises(UnknownNameError, match="no backend 'swich'; did you mean 'switch'"):
        Differ(["swich"])
    with pytest.raises(FerryError, match="nothing to compare with 'switch': name another"):
        Differ(["switch"], against="switch")

    class Absent(Faulty):
        def probe(self) -> str | None:
            return "no such device"

    with pytest.raises(BackendError, match="not usable here: no such device"):
        Differ(["faulty"], registry=registry_with(Absent(_fuel)))
