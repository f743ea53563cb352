# SPDX-License-Identifier: Apache-2.0
"""One iteration of a loop: what its operations wait for, and how fast iterations can follow each
other."""

from __future__ import annotations

import dataclasses

from ferryvm_backends.vliw.code.dependence import DependenceKind
from ferryvm_backends.vliw.code.modulo.dependence_graph import DependenceEdge, Invariant, NodeResult
from ferryvm_backends.vliw.code.modulo.initiation_interval import Bounds, bounds
from ferryvm_backends.vliw.code.operation import EXITS, MachineOperation, Segment

from .looping import HEAP, MACHINE, STACK, Loop, dependences_between, nodes

# --- how fast -------------------------------------------------------------------------------


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
    # A product and the move that passes it on: four cycles, in two iterations.
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
    by a step in each iteration."""
    loop = Loop()
    at = loop.register()
    loop.store(at, loop.load(at, load), store, segment)
    loop.do("add", at, step, to=at)
    found = dependences_between(loop.round(), "store", "load")
    assert {edge.reason for edge in found} <= {DependenceKind.ORDER}
    return {edge.distance for edge in found}


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
    assert dependences_between(round_, "store", "load") == {
        DependenceEdge(second.number, first.number, DependenceKind.ORDER, 1)
    }
    assert DependenceEdge(
        first.number, second.number, DependenceKind.MEMORY
    ) in dependences_between(round_, "load", "store")
    assert dependences_between(round_, "store", "store") == {
        DependenceEdge(second.number, second.number, DependenceKind.ORDER, 1)
    }


def test_an_address_is_known_through_sums() -> None:
    loop = Loop()
    at = loop.register()
    loop.load(loop.do("sub", at, 8))
    loop.store(loop.do("add", 8, loop.do("add", at, 8)), 1)
    loop.do("add", loop.do("add", at, 4), 4, to=at)
    assert {each.distance for each in dependences_between(loop.round(), "store", "load")} == {3}


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
        for w in dependences_between(round_, "store", "load")
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
    # What one held an iteration before, the other holds now, and two iterations before itself.
    assert move.sources == (NodeResult(move.number, 2),)
    assert {*one.sources} == {NodeResult(move.number, 1), NodeResult(move.number, 2)}
    near, far = (source.distance for source in one.sources if isinstance(source, NodeResult))
    assert move.initial == {near: b, far: a}


def test_a_register_that_does_not_change_is_kept_and_a_constant_is_none() -> None:
    loop = Loop()
    kept, same = loop.register(), loop.register()
    loop.do("move", same, to=same)
    five = loop.do("move", 5)
    loop.do("mul", kept, five)
    loop.do("mul", same, 1)
    one, other = nodes(loop.round(), "mul")
    assert one.sources == (Invariant(kept), 5)
    assert other.sources == (Invariant(same), 1)


def test_a_constant_that_later_rounds_find_is_made_in_each() -> None:
    loop = Loop()
    a = loop.register()
    loop.do("mul", a, 1)
    loop.do("move", 5, to=a)
    round_ = loop.round()
    (one,), (move,) = nodes(round_, "mul"), nodes(round_, "move")
    assert one.sources == (NodeResult(move.number, 1), 1)
    assert (move.sources, move.initial) == ((5,), {1: a})


def test_what_is_passed_on_twice_comes_two_rounds_later() -> None:
    loop = Loop()
    old, now = loop.register(), loop.register()
    loop.do("mul", old, 1)
    loop.do("move", now, to=old)
    loop.do("add", now, 1, to=now)
    round_ = loop.round()
    (one,), (add,) = (nodes(round_, name) for name in ("mul", "add"))
    assert not nodes(round_, "move")
    assert one.sources == (NodeResult(add.number, 2), 1)
    assert add.sources == (NodeResult(add.number, 1), 1)
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
    assert one.sources == (NodeResult(add.number, 2), NodeResult(move.number, 1))
    assert move.sources == (NodeResult(add.number, 1),)
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
    assert one.sources == (NodeResult(one.number, 1), NodeResult(move.number, 1))


def test_an_exit_needs_what_stands_there_when_it_leaves() -> None:
    loop = Loop()
    a, kept, far = loop.register(), loop.register(), loop.register()
    loop.read_after = [a, kept, far]
    loop.exit(a)
    loop.do("add", a, 1, to=a)
    loop.do("move", 7, to=far)
    loop.exit(a)
    round_ = loop.round()
    (add,), (move,), (before, after) = (nodes(round_, name) for name in ("add", "move", "exit"))
    assert before.needed == {a: NodeResult(add.number, 1), far: NodeResult(move.number, 1)}
    assert after.needed == {a: NodeResult(add.number), far: 7}  # what is kept stays where it is
    assert dependences_between(round_, "add", "exit") == {
        DependenceEdge(add.number, before.number, DependenceKind.WRITTEN_BACK, 1),
        DependenceEdge(add.number, after.number, DependenceKind.WRITTEN_BACK),
    }
    assert dependences_between(round_, "exit", "exit") == {
        DependenceEdge(before.number, after.number, DependenceKind.ORDER),
        DependenceEdge(after.number, before.number, DependenceKind.ORDER, 1),
    }


def test_stores_stay_between_the_exits_around_them() -> None:
    loop = Loop()
    a = loop.register()
    loop.exit(a)
    loop.store(a, 1)
    loop.exit(a)
    round_ = loop.round()
    (first, second), (one,) = nodes(round_, "exit"), nodes(round_, "store")
    assert dependences_between(round_, "exit", "store") == {
        DependenceEdge(first.number, one.number, DependenceKind.CONTROL)
    }
    assert dependences_between(round_, "store", "exit") == {
        DependenceEdge(one.number, second.number, DependenceKind.DONE)
    }


def test_the_time_is_looked_at_once_a_pass() -> None:
    loop = Loop()
    a = loop.register()
    loop.do("add", a, 1, to=a)
    poll = MachineOperation("exit_expired", target=loop.done)
    loop.body.operations.append(poll)
    found = [node.operation for node in loop.round(3).nodes if node.operation.name in EXITS]
    assert [(each.name, each.target) for each in found] == [("repeat", loop.done)]


# --- bases ----------------------------------------------------------------------------------


def test_what_the_base_of_an_access_grows_by_is_known() -> None:
    loop = Loop()
    at = loop.register()
    loop.load(at, 24)
    loop.store(at, 1)
    loop.do("sub", loop.do("add", at, 3), 11, to=at)
    loop.load(at)
    round_ = loop.round()
    assert [node.step for node in nodes(round_, "load")] == [-8, -8]
    assert [node.step for node in nodes(round_, "store")] == [-8]
    assert {node.step for node in nodes(round_, "sub")} == {None}


def test_a_base_before_the_first_round_is_on_no_line_of_another_address() -> None:
    loop = Loop()
    at, other = loop.register(), loop.register()
    loop.load(other)  # in the first iteration this is anything
    loop.do("add", at, 8, to=at)
    loop.load(loop.do("add", at, 8, to=other))
    assert [node.step for node in nodes(loop.round(), "load")] == [None, 8]


def test_a_base_that_two_rounds_pass_on_is_that_of_its_round() -> None:
    loop = Loop()
    at, before = loop.register(), loop.register()
    loop.load(before)
    loop.do("move", at, to=before)
    loop.do("add", at, 8, to=at)
    (load,) = nodes(loop.round(), "load")
    assert isinstance(load.sources[0], NodeResult)
    assert (load.sources[0].distance, load.step) == (2, None)


def test_a_base_has_to_be_a_sum_with_constants() -> None:
    loop = Loop()
    at, step = loop.register(), loop.register()
    loop.load(0)
    loop.load(step)
    loop.load(loop.load(step))
    loop.load(at)
    loop.do("add", at, step, to=at)
    loop.load(loop.do("mul", at, 8))
    assert {node.step for node in nodes(loop.round(), "load")} == {None}


def test_an_offset_has_room_for_what_another_base_takes() -> None:
    loop = Loop()
    at = loop.register()
    loop.load(at, 1 << 31)
    loop.do("add", at, 8, to=at)
    far = loop.register()
    loop.load(far)
    loop.do("add", far, 1 << 30, to=far)
    assert {node.step for node in nodes(loop.round(), "load")} == {None}


def test_a_base_of_another_round_needs_another_offset() -> None:
    loop = Loop()
    at = loop.register()
    loop.load(at, 24)
    loop.do("add", at, 8, to=at)
    round_ = loop.round()
    (load,) = nodes(round_, "load")
    (other,) = nodes(round_.with_bases({load.number: -2}), "load")
    # Three iterations later the base is 24 more.
    assert other.operation.place is not None
    assert other.operation.place.offset == 0
    assert other.sources == (NodeResult(load.sources[0].node, -2),)  # type: ignore[union-attr]
    assert load.operation.place is not None
    assert load.operation.place.offset == 24


# --- sums of sums ---------------------------------------------------------------------------


def test_several_rounds_count_from_where_the_first_one_does() -> None:
    loop = Loop()
    at, i = loop.register(), loop.register()
    loop.exit(loop.do("sub", loop.do("add", i, 1), 6))
    loop.load(at, 24)
    loop.do("add", at, 8, to=at)
    loop.do("add", i, 1, to=i)
    loop.read_after = [i]
    round_ = loop.round(3)
    offsets = [n.operation.place.offset for n in nodes(round_, "load") if n.operation.place]
    assert offsets == [24, 32, 40]
    assert len({n.sources for n in nodes(round_, "load")}) == 1  # one address for the three
    adds, subs = nodes(round_, "add"), nodes(round_, "sub")
    steps = sorted(int(str(n.sources[1])) for n in adds)
    assert steps == [1, 1, 1, 24]  # what the exits leave, and the next address
    assert [n.sources[1] for n in subs] == [5, 5, 5]
    assert bounds(round_, MACHINE).recurrence == 3  # as many exits, one after another


def test_a_sum_that_something_else_needs_stays() -> None:
    loop = Loop()
    x = loop.register()
    far = loop.do("add", loop.do("add", x, 8), 8)
    loop.store(far, loop.do("mul", far, 3))
    (one,) = nodes(loop.round(), "add")
    assert one.sources == (Invariant(x), 16)
    (write,), (product,) = nodes(loop.round(), "store"), nodes(loop.round(), "mul")
    assert write.sources == (Invariant(x), NodeResult(product.number))
    assert product.sources == (NodeResult(one.number), 3)


def test_sums_of_other_words_stay_as_they_are() -> None:
    loop = Loop()
    x, y = loop.register(), loop.register()
    loop.load(loop.do("add", loop.do("add", x, y), y))
    loop.load(loop.do("add", 8, x))
    sums = [node.sources for node in nodes(loop.round(), "add")]
    assert sums == [(Invariant(x), Invariant(y)), (NodeResult(0), Invariant(y)), (8, Invariant(x))]


# --- pointers that take turns ---------------------------------------------------------------


def _turns(load: int, store: int) -> Loop:
    """A loop with two pointers; each iteration uses one, and the other one is next."""
    loop = Loop()
    now, other = loop.register(), loop.register()
    loop.store(now, loop.do("mul", loop.load(now, load), 3), store)
    after = loop.do("add", now, 8)
    loop.do("move", other, to=now)
    loop.do("move", after, to=other)
    return loop


def test_pointers_that_take_turns_are_on_no_line() -> None:
    round_ = _turns(8, 24).round()
    (load,) = nodes(round_, "load")
    assert load.sources == (NodeResult(nodes(round_, "add")[0].number, 2),)
    assert load.step is None
    # The other one may be anywhere, so also where this one has stored.
    assert {edge.distance for edge in dependences_between(round_, "store", "load")} == {1}


def test_what_is_known_of_pointers_that_take_turns_is_known_of_several_rounds() -> None:
    round_ = _turns(8, 24).round(2)
    assert {node.step for node in nodes(round_, "load")} == {8}
    found = dependences_between(round_, "store", "load")
    assert any(edge.distance == 0 for edge in found)
