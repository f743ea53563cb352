# SPDX-License-Identifier: Apache-2.0
"""Pipelined loops: what waits for what, how fast they can go round, and what their bundles do."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferryvm.machine.control import ControlBlock
from ferryvm_backends.vliw import enter
from ferryvm_backends.vliw.code import allocate
from ferryvm_backends.vliw.code.dependence import Reason, distance
from ferryvm_backends.vliw.code.modulo.bound import Bounds, bounds
from ferryvm_backends.vliw.code.modulo.expand import expand
from ferryvm_backends.vliw.code.modulo.graph import Kept, Made, Wait
from ferryvm_backends.vliw.code.modulo.schedule import RoundSchedule, schedule_round
from ferryvm_backends.vliw.code.modulo.table import FromUnit, ModuloTable
from ferryvm_backends.vliw.code.operation import EXITS, MachineOperation, Register, Segment
from ferryvm_backends.vliw.code.program import Loop as Told
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.code.span import Spans
from ferryvm_backends.vliw.machine.model import FileKind, Machine
from ferryvm_backends.vliw.machine.read import find, shipped
from ferryvm_backends.vliw.simulate.count import Counts
from ferryvm_backends.vliw.simulate.interpret import interpret
from ferryvm_backends.vliw.simulate.memory import Memory
from ferryvm_backends.vliw.simulate.native import NativeProgram

from .looping import HEAP, MACHINE, STACK, Loop, loops_of, nodes, waits
from .program import compiled, run, whole
from .test_prove_by_hand import EIGHT, NIL, TOP, TRUTH, do, go, load, r, store
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


@pytest.mark.parametrize(("text", "most"), [(DOT, 1), (FIR, 1.2)], ids=["dot", "fir"])
def test_the_interval_is_the_bound_or_near_it(text: str, most: float) -> None:
    found = compiled(whole(text), find("multi16")).loops
    assert found
    for loop in found:
        assert loop.is_pipelined
        assert loop.interval <= most * max(loop.resource_bound, loop.recurrence_bound)


def test_units_that_do_the_same_are_one_resource() -> None:
    loop = Loop()
    x = loop.register()
    for _ in range(2):
        loop.do("mul", x, x)
    assert bounds(loop.round(), MACHINE) == Bounds(2, "rich", 1)
    for _ in range(3):
        loop.do("add", x, x)
    # Five of two units take three cycles, whoever multiplies.
    assert bounds(loop.round(), MACHINE) == Bounds(3, "plain+rich", 1)
    one = dataclasses.replace(MACHINE, slots=1)
    assert bounds(loop.round(), one) == Bounds(6, "slots", 1)


def test_a_unit_that_takes_an_operation_every_four_cycles_is_taken_for_four() -> None:
    loop = Loop()
    x = loop.register()
    for _ in range(3):
        loop.do("div_s", x, x)
    assert bounds(loop.round(), MACHINE) == Bounds(12, "slow", 1)


def test_two_units_do_not_take_one_operation_twice_as_often_unless_there_are_two_of_it() -> None:
    loop = Loop()
    x = loop.register()
    loop.do("div_s", x, x)
    slow = next(unit for unit in MACHINE.units if unit.name == "slow")
    units = (*MACHINE.units, dataclasses.replace(slow, name="slow1"))
    machine = dataclasses.replace(MACHINE, units=units)
    assert bounds(loop.round(), machine) == Bounds(4, "slow", 1)
    assert bounds(loop.round(2), machine) == Bounds(4, "slow", 1)


def test_division_is_pipelined_with_as_many_rounds_as_there_are_units_for() -> None:
    text = """
        (define d 40) (define s 0)
        (while (> d -3) (set! s (+ s (/ 100 d))) (set! d (- d 1)))
        s
    """
    (loop,) = compiled(whole(text), find("multi16")).loops
    assert loop.is_pipelined
    assert loop.rounds == 4
    assert loop.interval <= 1.2 * loop.resource_bound


def test_what_a_round_takes_from_the_one_before_bounds_it_by_its_latency() -> None:
    loop = Loop()
    x = loop.register()
    loop.do("add", loop.do("mul", x, x), 1, to=x)
    assert bounds(loop.round(), MACHINE).recurrence == 4
    assert bounds(loop.round(3), MACHINE).recurrence == 12


def test_what_is_taken_two_rounds_later_has_the_time_of_two() -> None:
    loop = Loop()
    x, before = loop.register(), loop.register()
    new = loop.do("mul", before, 3)
    loop.do("move", x, to=before)
    loop.do("move", new, to=x)
    # A product and the move that passes it on: four cycles, in two rounds.
    assert bounds(loop.round(), MACHINE).recurrence == 2


def test_a_store_waits_for_the_exits_of_the_rounds_before() -> None:
    loop = Loop()
    x = loop.register()
    loop.exit(loop.load(x))
    loop.store(x, 1)
    # Load, compare, exit, and the delay slots; then the next load, since x may be the same.
    assert bounds(loop.round(), MACHINE).recurrence == 2 + 1 + 2 + 1


# --- what waits for what --------------------------------------------------------------------


def _through(store: int, load: int, step: int = 8, segment: Segment = HEAP) -> set[int]:
    """The distances by which loads wait for stores, at these offsets from an address that changes
    by a step in each round."""
    loop = Loop()
    at = loop.register()
    loop.store(at, loop.load(at, load), store, segment)
    loop.do("add", at, step, to=at)
    found = waits(loop.round(), "store", "load")
    assert {wait.reason for wait in found} <= {Reason.ORDER}
    return {wait.distance for wait in found}


def test_what_is_stored_two_elements_ahead_is_loaded_two_rounds_later() -> None:
    assert _through(store=16, load=0) == {2}
    assert _through(store=0, load=16, step=-8) == {2}
    assert _through(store=17, load=0) == {2}  # the last bytes of two elements
    assert _through(store=16, load=0, step=16) == {1}


def test_what_is_stored_behind_is_never_loaded() -> None:
    assert _through(store=0, load=0) == set()
    assert _through(store=0, load=16) == set()
    assert _through(store=4, load=0, step=16) == set()


def test_a_place_that_stays_is_loaded_in_the_next_round() -> None:
    assert _through(store=0, load=0, step=0) == {1}
    assert _through(store=8, load=0, step=0) == set()


def test_parts_of_memory_never_meet() -> None:
    assert _through(store=16, load=0, segment=STACK) == set()


def test_an_address_that_is_not_known_may_be_any_in_the_next_round() -> None:
    loop = Loop()
    at = loop.register()
    loop.store(loop.load(at), 1)
    loop.do("add", at, 8, to=at)
    round_ = loop.round()
    ((first,), (second,)) = nodes(round_, "load"), nodes(round_, "store")
    assert waits(round_, "store", "load") == {Wait(second.number, first.number, Reason.ORDER, 1)}
    assert Wait(first.number, second.number, Reason.MEMORY) in waits(round_, "load", "store")
    assert waits(round_, "store", "store") == {Wait(second.number, second.number, Reason.ORDER, 1)}


def test_an_address_is_known_through_sums() -> None:
    loop = Loop()
    at = loop.register()
    loop.load(loop.do("sub", at, 8))
    loop.store(loop.do("add", 8, loop.do("add", at, 8)), 1)
    loop.do("add", loop.do("add", at, 4), 4, to=at)
    assert {each.distance for each in waits(loop.round(), "store", "load")} == {3}


def test_several_rounds_have_their_distances_among_them() -> None:
    loop = Loop()
    at = loop.register()
    loop.store(at, loop.load(at), 16)
    loop.do("add", at, 8, to=at)
    round_ = loop.round(3)
    order = [each.number for each in nodes(round_, "store")]
    behind = [each.number for each in nodes(round_, "load")]
    found = {
        (order.index(w.first), behind.index(w.second), w.distance)
        for w in waits(round_, "store", "load")
    }
    assert found == {(0, 2, 0), (1, 0, 1), (2, 1, 1)}


def test_registers_that_swap_take_each_others_place() -> None:
    loop = Loop()
    a, b = loop.register(), loop.register()
    kept = loop.do("move", a)
    loop.do("move", b, to=a)
    loop.do("move", kept, to=b)
    loop.do("sub", a, b)
    one, move = (node for node in loop.round().nodes if node.operation.name != "repeat")
    assert one.operation.name == "sub"
    # What one held a round before, the other holds now, and two rounds before itself.
    assert move.sources == (Made(move.number, 2),)
    assert {*one.sources} == {Made(move.number, 1), Made(move.number, 2)}
    near, far = (source.distance for source in one.sources if isinstance(source, Made))
    assert move.initial == {near: b, far: a}


def test_a_register_that_does_not_change_is_kept_and_a_constant_is_none() -> None:
    loop = Loop()
    kept, same = loop.register(), loop.register()
    loop.do("move", same, to=same)
    five = loop.do("move", 5)
    loop.do("sub", kept, five)
    loop.do("add", same, 1)
    (one,), (other,) = nodes(loop.round(), "sub"), nodes(loop.round(), "add")
    assert one.sources == (Kept(kept), 5)
    assert other.sources == (Kept(same), 1)


def test_a_constant_that_later_rounds_find_is_made_in_each() -> None:
    loop = Loop()
    a = loop.register()
    loop.do("sub", a, 1)
    loop.do("move", 5, to=a)
    round_ = loop.round()
    (one,), (move,) = nodes(round_, "sub"), nodes(round_, "move")
    assert one.sources == (Made(move.number, 1), 1)
    assert (move.sources, move.initial) == ((5,), {1: a})


def test_what_is_passed_on_twice_comes_two_rounds_later() -> None:
    loop = Loop()
    old, now = loop.register(), loop.register()
    loop.do("sub", old, 1)
    loop.do("move", now, to=old)
    loop.do("add", now, 1, to=now)
    round_ = loop.round()
    (one,), (add,) = (nodes(round_, name) for name in ("sub", "add"))
    assert not nodes(round_, "move")
    assert one.sources == (Made(add.number, 2), 1)
    assert add.sources == (Made(add.number, 1), 1)
    assert add.initial == {1: now, 2: old}


def test_two_that_are_passed_on_from_one_have_two_values_of_that_round() -> None:
    loop = Loop()
    a, b, now = (loop.register() for _ in range(3))
    loop.do("sub", a, b)
    loop.do("move", now, to=a)
    loop.do("move", now, to=b)
    loop.do("add", now, 1, to=now)
    round_ = loop.round()
    (one,), (add,), (move,) = (nodes(round_, name) for name in ("sub", "add", "move"))
    assert one.sources == (Made(add.number, 2), Made(move.number, 1))
    assert move.sources == (Made(add.number, 1),)
    assert (add.initial, move.initial) == ({1: now, 2: a}, {1: b})


def test_one_result_in_two_registers_has_two_first_values() -> None:
    loop = Loop()
    a, b = loop.register(), loop.register()
    new = loop.do("sub", a, b)
    loop.do("move", new, to=a)
    loop.do("move", new, to=b)
    round_ = loop.round()
    (one,), (move,) = nodes(round_, "sub"), nodes(round_, "move")
    assert (one.initial, move.initial) == ({1: a}, {1: b})
    assert one.sources == (Made(one.number, 1), Made(move.number, 1))


def test_an_exit_needs_what_stands_there_when_it_leaves() -> None:
    loop = Loop()
    a, kept, far = loop.register(), loop.register(), loop.register()
    loop.left = [a, kept, far]
    loop.exit(a)
    loop.do("add", a, 1, to=a)
    loop.do("move", 7, to=far)
    loop.exit(a)
    round_ = loop.round()
    (add,), (move,), (before, after) = (nodes(round_, name) for name in ("add", "move", "exit"))
    assert before.needed == {a: Made(add.number, 1), far: Made(move.number, 1)}
    assert after.needed == {a: Made(add.number), far: 7}  # what is kept stays where it is
    assert waits(round_, "add", "exit") == {
        Wait(add.number, before.number, Reason.LANDED, 1),
        Wait(add.number, after.number, Reason.LANDED),
    }
    assert waits(round_, "exit", "exit") == {
        Wait(before.number, after.number, Reason.ORDER),
        Wait(after.number, before.number, Reason.ORDER, 1),
    }


def test_stores_stay_between_the_exits_around_them() -> None:
    loop = Loop()
    a = loop.register()
    loop.exit(a)
    loop.store(a, 1)
    loop.exit(a)
    round_ = loop.round()
    (first, second), (one,) = nodes(round_, "exit"), nodes(round_, "store")
    assert waits(round_, "exit", "store") == {Wait(first.number, one.number, Reason.LEFT)}
    assert waits(round_, "store", "exit") == {Wait(one.number, second.number, Reason.DONE)}


def test_the_time_is_looked_at_once_a_pass() -> None:
    loop = Loop()
    a = loop.register()
    loop.do("add", a, 1, to=a)
    poll = MachineOperation("exit_expired", target=loop.done)
    loop.body.operations.append(poll)
    found = [node.operation for node in loop.round(3).nodes if node.operation.name in EXITS]
    assert [(each.name, each.target) for each in found] == [("repeat", loop.done)]


# --- places ---------------------------------------------------------------------------------


def _taken(table: ModuloTable) -> tuple[object, ...]:
    """All that a table says."""
    held = {key: dict(each) for key, each in table._held.items() if each}
    return table.spots.copy(), table.ways.copy(), table.files.copy(), held, +Counter(table._load)


TEXTS = {"dot": DOT, "fir": FIR, "counts": COUNTS}
ROUNDS = {
    (name, machine): loops_of(whole(text), find(machine))[1]
    for name, text in TEXTS.items()
    for machine in ("dsp4", "multi16")
}


@given(st.data(), st.sampled_from(sorted(ROUNDS)))
@settings(max_examples=60, deadline=None)
def test_an_operation_that_loses_its_place_leaves_nothing(
    data: st.DataObject, which: tuple[str, str]
) -> None:
    loop, machine = data.draw(st.sampled_from(ROUNDS[which])), find(which[1])
    interval = data.draw(st.integers(2, 20))
    table = ModuloTable(loop, machine, interval, frozenset())
    numbers = st.integers(0, len(loop.nodes) - 1)
    for number in data.draw(st.lists(numbers, unique=True, min_size=2)):
        node, before = loop.nodes[number], _taken(table)
        cycle = data.draw(st.integers(0, 40))
        unit = data.draw(st.sampled_from(table.units(node)))
        is_placed = table.place(node, cycle, unit)
        assert is_placed or _taken(table) == before
        if is_placed:
            after = _taken(table)
            table.evict(number)
            assert _taken(table) == before
            assert table.place(node, cycle, unit)
            assert _taken(table) == after
    for number in data.draw(st.permutations(sorted(table.spots))):
        table.evict(number)
    assert _taken(table) == ({}, {}, {}, {}, Counter())


def _scheduled(text: str, machine: Machine) -> list[RoundSchedule]:
    found = []
    for loop in loops_of(whole(text), machine)[1]:
        least = bounds(loop, machine).least
        one = schedule_round(loop, machine, least, 3 * least, frozenset(), Counter())
        assert one is not None
        found.append(one)
    assert found
    return found


@MACHINES
@pytest.mark.parametrize("name", TEXTS)
def test_every_operation_has_waited_for_what_it_has_to(machine: str, name: str) -> None:
    description = find(machine)
    for found in _scheduled(TEXTS[name], description):
        spots = found.table.spots
        assert sorted(spots) == list(range(len(found.loop.nodes)))
        for wait in found.loop.waits:
            one, other = spots[wait.first], spots[wait.second]
            least = distance(wait.reason, one.latency, other.latency, description)
            assert other.cycle + found.interval * wait.distance >= one.cycle + least
        issued = Counter(
            ((spot.cycle + more) % found.interval, spot.unit)
            for number, spot in spots.items()
            for more in range(_interval(found, number, description))
        )
        assert set(issued.values()) == {1}
        repeat = spots[found.loop.repeat]
        assert (repeat.cycle + description.delay_slots + 1) % found.interval == 0


def _interval(found: RoundSchedule, number: int, machine: Machine) -> int:
    unit = machine.units[found.table.spots[number].unit]
    return unit.work[found.loop.nodes[number].operation.work].interval


# --- bundles --------------------------------------------------------------------------------


def test_the_first_round_reads_from_a_file_what_later_ones_take_from_a_unit() -> None:
    machine = find("multi16")
    code, loops = loops_of(whole(DOT), machine)
    seen = 0
    for loop in loops:
        found = schedule_round(
            loop, machine, bounds(loop, machine).least, 99, frozenset(), Counter()
        )
        assert found is not None
        from_before = [
            (number, index)
            for (number, index), way in found.table.ways.items()
            if isinstance(way, FromUnit) and _distance_of(found, number, index) == 1
        ]
        placed = expand(code, found, machine).scheduled.placed
        for number, index in from_before:
            spot, name = found.table.spots[number], loop.nodes[number].operation.name
            same = [p for p in placed if (p.unit, p.operation.name) == (spot.unit, name)]
            rounds = [p for p in same if p.operation.place is loop.nodes[number].operation.place]
            rounds = [
                p for p in rounds if p.operation.static == loop.nodes[number].operation.static
            ]
            rounds.sort(key=lambda p: p.cycle)
            assert rounds[0].bypassed[index] is None
            assert any(p.bypassed[index] is not None for p in rounds[1:])
            seen += 1
    assert seen


def _distance_of(found: RoundSchedule, number: int, index: int) -> int:
    source = found.loop.nodes[number].sources[index]
    return source.distance if isinstance(source, Made) else 0


@MACHINES
def test_simulators_agree_wherever_a_pipelined_loop_is_left(machine: str) -> None:
    part = whole(COUNTS)
    program = compiled(part, find(machine))
    assert sum(loop.is_pipelined for loop in program.loops) >= 3
    for budget in (1, 60, 130, 333, 1000, 2500, 1 << 40):
        slow, fast = (run(program, part, is_native, budget) for is_native in (False, True))
        assert slow == fast


@MACHINES
@pytest.mark.parametrize("cycles", [97, 410, 1 << 30])
@pytest.mark.parametrize("is_native", [False, True])
def test_loops_of_any_number_of_rounds_leave_the_state_of_the_reference(
    monkeypatch: pytest.MonkeyPatch, machine: str, cycles: int, is_native: bool
) -> None:
    """0 to 20 rounds: control leaves in each round of prologue and kernel; it also does, and comes
    back, whenever a slice of time is over."""
    monkeypatch.setattr(enter, "SLICE", cycles)
    if not is_native:
        monkeypatch.setattr(enter, "NativeProgram", _Interpreted)
    state, reference = last_states(machine, COUNTS)
    assert state == reference


class _Interpreted:
    """What runs a program, by the plain simulator."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, memory: Memory, budget: int, control: ControlBlock | None = None) -> Counts:
        return interpret(self.program, memory, budget)


