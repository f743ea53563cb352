# SPDX-License-Identifier: Apache-2.0
"""Blocks, dominators and loops of functions written for the purpose, and of random ones."""

from __future__ import annotations

import gc
import itertools
import sys
import weakref
from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.region.fact import facts
from ferryvm.region.graph import Block, Graph, graph
from ferryvm.region.region import candidates, regions
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import Verified, verify

from ..tier import together
from .reach import reached_pcs

MAIN = ".function main\n"
BRANCH = "i32.const 1\njump_if {}\n"


def assembled(text: str) -> Verified:
    return verify(ferryvm.assemble(text))


def graph_of(text: str) -> Graph:
    """The graph of main, the body of which is given."""
    return graph(assembled(MAIN + text), 0)


def branches(*labels: str) -> str:
    """Lines of `label>target`: a label and a branch to a target; no target, no branch."""
    lines = []
    for line in labels:
        label, _, target = line.partition(">")
        lines.append(f":{label} nop\n" + (BRANCH.format(target) if target else ""))
    return "".join(lines)


def test_block_ends_at_its_branch_and_before_a_target() -> None:
    found = graph_of("i32.const 0\njump_unless over\nnop\nnop\n:over nop\nhalt\n")
    assert found.blocks == {0: Block(0, 1, (2, 4)), 2: Block(2, 3, (4,)), 4: Block(4, 5, ())}
    assert list(found.blocks) == [0, 2, 4]
    assert found.predecessors == {0: (), 2: (0,), 4: (0, 2)}
    assert found.immediate_dominators == {2: 0, 4: 0}


def test_branch_to_the_next_instruction_keeps_both_edges() -> None:
    found = graph_of("i32.const 0\njump_if next\n:next halt\n")
    assert found.blocks[0].successors == (2, 2)
    assert found.predecessors[2] == (0,)


def test_calls_and_host_calls_end_no_block() -> None:
    text = ".host print_i64 (i64)\n.function main\ncall f\ni64.const 1\nhost print_i64\nhalt\n"
    verified = assembled(text + ".function f\nreturn\n")
    assert graph(verified, 0).blocks == {0: Block(0, 3, ())}
    assert graph(verified, 1).blocks == {4: Block(4, 4, ())}


def test_jumps_of_a_table_are_blocks() -> None:
    found = graph_of("i32.const 0\njump_table a b a\n:a halt\n:b trap\n")
    assert found.blocks[0] == Block(0, 1, (2, 3, 4))
    assert [found.blocks[pc] for pc in (2, 3, 4)] == [
        Block(2, 2, (5,)),
        Block(3, 3, (6,)),
        Block(4, 4, (5,)),
    ]
    assert found.blocks[6].successors == ()
    assert set(found.predecessors[5]) == {2, 4}


def test_unreachable_code_is_in_no_block() -> None:
    found = graph_of("jump on\nnop\nnop\n:on halt\n")
    assert list(found.blocks) == [0, 3]
    assert found.block(3) == Block(3, 3, ())
    with pytest.raises(ValueError, match="pc 2 is not in function 'main', or cannot be reached"):
        found.block(2)


def test_block_comes_before_the_target_of_the_branch_in_front_of_it() -> None:
    found = graph_of("nop\njump on\n:on i32.const 1\njump_if far\nnop\nhalt\n:far halt\n")
    assert list(found.blocks) == [0, 2, 4, 6]


def test_function_may_stand_before_its_entry() -> None:
    text = MAIN + "jump in\n:out halt\n:in nop\njump out\n"
    found = graph(assembled(text), 0)
    assert list(found.blocks) == [0, 2, 1]


def test_loop_head_dominates_its_blocks() -> None:
    found = graph_of(branches("a", "head>out", "body", "tail>head", "out") + "halt\n")
    (loop,) = found.loops
    assert (loop.head, loop.depth, loop.parent, loop.name) == (1, 1, None, "main/loop.1")
    assert loop.blocks == {1, 4}
    assert loop.latches == (4,)
    assert found.dominates(loop.head, 4)
    assert not found.dominates(4, loop.head)
    assert found.loop(8) is None
    assert found.heads == {1: loop}


def test_entry_can_be_a_loop_head() -> None:
    found = graph_of(branches("top>top", "second>second") + "halt\n")
    assert [(loop.head, loop.name) for loop in found.loops] == [
        (0, "main/loop.1"),
        (3, "main/loop.2"),
    ]
    assert found.loops[0].latches == (0,)


def test_loops_with_one_head_are_one_loop() -> None:
    (loop,) = graph_of(branches("head", "a>head", "b>head") + "halt\n").loops
    assert loop.latches == (0, 4)
    assert loop.blocks == {0, 4}


def test_nested_loops_are_numbered_by_head_inside_each_other() -> None:
    text = branches("a", "b", "b2>b", "c", "c2>c", "a2>a", "d>d")
    found = graph_of(text + "halt\n")
    names = [(loop.head, loop.depth, loop.loops, loop.name) for loop in found.loops]
    assert names == [
        (0, 1, 3, "main/loop.1"),
        (12, 1, 1, "main/loop.2"),
        (1, 2, 1, "main/loop.1.1"),
        (5, 2, 1, "main/loop.1.2"),
    ]
    outer, _, first, second = found.loops
    assert first.parent is second.parent is outer
    assert first.blocks < outer.blocks
    assert found.loop(first.head) is first
    assert found.loop(9) is outer


def test_cycle_with_two_entries_is_listed_and_is_no_loop() -> None:
    found = graph_of(BRANCH.format("b") + branches("a>out", "b>a", "out") + "halt\n")
    assert found.irreducible
    assert found.loops == ()
    ((tail, head),) = found.irreducible_edges
    assert not found.dominates(head, tail)


