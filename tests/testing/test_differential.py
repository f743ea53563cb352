# SPDX-License-Identifier: Apache-2.0
"""The differential runner agrees where backends do, and sees it where they do not."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.backend import Artifact, Backend, BackendError, Capabilities, Forcing
from ferryvm.deadline import Deadline
from ferryvm.engine import execution
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.isa import Trap
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.testing import Comparison, Differ, Schedule, Verdict, difference
from ferryvm.verify import Verified, verify

from ..double.interpreter import Wrong
from ..double.registry import registry

PROGRAM = """
(heap.alloc 40)
(define v (make-array f64 4))
(define (half x) (/ x 2.0))
(define (fill n) (if (> n 0) (begin (array-set! v (- n 1) (half (f64 n))) (fill (- n 1)))))
(fill 4)
(define total 0.0)
(define i 0)
(while (< i 4) (set! total (+ total (array-ref v i))) (print! i) (set! i (+ i 1)))
total
"""


class Faulty(Wrong):
    """The reference backend, which does harm after each time it is entered."""

    name = "faulty"

    def __init__(self, harm: Callable[[Machine, bool], None]) -> None:
        def enter(real: Artifact, machine: Machine, counting: bool) -> Status:
            status = real.enter(machine, counting)
            harm(machine, counting)
            left = machine.control.status
            return Status(left) if left in {each.value for each in Status} else status

        super().__init__(enter)


class Uncounted(Faulty):
    capabilities = Capabilities(fuel=False)


def compare(
    harm: Callable[[Machine, bool], None], schedule: Schedule = Schedule.NONE, text: str = PROGRAM
) -> tuple[Verdict, str]:
    differ = Differ(["faulty"], registry=registry(Faulty(harm)))
    (comparison,) = differ.compare(verify(ferryvm.compile(text)), schedule)
    return comparison.verdict, str(comparison.difference)


ENTERING = [each for each in Schedule if each is not Schedule.INDEPENDENCE]
"""The schedules that enter the backends that are compared: one only checks the baseline."""


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
        (_pc, "failure: none here, BackendError: backend 'faulty' left at pc "),
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
    assert shown.startswith(
        ("fuel left: ", "failure: none here, BackendError: backend 'faulty' left with -1 fuel")
    )


def test_any_nan_equals_any_nan_in_a_float_and_nowhere_else() -> None:
    def other_nan(machine: Machine, _counting: bool) -> None:
        machine.memory.statics[0] = 0xFFF8_0000_0000_0001

    text = "(define x (/ 0.0 0.0)) (define y {})"
    assert compare(other_nan, text=text.format("1"))[0] is Verdict.AGREE
    other_nan_as_integer = "(define x (i64.reinterpret_f64 (/ 0.0 0.0)))"
    verdict, shown = compare(other_nan, text=other_nan_as_integer)
    assert verdict is Verdict.DISAGREE
    assert shown == "static 0 (x): 0x7ff8000000000000 here, 0xfff8000000000001 there"


@pytest.mark.parametrize("schedule", ENTERING)
def test_what_cannot_be_run_as_it_has_to_be_is_no_agreement(schedule: Schedule) -> None:
    """Neither moves nor a program that does not end can do without counting."""
    found = registry(Uncounted(lambda _machine, _counting: None))
    text = "(while #t 0)" if schedule is Schedule.NONE else PROGRAM
    differ = Differ(["faulty"], registry=found, most=1000)
    (comparison,) = differ.compare(verify(ferryvm.compile(text)), schedule)
    assert comparison.verdict is Verdict.UNSUPPORTED
    assert comparison.reason == "backend 'faulty' cannot count instructions"


def test_backend_that_cannot_count_is_compared_without() -> None:
    def compare_uncounted(harm: Callable[[Machine, bool], None]) -> Comparison:
        differ = Differ(["faulty"], registry=registry(Uncounted(harm)))
        (comparison,) = differ.compare(verify(ferryvm.compile(PROGRAM)))
        assert not comparison.is_counted
        return comparison

    assert compare_uncounted(lambda _machine, _counting: None).verdict is Verdict.AGREE
    assert compare_uncounted(_uncounted_only).verdict is Verdict.DISAGREE


def test_program_that_never_ends_is_compared_where_fuel_ends() -> None:
    program = verify(ferryvm.compile("(define n 0) (while #t (set! n (+ n 1)))"))
    for schedule in Schedule:
        for comparison in Differ(["switch", "threaded"], most=600).compare(program, schedule):
            assert comparison.verdict is Verdict.AGREE
            assert comparison.instructions == 600


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
        Differ(["faulty"], registry=registry(Absent(_fuel)))


def compare_faulty(harm: Callable[[Machine, bool], None], patience: float = 60.0) -> Comparison:
    found = registry(Faulty(harm))
    differ = Differ(["faulty"], registry=found, patience=patience)
    (comparison,) = differ.compare(verify(ferryvm.compile(PROGRAM)))
    assert comparison.verdict is Verdict.DISAGREE
    assert comparison.difference is not None
    assert comparison.difference.field == "failure"
    return comparison


def test_backend_that_raises_disagrees() -> None:
    def harm(_machine: Machine, counting: bool) -> None:
        if not counting:
            raise IndexError("out of\nreach")

    comparison = compare_faulty(harm)
    assert not comparison.is_counted
    assert re.fullmatch(
        r"failure: none here, BackendError: backend 'faulty' raised IndexError: out of reach "
        r"\(test_differential\.py:\d+ in harm\); the program cannot go on .* there",
        str(comparison.difference),
    )


def test_backend_that_does_nothing_disagrees() -> None:
    def harm(machine: Machine, _counting: bool) -> None:
        machine.control.status, machine.control.fuel = Status.FUEL, 10_000_000

    assert "it left with FUEL and 10000000 fuel" in str(compare_faulty(harm).difference)


def test_backend_that_does_not_come_back_is_stopped_and_disagrees() -> None:
    def harm(machine: Machine, _counting: bool) -> None:
        while not machine.control.interrupt:
            time.sleep(0.01)
        machine.control.status = Status.INTERRUPTED

    assert "it was still running after 0.2 s" in str(compare_faulty(harm, 0.2).difference)


def test_trap_that_there_is_not_disagrees() -> None:
    def harm(machine: Machine, _counting: bool) -> None:
        machine.control.status, machine.control.trap = Status.TRAP, 99

    assert "left with the trap 99, which there is not" in str(compare_faulty(harm).difference)


def test_status_that_there_is_not_disagrees() -> None:
    def harm(machine: Machine, _counting: bool) -> None:
        machine.control.status = 99

    assert "left with the status HOST, and 99 in its control block" in str(
        compare_faulty(harm).difference
    )


@pytest.mark.parametrize("schedule", [Schedule.RANDOM, Schedule.EVERY_BOUNDARY])
def test_program_that_ends_before_it_moves_is_moved_in_another_way(schedule: Schedule) -> None:
    """Else the backend that all are held against would agree with itself alone."""
    program = verify(ferryvm.assemble(".function main\nhalt\n"))
    for seed in range(20):
        entered: list[bool] = []
        backend = Faulty(lambda _machine, counting, into=entered: into.append(counting))  # type: ignore[misc]
        differ = Differ(["faulty"], registry=registry(backend))
        (comparison,) = differ.compare(program, schedule, seed)
        assert comparison.verdict is Verdict.AGREE
        assert entered


# --- forcing and legal divergence -----------------------------------------------------------


class Forced(Wrong):
    """A backend that can be forced, and notes to what."""

    name = "forced"
    capabilities = Capabilities(forcing=frozenset(Forcing))

    def __init__(self) -> None:
        super().__init__(of="switch")
        self.seen: list[frozenset[Forcing]] = []

    def prepare(self, program: Verified) -> Artifact:
        self.seen.append(frozenset())
        return self.real.prepare(program)

    def prepare_forced(self, program: Verified, forcing: frozenset[Forcing]) -> Artifact:
        self.seen.append(forcing)
        return self.real.prepare(program)


@pytest.mark.parametrize("schedule", ENTERING)
def test_forcing_reaches_the_backends_compared_but_not_the_one_held_against(
    schedule: Schedule,
) -> None:
    backend = Forced()
    found = registry(backend)
    forcing = frozenset({Forcing.HOT})
    differ = Differ(["forced"], registry=found, forcing=forcing)
    (comparison,) = differ.compare(verify(ferryvm.compile(PROGRAM)), schedule)
    assert comparison.verdict is Verdict.AGREE
    assert set(backend.seen) == {forcing}


def test_backend_that_cannot_be_forced_is_unsupported_then() -> None:
    differ = Differ(["switch"], forcing=frozenset(Forcing))
    (comparison,) = differ.compare(verify(ferryvm.compile(PROGRAM)))
    assert comparison.verdict is Verdict.UNSUPPORTED
    assert (
        comparison.reason
        == "backend 'switch' has nothing to force: deopt, hot, independence, parallel"
    )


class SmallHeap(Wrong):
    """A backend that addresses less heap than there is."""

    name = "small"
    capabilities = Capabilities(heap=100_000)

    def __init__(self, harm: Callable[[Machine], None] = lambda machine: None) -> None:
        def enter(real: Artifact, machine: Machine, counting: bool) -> Status:
            limit = self.capabilities.heap
            assert limit is None or machine.control.heap_capacity <= limit
            status = real.enter(machine, counting)
            self.harm(machine)
            return status

        super().__init__(enter, of="switch")
        self.harm = harm


HUNGRY = "(define n 0) (while (< n 9) (heap.alloc 40008) (set! n (+ n 1))) n"


def compare_small(backend: Backend, text: str) -> Comparison:
    differ = Differ(["small"], registry=registry(backend))
    (comparison,) = differ.compare(verify(ferryvm.compile(text)))
    return comparison


def test_lack_of_declared_heap_is_legal_divergence_with_its_reason() -> None:
    assert compare_small(SmallHeap(), HUNGRY.replace("9", "2")).verdict is Verdict.AGREE
    comparison = compare_small(SmallHeap(), HUNGRY)
    assert comparison.verdict is Verdict.DIVERGE
    assert comparison.difference is None
    assert comparison.reason == (
        "the backend declares how much heap it can address, and the program needs more (small)"
    )


def test_wrong_state_is_no_legal_divergence() -> None:
    def harm(machine: Machine) -> None:
        machine.memory.statics[0] += 1

    assert compare_small(SmallHeap(harm), HUNGRY).verdict is Verdict.DISAGREE


def test_undeclared_lack_of_heap_is_a_disagreement() -> None:
    backend = SmallHeap()
    backend.capabilities = Capabilities()

    def exhaust(machine: Machine) -> None:
        if machine.control.status == Status.GROW or machine.control.hp > 100_000:
            machine.control.status, machine.control.trap = Status.TRAP, Trap.HEAP_EXHAUSTED

    backend.harm = exhaust
    comparison = compare_small(backend, HUNGRY.replace("5000", "500000"))
    assert comparison.verdict is Verdict.DISAGREE


def test_machine_with_more_heap_than_a_backend_addresses_is_refused_there() -> None:
    engine = ferryvm.Engine("reference", registry=registry(SmallHeap()))
    execution = engine.start(ferryvm.compile(HUNGRY))
    execution.run(200)
    execution.run()
    later = ferryvm.compile(
        "(define v (heap.alloc 400008)) (define i 0) (while (< i 9) (set! i (+ i 1)))"
    )
    execution = engine.start(later)
    execution.run(60)
    assert execution.machine.control.hp > 100_000
    with pytest.raises(BackendError, match="'small' can address 100000 bytes of heap, 400008 are"):
        execution.run(backend="small")
    assert execution.run().status is Status.HALT


# --- trials ---------------------------------------------------------------------------------


def test_fork_goes_its_own_way() -> None:
    differ = Differ(["switch"])
    trial = differ.start(verify(ferryvm.compile(PROGRAM)))
    trial.run("switch", 150)
    fork = trial.fork()
    assert difference(trial.execution.machine, trial.state(), fork.state()) is None
    before = trial.state()
    fork.run("threaded")
    assert fork.status is Status.HALT
    assert trial.state() == before
    trial.run("reference")
    assert difference(trial.execution.machine, trial.state(), fork.state()) is None
    assert trial.output == [b"0\n", b"1\n", b"2\n", b"3\n"]
    assert trial.instructions == fork.instructions


def test_trial_begun_again_stands_at_the_start() -> None:
    differ = Differ(["switch"])
    trial = differ.start(verify(ferryvm.compile(PROGRAM)))
    first = trial.state()
    trial.run("switch")
    again = trial.again()
    assert again.state() == first
    again.run("threaded")
    assert difference(trial.execution.machine, trial.state(), again.state()) is None


def test_heap_or_stack_past_the_memory_disagrees_and_does_no_harm() -> None:
    def heap(machine: Machine, _counting: bool) -> None:
        machine.control.hp = 1 << 31

    def stack(machine: Machine, _counting: bool) -> None:
        if machine.control.status == Status.HALT:
            machine.control.sp = 1 << 40

    assert "left with hp 2147483648: a multiple of 8 up to" in str(compare_faulty(heap).difference)
    assert "failure: none here" in str(compare_faulty(stack).difference)


# --- limits, progress and start-up ----------------------------------------------------------

LONG = verify(ferryvm.compile("(define i 0) (while (< i 100000) (set! i (+ i 1))) (print! i)"))


def test_a_program_is_compared_as_it_stands_when_the_time_is_over() -> None:
    differ = Differ(["switch", "threaded"])
    differ.chunk = 1000
    over = Deadline(0.0)
    expected = differ.finish(differ.start(LONG), deadline=over)
    assert (expected.instructions, expected.is_over, expected.has_ended) == (1000, False, True)
    (only,) = differ.compare(LONG, expected=expected, deadline=over)
    assert (only.backends, only.verdict, only.instructions) == (("switch",), Verdict.AGREE, 1000)


def test_a_difference_before_the_time_is_over_is_found() -> None:
    def harm(machine: Machine, counting: bool) -> None:
        machine.memory.statics[0] += counting

    differ = Differ(["faulty"], registry=registry(Faulty(harm)))
    differ.chunk = 1000
    expected = differ.finish(differ.start(LONG), deadline=Deadline(0.0))
    (only,) = differ.compare(LONG, expected=expected)
    assert (only.verdict, only.instructions) == (Verdict.DISAGREE, 1000)


def test_progress_says_who_runs_and_how_far_it_is() -> None:
    differ, told = Differ(["switch"]), []
    differ.chunk = 10_000
    program = verify(ferryvm.compile("(define i 0) (while (< i 5000) (set! i (+ i 1))) (print! i)"))
    differ.compare(program, progress=lambda: told.append(differ.in_progress))
    ends = differ.finish(differ.start(program)).instructions
    assert told[:2] == [("reference", 10_000), ("reference", 20_000)]
    assert told[-1] == ("switch", ends)


def test_what_a_process_does_once_is_charged_to_no_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    entered: list[int] = []

    def slow_at_first(_machine: Machine, _counting: bool) -> None:
        clock[0] += 0.25 if entered else 2.0
        entered.append(1)

    monkeypatch.setattr(execution.time, "perf_counter", lambda: clock[0])
    for warms_up, seconds in ((False, 2.0), (True, 0.25)):
        entered.clear()
        differ = Differ(["faulty"], registry=registry(Faulty(slow_at_first)))
        if warms_up:
            differ.warm_up()
        (one,) = differ.compare(verify(ferryvm.compile("(+ 1 2)")))
        assert (one.seconds, one.verdict) == (seconds, Verdict.AGREE)
