# SPDX-License-Identifier: Apache-2.0
"""What instructions and functions do, as it is read off the meanings."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Trap
from ferryvm.isa.effect import _OPERATIONS, Effect, effects, summary
from ferryvm.isa.emitter import Emitter, PureEmitter
from ferryvm.region.call import call_graph
from ferryvm.region.effect import Effects, function_effects
from ferryvm.region.fact import statics
from ferryvm.region.region import region
from ferryvm.testing.generate import generate
from ferryvm.verify import Verified, verify

from .reach import reached_pcs

_BOUND = {
    "frame_pointer",
    "function",
    "heap_capacity",
    "next_pc",
    "stack_limit",
    "stack_pointer",
    "static_count",
    "table_function",
    "table_size",
}
"""Operations of the emitter that read what no instruction changes inside a function."""


def of(mnemonic: str) -> set[str]:
    return {effect.name for effect in effects(BY_MNEMONIC[mnemonic])}


def assembled(text: str) -> Verified:
    return verify(ferryvm.assemble(text))


@pytest.mark.parametrize(
    ("mnemonic", "traps", "heap_bytes"),
    [
        ("i64.add", [], 0),
        ("i32.div_u", [Trap.INTEGER_DIVIDE_BY_ZERO], 0),
        ("i32.div_s", [Trap.INTEGER_DIVIDE_BY_ZERO, Trap.INTEGER_OVERFLOW], 0),
        ("i64.load16_s", [Trap.MEMORY_OUT_OF_BOUNDS], 2),
        ("f32.store", [Trap.MEMORY_OUT_OF_BOUNDS], 4),
    ],
)
def test_traps_and_heap_bytes_are_those_of_the_meaning(
    mnemonic: str, traps: list[Trap], heap_bytes: int
) -> None:
    found = summary(BY_MNEMONIC[mnemonic])
    assert (found.traps, found.heap_bytes) == (traps, heap_bytes)


def test_every_operation_of_the_emitter_is_pure_or_has_an_effect() -> None:
    pure = PureEmitter.__abstractmethods__ | _BOUND
    assert pure.isdisjoint(_OPERATIONS)
    assert Emitter.__abstractmethods__ == pure | set(_OPERATIONS)


@pytest.mark.parametrize(
    ("mnemonic", "expected"),
    [
        ("i64.add", set()),
        ("nop", set()),
        ("i32.div_s", {"TRAPS"}),
        ("local.get", {"READS_LOCAL"}),
        ("local.set", {"WRITES_LOCAL"}),
        ("static.set", {"WRITES_STATIC"}),
        ("static.load", {"READS_STATIC", "TRAPS"}),
        ("f32.load", {"READS_HEAP", "READS_HEAP_POINTER", "TRAPS"}),
        ("i64.store8", {"WRITES_HEAP", "READS_HEAP_POINTER", "TRAPS"}),
        ("heap.size", {"READS_HEAP_POINTER"}),
        ("heap.alloc", {"READS_HEAP_POINTER", "ALLOCATES", "GROWS", "TRAPS"}),
        ("array.index", {"TRAPS"}),
        ("host", {"CALLS_HOST"}),
        ("halt", {"HALTS"}),
        ("trap", {"TRAPS"}),
        ("return", {"RETURNS", "READS_STACK", "WRITES_STACK"}),
        ("call", {"CALLS", "TRAPS", "WRITES_STACK"}),
    ],
)
def test_effects_are_those_of_the_meaning(mnemonic: str, expected: set[str]) -> None:
    assert of(mnemonic) == expected


def test_effects_agree_with_the_flow_of_every_instruction() -> None:
    flows = {
        Effect.JUMPS: {Flow.JUMP, Flow.BRANCH, Flow.TABLE},
        Effect.CALLS: {Flow.CALL, Flow.CALL_INDIRECT},
        Effect.RETURNS: {Flow.RETURN},
        Effect.CALLS_HOST: {Flow.HOST},
    }
    for row in INSTRUCTIONS:
        for effect, allowed in flows.items():
            assert (effect in effects(row)) == (row.flow in allowed), row.mnemonic


def pair(read: set[int], written: set[int]) -> tuple[frozenset[int], frozenset[int]]:
    return frozenset(read), frozenset(written)


CHAIN = """
.static a i64
.static b i64
.static c i64
.host out (i64)
.function main
    call reader
    call writer
    halt
.function reader
    static.get a
    drop
    return
.function writer
    i64.const 1
    static.set b
    call deepest
    return
.function deepest
    i64.const 8
    heap.alloc
    drop
    static.get c
    host out
    return
