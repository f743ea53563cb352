# SPDX-License-Identifier: Apache-2.0
"""Pipelined loops: what waits for what, how fast they can go round, and what their bundles do."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferryvm.backend import Options
from ferryvm.compiler import Compilation
from ferryvm.machine.control import ControlBlock
from ferryvm_backends.vliw import VliwBackend, entry
from ferryvm_backends.vliw.code import register_allocation, tuning
from ferryvm_backends.vliw.code.dependence import distance
from ferryvm_backends.vliw.code.live_range import LiveRanges
from ferryvm_backends.vliw.code.liveness import live_at_entry
from ferryvm_backends.vliw.code.modulo.dependence_graph import DependenceNode, NodeResult
from ferryvm_backends.vliw.code.modulo.expand import expand
from ferryvm_backends.vliw.code.modulo.initiation_interval import bounds
from ferryvm_backends.vliw.code.modulo.partial_schedule import (
    FromUnit,
    LoopDemand,
    PartialSchedule,
)
from ferryvm_backends.vliw.code.modulo.register_pressure import Lifetimes
from ferryvm_backends.vliw.code.modulo.schedule import IterationSchedule, schedule_iteration
from ferryvm_backends.vliw.code.operation import Register, Segment
from ferryvm_backends.vliw.code.program import LoopSummary as Told
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.machine.model import FileKind, Machine
from ferryvm_backends.vliw.machine.read import find, shipped
from ferryvm_backends.vliw.simulate.interpret import interpret
from ferryvm_backends.vliw.simulate.memory import Memory
from ferryvm_backends.vliw.simulate.metric import RunMetrics
from ferryvm_backends.vliw.simulate.native import NativeProgram

from ...tier import examples, sample
from .looping import HEAP, MACHINE, STACK, Loop, loops_of, nodes
from .program import compiled, run, whole
from .test_prove_by_hand import BOOLEAN, EIGHT, NIL, TOP, do, go, load, r, store
from .test_prove_by_hand import HEAP as HEAP_AT
from .test_prove_by_hand import MACHINE as HAND
from .test_prove_by_hand import STACK as STACK_AT
from .test_unroll import last_states

DOT = """
    (define (dot a b)
      (define s 0.0) (define i 0)
      (while (< i (vector-length a))
        (set! s (+ s (* (vector-ref a i) (vector-ref b i))))
        (set! i (+ i 1)))
      s)
    (define a (make-vector f64 16))
    (dot a (make-vector f64 16))
"""
FIR = """
    (define (fir x y n)
      (define i 0)
      (while (< i n)
        (vector-set! y i (+ (* (vector-ref x i) 3) (* (vector-ref x (+ i 1)) 5)))
        (set! i (+ i 1))))
    (define x (make-vector i64 20)) (define y (make-vector i64 20))
    (fir x y 12)
    (vector-ref y 3)
"""
FILTER = """
    (define (filter x y taps n)
      (define i 0)
      (while (< i n)
        (let ((s 0.0) (k 0))
          (while (< k 16)
            (set! s (+ s (* (vector-ref x (+ i k)) (vector-ref taps k))))
            (set! k (+ k 1)))
          (vector-set! y i s))
        (set! i (+ i 1))))
    (define x (make-vector f64 60)) (define y (make-vector f64 40)) (define t (make-vector f64 16))
    (define i 0)
    (while (< i 16) (vector-set! t i (/ 1.0 (f64 (+ i 3)))) (set! i (+ i 1)))
    (set! i 0)
    (while (< i 60) (vector-set! x i (f64 (* i i))) (set! i (+ i 1)))
    (filter x y t 40)
    (vector-ref y 33)
"""
COUNTS = """
    (define v (make-vector i64 24)) (define w (make-vector i64 24)) (define total 0)
    (define (fill n)
      (define i 0) (while (< i n) (vector-set! v i (+ (* i n) 1)) (set! i (+ i 1))))
    (define (sum n)
      (define i 0) (define s 0)
      (while (< i n) (set! s (+ s (vector-ref v i))) (set! i (+ i 1)))
      s)
    (define (shift n)
      (define i 0)
      (while (< i n) (vector-set! v (+ i 2) (+ (vector-ref v i) i)) (set! i (+ i 1))))
    (define (swap n)
      (define a 1) (define b 2) (define i 0)
      (while (< i n) (define c a) (set! a b) (set! b (+ c i)) (set! i (+ i 1)))
      (- a (* b 3)))
    (define (find n)
      (define i 0) (while (!= (vector-ref w i) n) (set! i (+ i 1))) i)
    (define i 0) (while (< i 24) (vector-set! w i i) (set! i (+ i 1)))
    (define n 0)
    (while (< n 21)
      (fill n) (shift n)
      (set! total (+ (* total 31) (+ (sum n) (+ (swap n) (find n)))))
      (set! n (+ n 1)))
    total
