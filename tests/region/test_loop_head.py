# SPDX-License-Identifier: Apache-2.0
"""Where loops may begin, as one look at the code says it."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.region.graph import graph
from ferryvm.region.loop_head import likely_loop_heads, scope_marks
from ferryvm.region.scope import scope_entries
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import Verified, verify

from ..tier import sample


def assembled(text: str) -> Verified:
    return verify(ferryvm.assemble(text))


def test_a_jump_back_goes_to_the_head_of_a_loop() -> None:
    found = verify(ferryvm.compile("(define i 0) (while (< i 9) (set! i (+ i 1))) i"))
    assert likely_loop_heads(found) == list(graph(found, 0).heads)


def test_a_jump_to_itself_is_one_back_and_one_forward_is_none() -> None:
    assert likely_loop_heads(assembled(".function main\njump on\n:on jump on\n")) == [1]
    assert likely_loop_heads(assembled(".function main\njump on\n:on halt\n")) == []


def test_a_loop_with_its_test_at_the_end_begins_there() -> None:
    text = ".function main\njump test\n:body nop\n:test i32.const 0\njump_if body\nhalt\n"
    found = assembled(text)
    assert likely_loop_heads(found) == list(graph(found, 0).heads) == [2]


def test_a_jump_to_elsewhere_in_front_is_no_jump_over_the_body() -> None:
    text = ".function main\ni32.const 0\njump_if in\njump out\n:in jump in\n:out halt\n"
    assert likely_loop_heads(assembled(text)) == [3]


def test_code_that_cannot_be_reached_has_no_places() -> None:
    found = assembled(".function main\nhalt\n:a enter_jit\njump a\n")
    assert (likely_loop_heads(found), scope_marks(found)) == ([], [])


def test_a_table_can_go_back() -> None:
    text = ".function main\n:a i32.const 0\njump_table a b\n:b halt\n"
    assert likely_loop_heads(assembled(text)) == [0]


@pytest.mark.parametrize("count", sample([25, 150], 1))
@pytest.mark.parametrize("kind", [ProgramKind.BYTECODE, ProgramKind.SKIFF])
def test_every_loop_has_one_of_them_in_it(kind: ProgramKind, count: int) -> None:
    loops, heads = 0, 0
    for number in range(count):
        verified = verify(generate(20261122, number, kind))
        found = likely_loop_heads(verified)
        for function in range(len(verified.program.functions)):
            own = graph(verified, function)
            for loop in own.loops:
                loops += 1
                heads += loop.head in found
                assert any(
                    first <= pc <= own.blocks[first].last for pc in found for first in loop.blocks
                )
        marks = [scope_entries(verified, f) for f in range(len(verified.program.functions))]
        entries = {pc for each in marks for pc in each}
        assert entries <= {*scope_marks(verified)}  # which has those of handlers never entered, too
    assert loops > 20
    assert heads > 0.9 * loops
