# SPDX-License-Identifier: Apache-2.0
"""Facts of regions, counted by hand."""

from __future__ import annotations

import dataclasses

import pytest

import ferryvm
from ferryvm.region.fact import Facts, facts
from ferryvm.region.region import region, regions
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import Verified, verify

from ..tier import sample

SUM = """
.static total f64
.host print_f64 (f64)
.function main
.local i i64
.local j i64
:outer                      ; 2
    i64.const 8             ; integer
    drop
:inner                      ; 5: three instructions, one of them a load
    local.get i
    f64.load                ; float, memory
    static.set total
    local.get j
    i32.wrap_i64            ; integer
    jump_if inner           ; control
    local.get i
    i32.wrap_i64
    jump_if outer
    static.get total
    host print_f64
    halt
"""


def assembled(text: str) -> Verified:
    return verify(ferryvm.assemble(text))


def of(text: str, name: str) -> Facts:
    return facts(region(assembled(text), name))


def test_facts_of_an_inner_loop() -> None:
    assert facts(region(assembled(SUM), "main/loop.1.1"), hotness=70) == Facts(
        name="main/loop.1.1",
        kind="loop",
        function="main",
        marked=False,
        instructions=6,
        total_instructions=6,
        loops=1,
        depth=1,
        calls=0,
        recursive=False,
        indirect_calls=False,
        host_calls=0,
        launches=0,
        allocates=False,
        reads_heap=True,
        writes_heap=False,
        statics_read=0,
        statics_written=1,
        floats=1 / 6,
        integers=1 / 6,
        memory=1 / 6,
        control=1 / 6,
        work=6,
        hotness=70,
        mix={"control": 1, "conversion": 1, "heap": 1, "variable": 3},
    )


def test_work_counts_ten_rounds_of_each_loop_inside() -> None:
    nest, main = of(SUM, "main/nest.1"), of(SUM, "main")
    assert (nest.instructions, nest.loops, nest.depth, nest.work) == (11, 2, 2, 5 + 60)
    assert (main.instructions, main.loops, main.depth, main.work) == (14, 2, 2, 3 + 50 + 600)
    assert (main.host_calls, main.statics_read, main.statics_written) == (1, 1, 1)


def test_loops_past_the_ninth_do_not_count_for_work() -> None:
    count = 12
    heads = "".join(f":h{number} nop\n" for number in range(count))
    tails = "".join(f"i32.const 1\njump_if h{number}\n" for number in reversed(range(count)))
    found = of(".function main\n" + heads + tails + "halt\n", "main")
    assert (found.loops, found.depth) == (count, count)
    levels = [10 ** min(level, 9) for level in range(1, count + 1)]
    assert found.work == 3 * sum(levels) + 1


CALLS = """
.table f
.host print_i64 (i64)
.function main
    call f
    i32.const 0
    call_indirect ()
    i64.const 5
    call down
    halt
.function f
    i64.const 8
    heap.alloc
    i64.const 5
    i64.store
    i64.const 0
    i64.load
    host print_i64
    return
.function down (n i64)
    local.get n
    i64.eqz
    jump_if done
    local.get n
    i64.const 1
    i64.sub
    call down
:done
    return
"""


def test_counts_with_callees_take_each_function_once() -> None:
    main = of(CALLS, "main")
    assert (main.instructions, main.total_instructions, main.calls) == (6, 6 + 8 + 8, 3)
    assert (main.indirect_calls, main.recursive, main.host_calls) == (True, True, 1)
    assert (main.allocates, main.reads_heap, main.writes_heap) == (True, True, True)
    assert main.memory == 0


def test_function_that_calls_itself_is_recursive_and_counts_once() -> None:
    down = of(CALLS, "down")
    assert (down.recursive, down.calls, down.total_instructions) == (True, 1, 8)
    f = of(CALLS, "f")
    assert (f.recursive, f.calls, f.total_instructions, f.indirect_calls) == (False, 0, 8, False)


def test_program_has_the_code_of_all_that_runs() -> None:
    whole = of(CALLS, "program")
    assert (whole.kind, whole.function, whole.name) == ("program", "main", "program")
    assert whole.instructions == whole.total_instructions == 22
    assert whole.calls == 4
    assert whole.work == 22


def test_loop_of_a_function_that_it_calls_counts_the_function_once() -> None:
    text = """
    .function main
        call f
        halt
    .function f
        nop
        nop
    :again
        call f
        i32.const 0
        jump_if again
        return
    """
    loop = of(text, "f/loop.1")
    assert (loop.instructions, loop.total_instructions, loop.recursive) == (3, 6, True)


def test_scope_has_the_loops_that_are_all_inside() -> None:
    text = """
    .function main
    :around
        enter_jit
    :inside
        i32.const 0
        jump_if inside
        leave_jit
        i32.const 0
        jump_if around
        halt
    """
    scope = of(text, "main/scope.1")
    assert (scope.kind, scope.marked, scope.instructions) == ("scope", True, 3)
    assert (scope.loops, scope.depth, scope.work) == (1, 1, 1 + 20)


def test_scope_that_is_entered_again_from_inside_has_that_loop() -> None:
    text = ".function main\n:top enter_jit\ni32.const 1\njump_if top\nleave_jit\nhalt\n"
    scope = of(text, "main/scope.1")
    assert (scope.loops, scope.depth, scope.work) == (1, 1, 30)


def test_arithmetic_on_floats_is_seen_in_skiff() -> None:
    verified = verify(ferryvm.compile("(define x 1.5) (while (< x 100.0) (set! x (* x x))) x"))
    loop = facts(region(verified, "main/loop.1"))
    assert loop.floats > 0.3
    assert loop.integers == 0
    assert loop.mix["numeric"] == 2


@pytest.mark.parametrize("number", sample(range(30), 9))
def test_facts_of_random_programs_agree_with_each_other(number: int) -> None:
    verified = verify(
        generate(5, number, ProgramKind.SKIFF if number % 3 == 0 else ProgramKind.BYTECODE)
    )
    for each in regions(verified):
        found = facts(each)
        assert found.instructions == len(each.pcs)
        mixed = found.total_instructions if each.kind.value == "launch" else found.instructions
        assert sum(found.mix.values()) == mixed
        assert found.instructions <= found.total_instructions <= len(verified.program.code)
        assert found.instructions <= found.work
        assert (found.depth == 0) == (found.loops == 0)
        assert found.depth <= found.loops
        assert found.floats + found.integers + found.control <= 1
        assert not found.recursive or found.calls
        assert all(value is not None for value in dataclasses.astuple(found))