"""
TRAP = """
    (define v (make-vector i64 9)) (define s 0) (define i 0)
    (while (< i 50) (set! s (+ s (* i 7))) (vector-set! v i s) (set! i (+ i 1)))
"""
MACHINES = pytest.mark.parametrize("machine", sorted(shipped()))


# --- how fast -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [DOT, FIR, FILTER], ids=["dot", "fir", "filter"])
def test_the_interval_is_the_bound(text: str) -> None:
    found = [loop for loop in compiled(whole(text), find("multi16")).loops if loop.is_pipelined]
    assert found
    for loop in found:
        assert loop.interval == max(loop.resource_bound, loop.recurrence_bound)


def test_a_filter_of_sixteen_taps_takes_four_cycles_of_four_multipliers() -> None:
    loops = compiled(whole(FILTER), find("multi16")).loops
    found = {(e.interval, e.iterations) for e in loops if e.resource == "float_multiplier"}
    assert (4, 1) in found


@pytest.mark.nightly
@pytest.mark.parametrize(("full", "interval"), [(0.9, 55), (2, 57)])
def test_where_all_slots_are_taken_many_orders_are_tried(
    full: float, interval: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "FULL_SLOTS", full)
    loops = compiled(whole(FILTER), find("single")).loops
    (loop,) = (each for each in loops if each.is_pipelined and each.resource_bound == 53)
    assert (loop.resource, loop.interval) == ("slots", interval)


def test_division_is_pipelined_with_as_many_rounds_as_there_are_units_for() -> None:
    text = """
        (define d 40) (define s 0)
        (while (> d -3) (set! s (+ s (/ 100 d))) (set! d (- d 1)))
        s
    """
    (loop,) = compiled(whole(text), find("multi16")).loops
    assert loop.is_pipelined
    assert loop.iterations == 4
    assert loop.interval <= 1.2 * loop.resource_bound


# --- places ---------------------------------------------------------------------------------


def _taken(partial: PartialSchedule) -> tuple[object, ...]:
    """All that a partial schedule and its table say."""
    paths = partial.paths.copy(), partial.bases.copy(), partial.files.copy()
    costs = partial._costs.copy(), +Counter(partial._results)
    return partial.slots.copy(), paths, costs, _compact(vars(partial.table))


def _compact(value: object) -> object:
    """A copy without what is empty or 0."""
    match value:
        case dict():
            found = {key: _compact(each) for key, each in value.items()}
            return {key: each for key, each in found.items() if each}
        case list():
            return [_compact(each) for each in value]
        case set():
            return frozenset(value)
        case _:
            return value


def _unit(partial: PartialSchedule, node: DependenceNode) -> int:
    """The first unit that can do an operation."""
    return min(partial.machine.timings[node.operation.work])


TEXTS = {"dot": DOT, "fir": FIR, "counts": COUNTS}
ITERATIONS = {
    (name, machine): loops_of(whole(text), find(machine))[1]
    for name, text in TEXTS.items()
    for machine in ("dsp4", "multi16")
}


@given(st.data(), st.sampled_from(sorted(ITERATIONS)))
@examples(20)
def test_an_operation_that_loses_its_place_leaves_nothing(
    data: st.DataObject, which: tuple[str, str]
) -> None:
    loop, machine = data.draw(st.sampled_from(ITERATIONS[which])), find(which[1])
    interval = data.draw(st.integers(2, 20))
    partial = PartialSchedule(loop, LoopDemand(loop, machine), interval, frozenset())
    empty = _taken(partial)
    numbers = st.integers(0, len(loop.nodes) - 1)
    for number in data.draw(st.lists(numbers, unique=True, min_size=2)):
        work, before = loop.nodes[number].operation.work, _taken(partial)
        cycle = data.draw(st.integers(0, 40))
        unit = data.draw(st.sampled_from(sorted(machine.timings[work])))
        is_placed = partial.place(number, cycle, unit)
        assert is_placed or _taken(partial) == before
        if is_placed:
            after = _taken(partial)
            partial.evict(number)
            assert _taken(partial) == before
            assert partial.place(number, cycle, unit)
            assert _taken(partial) == after
    for number in data.draw(st.permutations(sorted(partial.slots))):
        partial.evict(number)
    assert _taken(partial) == empty


def test_a_base_that_no_port_is_left_for_leaves_nothing() -> None:
    loop = Loop()
    at, other = loop.register(), loop.register()
    loop.load(at)
    loop.do("mul", other, 3)
    loop.do("add", at, 8, to=at)
    files = tuple(dataclasses.replace(file, read_ports=1) for file in MACHINE.files)
    machine = dataclasses.replace(MACHINE, files=files, bypass=False)
    round_ = loop.round()
    partial = PartialSchedule(round_, LoopDemand(round_, machine), 4, frozenset())
    (read,), (product,), (step,) = (nodes(round_, name) for name in ("load", "mul", "add"))
    assert partial.place(step.number, 0, _unit(partial, step))
    assert partial.place(product.number, 3, _unit(partial, product))
    before = _taken(partial)
    assert not partial.place(read.number, 11, _unit(partial, read))
    assert _taken(partial) == before
    assert partial.place(read.number, 10, _unit(partial, read))
    assert partial.bases == {read.number: -2}


def _scheduled(text: str, machine: Machine) -> list[IterationSchedule]:
    found = []
    for loop in loops_of(whole(text), machine)[1]:
        least = bounds(loop, machine).least
        one = schedule_iteration(loop, machine, least, 3 * least, frozenset(), Counter())
        assert one is not None
        found.append(one)
    assert found
    return found


@MACHINES
@pytest.mark.parametrize("name", TEXTS)
def test_every_operation_has_waited_for_what_it_has_to(machine: str, name: str) -> None:
    description = find(machine)
    for found in _scheduled(TEXTS[name], description):
        slots = found.partial.slots
        assert sorted(slots) == list(range(len(found.loop.nodes)))
        for edge in found.loop.edges:
            one, other = slots[edge.first], slots[edge.second]
            least = distance(edge.reason, one.latency, other.latency, description)
            assert other.cycle + found.interval * edge.distance >= one.cycle + least
        issued = Counter(
            ((slot.cycle + more) % found.interval, slot.unit)
            for number, slot in slots.items()
            for more in range(_interval(found, number, description))
        )
        assert set(issued.values()) == {1}
        for node in found.loop.nodes:
            for made in (each for each in node.sources if isinstance(each, NodeResult)):
                read = slots[node.number].cycle + found.interval * made.distance
                assert slots[made.node].write_back <= read
        repeat = slots[found.loop.repeat]
        assert (repeat.cycle + description.delay_slots + 1) % found.interval == 0


def _interval(found: IterationSchedule, number: int, machine: Machine) -> int:
    unit = machine.units[found.partial.slots[number].unit]
    return unit.work[found.loop.nodes[number].operation.work].interval


def _with_slow_units(machine: Machine) -> Machine:
    """The machine with every second unit of each group four cycles slower, but for branches."""
    units = list(machine.units)
    for number, unit in enumerate(units):
        if (
            number
            and units[number - 1].group == unit.group
            and "slow" not in units[number - 1].name
        ):
            work = {
                work: dataclasses.replace(timing, latency=timing.latency + 4)
                for work, timing in unit.work.items()
            }
            units[number] = dataclasses.replace(unit, name=f"slow {unit.name}", work=work)
    return dataclasses.replace(machine, units=tuple(units))


@pytest.mark.rotate("name", "machine")
@pytest.mark.parametrize("machine", ["multi16", "wide16"])
@pytest.mark.parametrize("name", TEXTS)
def test_loops_on_units_of_different_latencies_are_proved(machine: str, name: str) -> None:
    """The prover refuses a reader that is issued for the fast unit and gets its operand from a slow
    one."""
    program = compiled(whole(TEXTS[name]), _with_slow_units(find(machine)))
    assert any(loop.is_pipelined for loop in program.loops)
    slots = [slot for bundle in program.bundles for slot in bundle]
    latencies = {program.timing(slot).latency for slot in slots if slot.name == "add"}
    assert latencies == {1, 5}


def _pointed() -> Loop:
    """A loop that adds what it loads from 8 bytes on of an address to a product, and stores it
    there. The product takes several iterations."""
    loop = Loop()
    at, x = loop.register(), loop.register()
    slow = loop.do("mul", loop.do("mul", loop.do("mul", x, 3), 5), 7)
    loop.store(at, loop.do("add", loop.load(at, 8), slow), -8)
    loop.do("add", at, 16, to=at)
    loop.do("add", x, 1, to=x)
    return loop


def test_an_access_takes_the_last_base_that_is_there() -> None:
    loop = _pointed().round()
    found = schedule_iteration(loop, MACHINE, 3, 3, frozenset(), Counter())
    assert found is not None
    slots, (write,) = found.partial.slots, nodes(found.loop, "store")
    (pointer, *_) = (node for node in nodes(found.loop, "add") if node.sources[1] == 16)
    later = 0
    for node in (write, *nodes(found.loop, "load")):
        base, place, old = node.sources[0], node.operation.place, loop.nodes[node.number]
        assert isinstance(base, NodeResult)
        assert place is not None
        assert old.operation.place is not None
        waited = slots[node.number].cycle + 3 * base.distance - slots[pointer.number].write_back
        assert 0 <= waited < 3
        iterations = 1 - base.distance
        assert place.offset == old.operation.place.offset - 16 * iterations
        later += iterations > 0
    assert later
    assert Lifetimes(found.loop, MACHINE, found.partial).iterations(pointer.number) == 1


@pytest.mark.nightly
@pytest.mark.parametrize("machine", sorted(shipped()))
def test_windows_whose_accesses_come_late_are_right(machine: str) -> None:
    state, reference = last_states(machine, FILTER)
    assert state == reference


# --- bundles --------------------------------------------------------------------------------


def test_the_first_round_reads_from_a_file_what_later_ones_take_from_a_unit() -> None:
    machine = find("multi16")
    code, loops = loops_of(whole(DOT), machine)
    seen = 0
    for loop in loops:
        found = schedule_iteration(
            loop, machine, bounds(loop, machine).least, 99, frozenset(), Counter()
        )
        assert found is not None
        from_before = [
            (number, index)
            for (number, index), path in found.partial.paths.items()
            if isinstance(path, FromUnit) and _distance_of(found, number, index) == 1
        ]
        placed = expand(code, found, machine).scheduled.placed
        for number, index in from_before:
            slot, operation = found.partial.slots[number], found.loop.nodes[number].operation
            same = [p for p in placed if (p.unit, p.operation.name) == (slot.unit, operation.name)]
            iterations = [p for p in same if p.operation.place is operation.place]
            iterations = [p for p in iterations if p.operation.static == operation.static]
            iterations.sort(key=lambda p: p.cycle)
            assert iterations[0].bypassed[index] is None
            assert any(p.bypassed[index] is not None for p in iterations[1:])
            seen += 1
    assert seen


@pytest.mark.parametrize("name", [*TEXTS, "filter"])
def test_nothing_that_rounds_make_is_needed_from_before(name: str) -> None:
    machine = find("multi16")
    code, loops = loops_of(whole((TEXTS | {"filter": FILTER})[name]), machine)
    is_later = False
    for loop in loops:
        least = bounds(loop, machine).least
        most = 4 * least if len(loop.nodes) < 100 else 0
        found = schedule_iteration(loop, machine, least, most, frozenset(), Counter())
        if found is None:
            continue
        is_later |= any(distance < 0 for distance in found.partial.bases.values())
        pipelined = expand(code, found, machine)
        code.blocks += pipelined.stubs
        made = {each.operation.result for each in pipelined.scheduled.placed}
        assert made.isdisjoint(live_at_entry(code)[loop.block])
    assert is_later or name != "filter"


def _distance_of(found: IterationSchedule, number: int, index: int) -> int:
    source = found.loop.nodes[number].sources[index]
    return source.distance if isinstance(source, NodeResult) else 0


@pytest.mark.nightly
@pytest.mark.parametrize("machine", sorted(shipped()))
def test_simulators_agree_wherever_a_pipelined_loop_is_left(machine: str) -> None:
    part = whole(COUNTS)
    program = compiled(part, find(machine))
    assert sum(loop.is_pipelined for loop in program.loops) >= 3
    for budget in (1, 60, 130, 333, 1000, 2500, 1 << 40):
        slow, fast = (run(program, part, is_native, budget) for is_native in (False, True))
        assert slow == fast


@pytest.mark.rotate("machine", "cycles", "is_native", most=1)
@MACHINES
@pytest.mark.parametrize("cycles", [97, 410, 1 << 30])
@pytest.mark.parametrize("is_native", [False, True])
def test_loops_of_any_number_of_rounds_leave_the_state_of_the_reference(
    monkeypatch: pytest.MonkeyPatch, machine: str, cycles: int, is_native: bool
) -> None:
    """0 to 20 iterations: control leaves in each iteration of prologue and kernel; it also does,
    and comes back, whenever a slice of time is over."""
    monkeypatch.setattr(entry, "SLICE", cycles)
    if not is_native:
        monkeypatch.setattr(entry, "NativeProgram", _Interpreted)
    state, reference = last_states(machine, COUNTS)
    assert state == reference


TURNS = """
    (define (turns v n)
      (define i 0) (define j 6) (define k 0)
      (while (< k n)
        (vector-set! v (+ i 3) (+ (* (* (vector-ref v (+ i 1)) 3) 5) k))
        (let ((t (+ i 1))) (set! i j) (set! j t))
        (set! k (+ k 1))))
    (define v (make-vector i64 60)) (define i 0)
    (while (< i 60) (vector-set! v i (+ (* i 7) 1)) (set! i (+ i 1)))
    (turns v 33)
    (vector-ref v 20)
