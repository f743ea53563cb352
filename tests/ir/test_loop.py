# SPDX-License-Identifier: Apache-2.0
"""Dominators and loops of bodies are those that paths say."""

from __future__ import annotations

import functools

import pytest

import ferryvm
from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import Body
from ferryvm.ir.lift import lift
from ferryvm.ir.loop.natural import Loop, find_loops, loops_of
from ferryvm.ir.loop.poll import poll_costs
from ferryvm.ir.operation import POLL_BUDGET
from ferryvm.ir.passes.code_motion import hoist_invariants
from ferryvm.region.region import region, regions
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import verify


@functools.cache
def bodies() -> tuple[Body, ...]:
    found: list[Body] = []
    for kind in (ProgramKind.BYTECODE, ProgramKind.SKIFF):
        for number in range(5):
            for part in regions(verify(generate(3, number, kind))):
                found += lift(part).bodies
    return tuple(found)


def reached(graph: ControlFlowGraph, without: int) -> set[int]:
    """Places that control gets to from the entry without passing one."""
    found: set[int] = set()
    waiting = [0]
    while waiting:
        place = waiting.pop()
        if place != without and place not in found:
            found.add(place)
            waiting += [graph.places[edge.block] for edge in graph.blocks[place].end.edges]
    return found


@pytest.mark.nightly
def test_a_block_dominates_what_is_not_reached_without_it() -> None:
    sizes = []
    for body in bodies():
        graph = ControlFlowGraph(body)
        count = len(graph.blocks)
        sizes.append(count)
        for place in range(count):
            others = reached(graph, place)
            for other in range(count):
                assert graph.dominates(place, other) is (other not in others)
    assert max(sizes) > 10


def test_a_preorder_has_what_a_block_dominates_right_behind_it() -> None:
    for body in bodies():
        graph = ControlFlowGraph(body)
        order = graph.preorder()
        assert order[0] == 0
        assert sorted(order) == list(range(len(graph.blocks)))
        for index, place in enumerate(order):
            inside = [graph.dominates(place, other) for other in order[index:]]
            assert inside == sorted(inside, reverse=True)


def test_loops_have_one_entry_and_come_from_the_inside_out() -> None:
    seen = 0
    for body in bodies():
        graph = ControlFlowGraph(body)
        loops = loops_of(graph)
        seen += len(loops)
        for number, loop in enumerate(loops):
            for place in loop.blocks - {loop.head}:
                assert all(source in loop.blocks for source, _ in graph.incoming[place])
            assert not any(other.blocks < loop.blocks for other in loops[number + 1 :])
            assert loop.is_innermost is not any(other.blocks < loop.blocks for other in loops)
    assert seen > 20


def described() -> list[Loop]:
    found = []
    for body in bodies():
        hoist_invariants(body)
        found += find_loops(body)
    assert len(found) > 20
    return found


def test_a_loop_is_entered_and_repeated_by_all_edges_to_its_header() -> None:
    for loop in described():
        edges = [edge for block in loop.graph.blocks for edge in block.end.edges]
        found = [each.edge for each in (*loop.entries, *loop.back_edges)]
        to_header = [edge for edge in edges if edge.block is loop.header]
        assert {id(edge) for edge in found} == {id(edge) for edge in to_header}
        assert [each.edge.is_back for each in loop.back_edges] == [True] * len(loop.latches)
        assert loop.entry is not None
        assert loop.preheader not in loop.members
        assert loop.entry.edge in loop.preheader.end.edges


def test_control_leaves_a_loop_by_its_exits_or_ends_in_a_tail() -> None:
    for loop in described():
        own = {*loop.extent}
        assert own >= {*loop.members}
        for block in own - {*loop.members}:
            assert not block.end.edges
        leaving = [edge for block in loop.members for edge in block.end.edges]
        leaving = [edge for edge in leaving if edge.block not in own]
        assert {id(edge) for edge in leaving} == {id(edge) for edge in loop.exits}


def test_values_of_a_loop_vary_and_others_do_not() -> None:
    for loop in described():
        for place, block in enumerate(loop.graph.blocks):
            for value in (*block.parameters, *block.operations):
                assert loop.is_invariant(value) is (place not in loop.blocks)


def test_the_only_edge_is_told_of_blocks_with_one() -> None:
    for body in bodies()[:10]:
        graph = ControlFlowGraph(body)
        for place, incoming in enumerate(graph.incoming):
            assert graph.only_edge(place) == (incoming[0] if len(incoming) == 1 else None)


def test_a_poll_costs_as_much_as_its_loop_is_long() -> None:
    def costs(steps: int) -> list[int]:
        body = "(set! x (^ (* x 3) i))" * steps
        text = f"(define x 1) (define i 0) (while (< i 9) {body} (set! i (+ i 1))) x"
        (found,) = lift(region(verify(ferryvm.compile(text)), "program")).bodies
        polls = [operation for operation in found.operations if operation.name == "poll"]
        assert set(poll_costs(found)) == set(polls)
        return list(poll_costs(found).values())

    assert costs(1) == [1]
    (long,), (longer,) = costs(100), costs(200)
    assert 3 <= long <= 12
    assert longer == 2 * long


def test_a_poll_after_a_fill_or_a_copy_reads_the_flag() -> None:
    for form in ("(array-fill! a i)", "(array-copy! a 1 a 0 8)"):
        text = f"(define a (make-array i64 9)) (define i 0) (while (< i 9) {form} (set! i (+ i 1)))"
        (found,) = lift(region(verify(ferryvm.compile(text)), "program")).bodies
        assert [*poll_costs(found).values()] == [POLL_BUDGET]


def test_every_poll_that_goes_back_has_a_cost() -> None:
    for body in bodies():
        costs = poll_costs(body)
        assert all(cost >= 1 for cost in costs.values())
        for block in body.blocks:
            if any(edge.is_back for edge in block.end.edges):
                assert any(operation in costs for operation in block.operations)
