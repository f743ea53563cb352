# SPDX-License-Identifier: Apache-2.0
"""Pipelined loops: what waits for what, and how fast they can go round."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferryvm_backends.vliw.code import tuning
from ferryvm_backends.vliw.code.dependence import distance
from ferryvm_backends.vliw.code.modulo.dependence_graph import (
    DependenceNode,
    Iteration,
    NodeResult,
)
from ferryvm_backends.vliw.code.modulo.initiation_interval import bounds
from ferryvm_backends.vliw.code.modulo.partial_schedule import (
    LoopDemand,
    PartialSchedule,
)
from ferryvm_backends.vliw.code.modulo.register_pressure import Lifetimes
from ferryvm_backends.vliw.code.modulo.schedule import IterationSchedule, schedule_iteration
from ferryvm_backends.vliw.machine.model import Machine
from ferryvm_backends.vliw.machine.read import find, shipped

from ...tier import examples, nightly
from .loop_program import DOT, FILTER, FIR, MACHINES, TEXTS
from .looping import MACHINE, Loop, loops_of, nodes
from .program import compiled, whole
from .test_unroll import last_states

# --- how fast -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [DOT, nightly(FIR), nightly(FILTER)], ids=["dot", "fir", "filter"])
def test_the_interval_is_the_bound(text: str) -> None:
    found = [loop for loop in compiled(whole(text), find("multi16")).loops if loop.is_pipelined]
    assert found
    for loop in found:
        assert loop.interval == max(loop.resource_bound, loop.recurrence_bound)


@pytest.mark.nightly
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
    monkeypatch.setattr(tuning, "REGION_PLACEMENTS", 1 << 30)
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


@functools.cache
def iterations(name: str, machine: str) -> list[Iteration]:
    """Those of the loops of a text."""
    return loops_of(whole(TEXTS[name]), find(machine))[1]


@given(st.data(), st.sampled_from(sorted(itertools.product(TEXTS, ("dsp4", "multi16")))))
@examples(20)
def test_an_operation_that_loses_its_place_leaves_nothing(
    data: st.DataObject, which: tuple[str, str]
) -> None:
    loop, machine = data.draw(st.sampled_from(iterations(*which))), find(which[1])
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


@pytest.mark.rotate("name", "machine", most=1)
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