"""


@pytest.mark.rotate("machine", "ahead", most=2)
@MACHINES
@pytest.mark.parametrize("ahead", [2, 4, 6])
def test_indices_that_take_turns_touch_what_the_other_one_does(machine: str, ahead: int) -> None:
    state, reference = last_states(machine, TURNS.replace("(define j 6)", f"(define j {ahead})"))
    assert state == reference


class _Interpreted:
    """What runs a program, by the plain simulator."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, memory: Memory, budget: int, control: ControlBlock | None = None) -> RunMetrics:
        return interpret(self.program, memory, budget)


# --- loops that are not pipelined -----------------------------------------------------------


def _with_registers(machine: Machine, kind: FileKind, count: int) -> Machine:
    files = tuple(
        dataclasses.replace(file, registers=count) if file.kind is kind else file
        for file in machine.files
    )
    return dataclasses.replace(machine, files=files)


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "file"), [(FileKind.INTEGER, "int"), (FileKind.BOOLEAN, "bool")])
def test_a_loop_that_finds_too_few_registers_is_unrolled_and_says_in_which_file(
    kind: FileKind, file: str
) -> None:
    part, usual = whole(COUNTS), find("wide16")
    right = run(compiled(part, usual), part, is_native=True)
    found: list[Told] = []
    for count in (12, 8) if kind is FileKind.INTEGER else (8, 1):
        program = compiled(part, _with_registers(usual, kind, count))
        ended = run(program, part, is_native=True)
        for each in (ended, right):  # what only the code sees differs
            each.memory.update(spill=b"", calls=b"")
        assert (ended.registers, ended.memory) == (right.registers, right.memory)
        found += [loop for loop in program.loops if not loop.is_pipelined]
    assert found
    assert {loop.reason for loop in found} == {f"file {file} has too few registers"}
    assert {loop.stages for loop in found} == {1}