"""


def test_function_effects_cover_what_it_calls() -> None:
    verified = assembled(CHAIN)
    main, reader, writer, deepest = (function_effects(verified, number) for number in range(4))
    assert (main.statics_read, main.statics_written) == pair({0, 2}, {1})
    assert (reader.statics_read, reader.statics_written) == pair({0}, set())
    assert (writer.statics_read, writer.statics_written) == pair({2}, {1})
    assert [each.allocates for each in (main, reader, writer, deepest)] == [1, 0, 1, 1]
    assert [each.calls_host for each in (main, reader, writer, deepest)] == [1, 0, 1, 1]
    assert (main.reads_heap, main.writes_heap) == (False, False)
    assert deepest.reads_heap_pointer


def test_functions_of_a_recursion_do_what_all_of_them_do() -> None:
    text = """
    .static a i64
    .static b i64
    .static c i64
    .function main
        call even
        halt
    .function even
        static.get a
        drop
        call odd
        return
    .function odd
        static.get b
        drop
        call even
        call leaf
        return
    .function leaf
        i64.const 0
        static.set c
        return
    """
    verified = assembled(text)
    assert function_effects(verified, 1) == function_effects(verified, 2)
    assert function_effects(verified, 1).statics_read == {0, 1}
    assert function_effects(verified, 1).statics_written == {2}
    assert function_effects(verified, 3).statics_read == set()
    assert call_graph(verified).recursive == {1, 2}
    assert call_graph(verified).components == ((3,), (1, 2), (0,))


def test_functions_are_long_that_make_a_hundred_calls_but_for_those_of_long_ones() -> None:
    twice = "".join(f".function f{n}\ncall f{n + 1}\ncall f{n + 1}\nreturn\n" for n in range(10))
    text = f".function main\ncall f0\nhalt\n{twice}.function f10\nreturn\n"
    # f9 makes 2 calls, f8 makes 6, then 14, 30, 62, and f4 126.
    assert call_graph(assembled(text)).long == {5}


def test_circle_of_three_functions_is_one_recursion() -> None:
    calls = "".join(f".function f{n}\ncall f{n % 3 + 1}\nreturn\n" for n in (1, 2, 3))
    found = call_graph(assembled(".function main\ncall f2\nhalt\n" + calls))
    assert found.components == ((1, 2, 3), (0,))
    assert found.recursive == {1, 2, 3}


def test_computed_number_is_all_statics() -> None:
    text = ".static a i64\n.static b i64\n.function main\ni64.const 0\nstatic.load\n"
    verified = assembled(text + "static.set a\nhalt\n")
    assert statics(region(verified, "main")) == pair({0, 1}, {0})
    found = function_effects(verified, 0)
    assert (found.all_read, found.all_written) == (2, 0)


def test_statics_of_a_loop_are_those_of_the_loop_and_its_callees() -> None:
    text = """
    .static a i32
    .static b i64
    .static c i64
    .function main
        i64.const 1
        static.set b
    :again
        call f
        static.get a
        jump_if again
        halt
    .function f
        i64.const 1
        static.set c
        return
    """
    assert statics(region(assembled(text), "main/loop.1")) == pair({0}, {2})


def test_indirect_calls_do_what_any_function_of_the_signature_does() -> None:
    text = """
    .static a i64
    .table f g
    .function main
        i32.const 0
        call_indirect ()
        halt
    .function f
        return
    .function g
        static.get a
        drop
        return
    """
    assert function_effects(assembled(text), 0).statics_read == {0}


def test_effects_join() -> None:
    left = Effects(frozenset({Effect.TRAPS}), frozenset({1}), frozenset(), 0, 4)
    right = Effects(frozenset({Effect.HALTS}), frozenset({2}), frozenset({3}), 0, 0)
    both = left | right
    assert both.kinds == {Effect.TRAPS, Effect.HALTS}
    assert both.statics_read == {1, 2}
    assert both.statics_written == {0, 1, 2, 3}
    assert left | Effects() == left


@pytest.mark.parametrize("number", range(20))
def test_function_effects_of_random_programs_are_the_least_that_close(number: int) -> None:
    """Each function's are its own, joined with those of what it calls, to a fixpoint."""
    verified = verify(generate(11, number))
    calls = call_graph(verified)
    for function in range(len(verified.program.functions)):
        is_recursive = function in calls.reached(calls.direct[function])
        assert (function in calls.recursive) == is_recursive
        expected = Effects()
        for member in calls.reached([function]):
            for pc in reached_pcs(verified, member):
                row = INSTRUCTIONS[verified.program.code.opcodes[pc]]
                immediate = verified.program.code.immediates[pc]
                read = {immediate} if row.mnemonic == "static.get" else set()
                written = {immediate} if row.mnemonic == "static.set" else set()
                expected |= Effects(effects(row), frozenset(read), frozenset(written))
        found = function_effects(verified, function)
        assert found.kinds == expected.kinds
        assert found.numbered_reads == expected.numbered_reads
        assert found.numbered_writes == expected.numbered_writes