def test_irreducible_cycle_inside_a_loop_leaves_the_loop() -> None:
    text = branches("head") + BRANCH.format("b") + branches("a", "b>a", "end>head") + "halt\n"
    found = graph_of(text)
    assert found.irreducible
    (loop,) = found.loops
    assert loop.head == 0
    assert loop.blocks == set(found.blocks) - {max(found.blocks)}


def test_graph_is_made_once_and_does_not_keep_its_program() -> None:
    verified = assembled(MAIN + branches("a>a") + "halt\n")
    kept = graph(verified, 0)
    assert graph(verified, 0) is kept
    for region in regions(verified):
        facts(region)
    candidates(verified, 0)
    gone = weakref.ref(verified)
    del verified, region
    gc.collect()
    assert gone() is None
    assert kept.loops[0].name == "main/loop.1"


def _edges(found: Graph) -> dict[int, set[int]]:
    return {first: set(block.successors) for first, block in found.blocks.items()}


def _reached(edges: dict[int, set[int]], start: int, without: int | None) -> set[int]:
    """What can be reached from a block if another one is not there."""
    reached: set[int] = set()
    waiting = [start] if start != without else []
    while waiting:
        at = waiting.pop()
        if at not in reached:
            reached.add(at)
            waiting += edges[at] - {without}
    return reached


def _check_by_definition(found: Graph) -> None:
    edges = _edges(found)
    assert _reached(edges, found.entry, None) == set(found.blocks)
    dominated = {a: set(found.blocks) - _reached(edges, found.entry, a) for a in found.blocks}
    for a, b in itertools.product(found.blocks, repeat=2):
        assert found.dominates(a, b) == (b in dominated[a])
    for block, above in found.immediate_dominators.items():
        strict = {a for a in found.blocks if block in dominated[a]} - {block}
        assert above in strict
        assert all(above in dominated[a] for a in strict)
    back = {(a, b) for a in edges for b in edges[a] if a in dominated[b]}
    assert {(a, loop.head) for loop in found.loops for a in loop.latches} == back
    for loop in found.loops:
        backward: dict[int, set[int]] = {first: set() for first in edges}
        for first, successors in edges.items():
            for to in successors - {loop.head}:
                backward[to].add(first)
        members = {loop.head}.union(*(_reached(backward, tail, None) for tail in loop.latches))
        assert loop.blocks == members
        around = [other for other in found.loops if loop.blocks < other.blocks]
        assert loop.depth == len(around) + 1
        assert loop.parent is min(around, key=lambda other: len(other.blocks), default=None)
        assert loop.loops == sum(other.blocks <= loop.blocks for other in found.loops)
    for first in found.blocks:
        around = [loop for loop in found.loops if first in loop.blocks]
        assert found.loop(first) is min(around, key=lambda loop: len(loop.blocks), default=None)
    without_back = {a: {b for b in edges[a] if (a, b) not in back} for a in edges}
    has_cycle = any(
        a in set().union(*(_reached(without_back, b, None) for b in without_back[a])) for a in edges
    )
    assert found.irreducible == has_cycle
    places = {first: place for place, first in enumerate(found.blocks)}
    for a in edges:
        for b in edges[a]:
            assert places[a] < places[b] or (a, b) in back or (a, b) in found.irreducible_edges


@together("number", range(40))
def test_random_program_agrees_with_the_definitions(number: int) -> None:
    verified = verify(
        generate(7, number, ProgramKind.SKIFF if number % 4 == 0 else ProgramKind.BYTECODE)
    )
    for function in range(len(verified.program.functions)):
        found = graph(verified, function)
        if len(found.blocks) <= 120:
            _check_by_definition(found)
        inside = [
            pc for block in found.blocks.values() for pc in range(block.first, block.last + 1)
        ]
        assert sorted(inside) == reached_pcs(verified, function)
        assert all(verified.owner(pc) == function for pc in inside)


@together("number", range(60))
def test_random_branches_agree_with_the_definitions(number: int) -> None:
    """Random programs have few irreducible cycles; branches that go anywhere have many."""
    state, count = number * 2654435761 + 1, 4 + number % 14
    lines = []
    for index in range(count):
        state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        lines.append(f"n{index}>n{(state >> 33) % count}")
    _check_by_definition(graph_of(branches(*lines) + "halt\n"))


def _one_exit(count: int) -> str:
    return BRANCH.format("out") * count + ":out halt\n"


def _one_head(count: int) -> str:
    return branches("top") + BRANCH.format("top") * count + "halt\n"


def _two_chains(count: int) -> str:
    chain = BRANCH.format("out") * count
    return BRANCH.format("second") + chain + "jump out\n:second nop\n" + chain + ":out halt\n"


def _nest(count: int) -> str:
    heads = branches(*(f"h{number}" for number in range(count)))
    tails = "".join(BRANCH.format(f"h{number}") for number in reversed(range(count)))
    return heads + tails + "halt\n"


@pytest.mark.parametrize("shape", [_one_exit, _one_head, _two_chains, _nest])
def test_twice_the_function_takes_twice_the_steps(shape: Callable[[int], str]) -> None:
    small, large = (_steps(assembled(MAIN + shape(count))) for count in (300, 600))
    assert 300 < small < large <= 2.1 * small


def _steps(verified: Verified) -> int:
    """Calls made while the graph is built, those of built-in functions too."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        Graph(verified, 0)
    finally:
        sys.setprofile(None)
    return count
