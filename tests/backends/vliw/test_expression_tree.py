# SPDX-License-Identifier: Apache-2.0
"""Expression trees of loops: which operations they have, and schedules at the bound of their
units."""

from __future__ import annotations

from collections import Counter

from ferryvm_backends.vliw.code.modulo.attempt import LoopSearch
from ferryvm_backends.vliw.code.modulo.initiation_interval import bounds
from ferryvm_backends.vliw.code.modulo.partial_schedule import FromUnit
from ferryvm_backends.vliw.code.modulo.schedule import PlacementBudget, schedule_iteration
from ferryvm_backends.vliw.machine.read import find

from .looping import MACHINE, STACK, Loop, nodes


def _sums_of_products(count: int) -> Loop:
    """A row of so many sums of so many products of what is loaded, and a table."""
    loop = Loop()
    row, table, end = loop.register(), loop.register(), loop.register()
    loop.exit(loop.do("sub", end, row))
    shared = [loop.load(row, 8 * k) for k in range(count)]
    for item in range(count):
        total = loop.do("move", 0)
        for k, value in enumerate(shared):
            factor = loop.load(table, 8 * (count * item + k))
            total = loop.do("fadd", total, loop.do("fmul", value, factor))
        loop.store(row, total, 8 * item, STACK)
    loop.do("add", row, 8 * count, to=row)
    return loop


def test_a_tree_is_what_one_operation_reads_but_no_address() -> None:
    loop = Loop()
    at, n = loop.register(), loop.register()
    loop.exit(n)
    twice = loop.do("mul", n, 3)  # two operations read it
    value = loop.do("add", loop.load(loop.do("add", at, twice), 8), loop.do("mul", n, twice))
    loop.store(at, value)
    loop.do("add", n, 1, to=n)
    iteration = loop.round()
    (tree,) = LoopSearch(iteration, MACHINE).trees
    names = [iteration.nodes[number].operation.name for number in tree.operations]
    assert sorted(names) == ["add", "load", "mul"]
    assert [tree.cycles[number] for number in tree.operations] == [0, -2, -3]


def test_sums_take_all_cycles_of_their_units() -> None:
    machine, loop = find("multi16"), _sums_of_products(8).round()
    least, budget = bounds(loop, machine), PlacementBudget(2000)
    assert (least.resource, least.least) == (16, 16)
    found = schedule_iteration(loop, machine, 16, 16, frozenset(), Counter(), budget)
    assert found is not None
    for node in (*nodes(found.loop, "fadd"), *nodes(found.loop, "fmul")):
        sums = [n for n, source in enumerate(node.sources) if not isinstance(source, int)]
        if node.operation.name == "fadd":
            assert all(isinstance(found.partial.paths[node.number, n], FromUnit) for n in sums)
