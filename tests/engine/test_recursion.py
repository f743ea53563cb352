# SPDX-License-Identifier: Apache-2.0
"""Recursion in compiled code is as deep as the stack of the VM allows, on a host's stack that is
not."""

from __future__ import annotations

import threading

import pytest

import ferryvm
from ferryvm.isa import Trap

from .mixing import (
    entries,
    placements,
    policy,
    start,
    state,
)

MAIN = """
    .function main
        i64.const 1000000
        call {first}
        halt
"""

ENDS = """
        local.get n
        i64.eqz
        jump_if end
"""

COUNTING = """
    .function {name} (n i64) -> i64 {ends}
        local.get n
        i64.const 1
        i64.sub
        {call}
        i64.const 1
        i64.add
        return
"""

END = """
    :end
        i64.const 0
        return
"""

BY_PARITY = """
        local.get n
        i32.wrap_i64
        i32.const 1
        i32.and
        call_indirect (i64) -> i64
"""


def counting(name: str, call: str, ends: bool = True) -> str:
    """A function that counts down by another call; `ends`: where it has come to 0."""
    text = COUNTING.format(name=name, call=call, ends=ENDS if ends else "")
    return text + (END if ends else "")


DEEP = {
    "itself": MAIN.format(first="down") + counting("down", "call down"),
    "each other": (
        MAIN.format(first="even")
        + counting("even", "call odd")
        + counting("odd", "call even", ends=False)
    ),
    "through the table": (
        ".table down odd"
        + MAIN.format(first="down")
        + counting("down", BY_PARITY)
        + counting("odd", "call down")
    ),
}


@pytest.mark.rotate("text", "chosen", "count")
@pytest.mark.parametrize("count", [False, True], ids=["plain", "counting"])
@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("chosen", ["llvm", "hot"])
def test_a_recursion_may_be_a_million_deep(text: str, count: bool, chosen: str) -> None:
    program = ferryvm.assemble(text)
    execution = start(program, policy() if chosen == "hot" else chosen)
    expected = start(program, "threaded")
    assert execution.run(count=count).value == 1_000_000
    assert state(execution) == (expected.run(count=count), state(expected))[1]
    assert execution.instructions == expected.instructions
    assert sum(entries(p) for p in placements(execution)) > 10


def test_a_recursion_without_end_traps_in_the_state_that_the_interpreter_has() -> None:
    program = ferryvm.compile("(define (down n) (+ 1 (down (+ n 1)))) (down 0)")
    found = []
    for chosen in ("threaded", "llvm"):
        execution = start(program, chosen)
        with pytest.raises(ferryvm.TrapError) as caught:
            execution.run()
        assert caught.value.kind is Trap.STACK_OVERFLOW
        found.append(execution.machine.snapshot())
    assert found[0] == found[1]


def test_recursion_in_a_thread_with_a_small_stack_stays_within_it() -> None:
    execution = start(ferryvm.assemble(DEEP["itself"]), "llvm")
    found: list[int | float | None] = []
    usual = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=lambda: found.append(execution.run().value))
        thread.start()
    finally:
        threading.stack_size(usual)
    thread.join()
    assert found == [1_000_000]
