# SPDX-License-Identifier: Apache-2.0
"""The most instructions of a call, where the code has a limit that can be seen: no loop, recursion,
host call, or instruction that works through an array."""

from __future__ import annotations

import bisect

from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Immediate
from ferryvm.program import Program

_TARGETS = frozenset(row.opcode for row in INSTRUCTIONS if row.immediate is Immediate.TARGET)
_CALL = BY_MNEMONIC["call"].opcode
_UNLIMITED_NAMES = (
    *("heap.alloc", "jump_table", "call_indirect", "host", "launch."),
    *("array.new", "array.fill", "array.copy"),
)
_UNLIMITED = frozenset(
    row.opcode for row in INSTRUCTIONS if row.mnemonic.startswith(_UNLIMITED_NAMES)
)


def most_instructions(program: Program, function: int, limit: int) -> int | None:
    """The most instructions that a call of a function completes; None if they may be more than
    `limit`."""
    code = program.code
    opcodes, immediates = code.opcodes, code.immediates
    entries = sorted(each.entry for each in program.functions)
    known: dict[int, int | None] = {}

    def most(number: int) -> int | None:
        if number not in known:
            known[number] = None  # for a call from within
            known[number] = counted(program.functions[number].entry)
        return known[number]

    def counted(entry: int) -> int | None:
        after = bisect.bisect_right(entries, entry)
        end = entries[after] if after < len(entries) else len(opcodes)
        total = end - entry
        for pc in range(entry, end):
            opcode = opcodes[pc]
            if total > limit or opcode in _UNLIMITED:
                return None
            if opcode in _TARGETS and immediates[pc] <= pc:
                return None
            if opcode == _CALL:
                called = most(immediates[pc])
                if called is None:
                    return None
                total += called
        return total if total <= limit else None

    return most(function)