@pytest.mark.parametrize("is_given_up", [False, True])
def test_what_a_loop_leaves_is_in_registers_also_when_it_is_given_up(
    monkeypatch: pytest.MonkeyPatch, is_given_up: bool
) -> None:
    """Whatever may be in memory is, and then a loop is given up: what its exits need is not
    lost."""
    part, machine = whole(TRAP), find("wide16")
    right = run(compiled(part, machine), part, is_native=True)
    colour, spilled = register_allocation._colour, list[Register]()

    def crowded(spans: LiveRanges, machine: Machine) -> tuple[dict[Register, int], list[Register]]:
        found, _ = colour(spans, machine)
        if not spilled:
            spilled.extend(r for r in spans.taken if r not in spans.fixed and not r.is_spill)
            return found, spilled
        blocks = {block for r in spans.fixed for block in spans.taken[r]}
        if is_given_up and spans.fixed:
            raise register_allocation._CrowdedError("int", [blocks])
        return found, []

    monkeypatch.setattr(register_allocation, "_colour", crowded)
    program = compiled(part, machine)
    assert program.spilled == len(spilled) > 0
    assert [loop.is_pipelined for loop in program.loops] == [not is_given_up]
    ended = run(program, part, is_native=True)
    for each in (ended, right):
        each.memory.update(spill=b"", calls=b"")
    assert (ended.registers, ended.memory) == (right.registers, right.memory)