# --- loops that are not pipelined -----------------------------------------------------------


def _with_registers(machine: Machine, kind: FileKind, count: int) -> Machine:
    files = tuple(
        dataclasses.replace(file, registers=count) if file.kind is kind else file
        for file in machine.files
    )
    return dataclasses.replace(machine, files=files)


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
    """Whatever may be in memory is, and then a loop is given up: what its exits need is not lost."""
    part, machine = whole(TRAP), find("wide16")
    right = run(compiled(part, machine), part, is_native=True)
    colour, spilled = allocate._colour, list[Register]()

    def crowded(spans: Spans, machine: Machine) -> tuple[dict[Register, int], list[Register]]:
        found, _ = colour(spans, machine)
        if not spilled:
            spilled.extend(r for r in spans.taken if r not in spans.fixed and not r.is_spill)
            return found, spilled
        blocks = {block for r in spans.fixed for block in spans.taken[r]}
        if is_given_up and spans.fixed:
            raise allocate._CrowdedError("int", [blocks])
        return found, []

    monkeypatch.setattr(allocate, "_colour", crowded)
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
    assert loop.reason == "its rounds would hardly overlap"


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
        (do(0, "compare", r(0), EIGHT, to=TRUTH), go("jump", 4)),
        (go("exit", 8, TRUTH), do(0, "move", EIGHT, to=r(2))),
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
