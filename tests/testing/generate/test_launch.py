# SPDX-License-Identifier: Apache-2.0
"""Random launches: items that are independent by construction, and end in all sorts of ways."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Immediate
from ferryvm.program import Program
from ferryvm.testing.generate import Corner, Weights, generate

COUNT = 100
WEIGHTS = Path(__file__).parent.parent.parent / "fuzz" / "launches.toml"
_ITEM, _CALL = BY_MNEMONIC["launch.item"].opcode, BY_MNEMONIC["call"].opcode
_INDIRECT = BY_MNEMONIC["call_indirect"].opcode
_LITERAL = BY_MNEMONIC["i32.const"].opcode
_SHARED = {"static.set", "static.store", "heap.alloc"}
"""Instructions by which two items would write the same."""


@functools.cache
def programs() -> tuple[Program, ...]:
    weights = Weights.load(WEIGHTS)
    return tuple(generate(10, number, weights=weights) for number in range(COUNT))


def bodies(program: Program) -> list[list[tuple[int, int]]]:
    """Opcodes and immediates by function."""
    code = list(zip(program.code.opcodes.tolist(), program.code.immediates.tolist(), strict=True))
    entries = [function.entry for function in program.functions]
    ends = dict(zip(sorted(entries), [*sorted(entries)[1:], len(code)], strict=True))
    return [code[entry : ends[entry]] for entry in entries]


def launched(program: Program) -> set[int]:
    """The functions of items."""
    return {n for body in bodies(program) for opcode, n in body if opcode == _ITEM}


def reached(program: Program, first: set[int]) -> Iterator[tuple[int, str]]:
    """The number of each function that calls from these reach, and its mnemonics."""
    every, found, left = bodies(program), set(first), sorted(first)
    while left:
        number = left.pop()
        for opcode, immediate in every[number]:
            yield number, INSTRUCTIONS[opcode].mnemonic
            called = {immediate} if opcode == _CALL else set()
            if opcode == _INDIRECT:  # of a place that stands in the code
                places = {place for other, place in every[number] if other == _LITERAL}
                called = {
                    f
                    for place, f in enumerate(program.table)
                    if place in places and program.functions[f].signature == immediate
                }
            left += called - found
            found |= called


def test_items_write_nothing_that_others_read_or_write() -> None:
    found: Counter[str] = Counter()
    for program in programs():
        items = launched(program)
        for number, mnemonic in reached(program, items):
            found[mnemonic] += 1
            is_store = mnemonic.partition(".")[2].startswith("store")
            assert mnemonic not in _SHARED, program
            # A word of the heap is an item's own only where the launch has given its address.
            assert not is_store or number in items, program
    assert found["struct.get"]
    wanted = {"static.get", "call", "host", "throw", "launch.item", "array.new_i32"}
    assert not wanted - set(found)
    updates = {m.rpartition("_")[0] for m in found if m.startswith("array.atomic_")}
    assert updates == {f"array.atomic_{name}" for name in ("add", "min", "max", "and", "or")}


def test_launches_are_in_main_in_functions_and_in_items() -> None:
    makers: Counter[str] = Counter()
    for program in programs():
        items = launched(program)
        for number, body in enumerate(bodies(program)):
            if any(INSTRUCTIONS[opcode].immediate is Immediate.ITEM for opcode, _ in body):
                makers["main" if number == 0 else "item" if number in items else "function"] += 1
    assert min(makers[kind] for kind in ("main", "item", "function")) >= 10


def test_launches_count_as_a_corner() -> None:
    occurred: Counter[Corner] = Counter()
    weights = Weights.load(WEIGHTS)
    for number in range(8):
        generate(6, number, weights=weights, occurred=occurred)
    assert occurred[Corner.LAUNCH] > 5