def test_a_loop_that_is_too_large_is_not_tried() -> None:
    sums = " ".join(f"(set! s (+ s (* {n} (vector-ref v {n % 8}))))" for n in range(2, 200))
    text = (
        "(define v (make-vector i64 8)) (define s 1) (define i 0)"
        f"(while (< i 5) {sums} (vector-set! v i s) (set! i (+ i 1))) s"
    )
    (loop,) = compiled(whole(text), find("multi16")).loops
    assert loop.reason == "it has more than 320 operations"


def test_a_large_loop_whose_rounds_wait_for_each_other_is_not_tried() -> None:
    sums = " ".join(f"(set! s (+ (* s {n}) i))" for n in range(2, 50))
    text = f"(define s 1) (define i 0) (while (< i 5) {sums} (set! i (+ i 1))) s"
    (loop,) = compiled(whole(text), find("multi16")).loops
    assert loop.reason == "its iterations would hardly overlap"


@pytest.mark.parametrize("machine", sample(["multi16", "single"], 1))
def test_quick_code_pipelines_nothing_and_does_the_same(machine: str) -> None:
    part, full = whole(COUNTS), compiled(whole(COUNTS), find(machine))
    (target,) = VliwBackend(find(machine)).targets(Options(optimize=1))
    quick = Compilation(target, part, Options(optimize=1), {}).lowered
    assert any(loop.is_pipelined for loop in full.loops)
    assert {loop.reason for loop in quick.loops} == {"the code is made quickly"}
    assert {loop.iterations for loop in quick.loops} == {1}
    one, other = run(full, part, is_native=True), run(quick, part, is_native=True)
    assert one.registers == other.registers
    for segment in ("heap", "statics"):
        assert one.memory[segment] == other.memory[segment]
    assert one.counts.cycles < other.counts.cycles


# --- an exit behind a jump ------------------------------------------------------------------


def _memory(value: int) -> Memory:
    """Of a program made by hand, whose first word of the control block is a value."""
    segments = {segment: np.zeros(1024, np.uint8) for segment in Segment}
    segments[Segment.CONTROL][:8] = np.frombuffer(value.to_bytes(8, "little"), np.uint8)
    return Memory(segments)


@pytest.mark.parametrize("is_native", [False, True])
@pytest.mark.parametrize(
    ("value", "fetched", "stored"),
    [(3, [0, 1, 2, 3, 4, 8, 9], [0, 16]), (9, [0, 1, 2, 3, 4, 5, 6, 7], [17, 0])],
    ids=["taken", "not taken"],
)
def test_an_exit_behind_a_jump_takes_effect_in_its_turn(
    value: int, fetched: list[int], stored: list[int], is_native: bool
) -> None:
    """The jump leads to bundle 4, of which one is done until the exit leads on to bundle 8."""
    bundles = (
        (load(TOP, NIL, r(0)),),
        (),
        (do(0, "compare", r(0), EIGHT, to=BOOLEAN), go("jump", 4)),
        (go("exit", 8, BOOLEAN), do(0, "move", EIGHT, to=r(2))),
        (do(0, "add", r(0), EIGHT, to=r(1)), do(1, "add", r(2), EIGHT, to=r(2))),
        (store(HEAP_AT, NIL, r(1)),),
        (go("stop", None),),
        (),
        (store(STACK_AT, NIL, r(2)), go("stop", None)),
        (),
    )
    program = Program("hand", HAND, bundles, {0: "entry", 4: "onward", 8: "other"}, (), (), 0, 0, 0)
    memory = _memory(value)
    counts = (NativeProgram(program).run if is_native else _Interpreted(program).run)(memory, 1000)
    assert np.flatnonzero(counts.bundles).tolist() == fetched
    assert set(counts.bundles[fetched]) == {1}
    assert [memory.load(segment, 0, 8) for segment in (HEAP, STACK)] == stored
