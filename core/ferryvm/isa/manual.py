# SPDX-License-Identifier: Apache-2.0
"""The manual of the instruction set, docs/isa.md, generated from the table and its meanings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ferryvm.isa.reference import meaning
from ferryvm.isa.table import INSTRUCTIONS, Immediate, Instruction

CHAPTERS = {
    "variable": "Constants, locals, statics, operand stack",
    "numeric": "Arithmetic and comparison",
    "mathematical": "Mathematical functions",
    "conversion": "Conversions",
    "heap": "Heap",
    "control": "Control",
    "cast": "References of any type",
    "struct": "Structs",
    "array": "Arrays",
    "launch": "Launches",
    "atomic": "Atomic updates of elements",
    "checked": "Checked arithmetic, and division that rounds down",
}
"""Titles by chapter of the instruction table, in the order of the reference."""


_HOW_TO_READ = """\
## How to read a meaning

Its lines are done one after another, and each sees what those above it have changed. A value that
is needed from before a change is named before it: `old_hp = hp`.

| notation | meaning |
|---|---|
| `a`, `b`, `c` | the operands of the stack effect, deepest first; they are off the stack already |
| `push x` | put a value on the operand stack, after all other lines |
| `immediate` | the instruction's constant; a label or a function as its number |
| `+`, `-`, `*`, `<<` on integers | modulo 2^32 or 2^64, after the type |
| `<s`, `/s`, `%s`, `>>s` | signed; with `u` unsigned |
| `0x80000000` | an integer's bit pattern |
| `-2147483648.0`, `0x1.8p+3` | a float of the operand's type, written exactly |
| `nan` | the canonical NaN, `0x7fc00000` or `0x7ff8000000000000` |
| `(p ? x : y)` | `x` if `p` holds, else `y` |
| `low32(x)`, `zero_extend(x)`, `sign_extend(x)` | i64 to i32, i32 to i64 |
| `signed_i32(x)`, `unsigned_i64(x)` and so on | a float toward zero, as an integer; it fits |
| `f32_of_signed(x)`, `f64_of_unsigned(x)` and so on | an integer to the nearest float, ties to even |
| `bits_as_f32(x)` and so on | the same bits as another type |
| `f32(x)`, `f64(x)` | a float as the other type, to nearest, ties to even |
| `+`, `-`, `*`, `/`, `sqrt(x)` on floats | IEEE 754, to nearest, ties to even |
| `fma(x, y, z)` | `x * y + z` of floats, rounded once (IEEE 754, fusedMultiplyAdd) |
| `exp(x)`, `log(x)` and so on | the [mathematical function](math.md), defined in \
`core/ferryvm/isa/mathematics` |
| `nearest(x)` | the nearest integral value, ties to even |
| `trap KIND if p` | leave with status TRAP |
| `grow the heap to n if p` | leave with status GROW and `wanted` n, also past `heap_limit`; \
the instruction will be done anew |
| `halt`, `leave for host import n` | leave with status HALT, HOST |
| `heap32[x]` | 32 bits of the heap from byte `x` up, little-endian; read as an i64 extended by \
zeros, written from the low bits |
| `local[n]`, `static[n]` | words: a 32-bit value stands in the low half, the high half is zero |
| `object64[x]`, `elements16(p)[x]` | bytes of the [object space](decisions/2026-11-25-references.md) \
from `x` up; of the elements at place `p` |
| `elements64(p)[x] = y, in one step` | no other access comes between what the line reads and what \
it changes |
| `min_s32(x, y)`, `max_u64(x, y)` and so on | the smaller or larger one of the low bits, signed or \
unsigned |
| `types[t][n]` | word `n` of the type row of type number `t` |
| `allocate n bytes for type t if p` | leave with status ALLOCATE, `wanted` n, `wanted_type` t; the \
instruction will be done anew |
| `continue the launch if p` | leave with status LAUNCH; the instruction will be done anew, with the \
next piece of the record |
| `pop n words` | take n more words off the operand stack; `sp` stays as it was before |
| `object_top`, `object_end`, `prepared`, `prepared_bytes` | as in the \
[control block](architecture.md#control-block) |
| `hp`, `heap_capacity`, `static_count`, `table_size` | as in the \
[control block](architecture.md#control-block) |
| `entry(f)`, `parameters(f)`, `locals(f)`, `frame(f)`, `signature(f)` | fields of a function's \
[descriptor](architecture.md#control-block) |
| `table[n]` | an entry of the function table: a function's number |
| `go to n` | the pc to go on at; without it `pc + 1` |
"""

_FRAMES = re.compile(r"\b(sp|fp|stack_limit)\b")
_UNITS = (
    "`sp`, `fp`, `stack_limit` and places in `stack[...]` are bytes from the stack's start here; "
    "in the control block `sp` and `fp` are words. `sp` is past the topmost word of the operand "
    "stack, from which only `a`, if there is one, has been taken."
)


def markdown() -> str:
    """The whole page."""
    return "\n".join(_pages()) + "\n"


def _pages() -> Iterator[str]:
    yield "# The instruction set"
    yield ""
    yield "<!-- Generated from the instruction table by `ferry isa --markdown`; do not edit. -->"
    yield ""
    yield f"{len(INSTRUCTIONS)} instructions. A stack effect `( before -- after )` lists operands"
    yield "deepest first; `t` and `u` stand for any type, the same letter for the same type. A trap"
    yield "leaves the state as it was before the instruction."
    yield ""
    yield from _HOW_TO_READ.splitlines()
    for chapter, title in CHAPTERS.items():
        yield ""
        yield f"## {title}"
        for row in INSTRUCTIONS:
            if row.chapter == chapter:
                yield from _entry(row)


def _entry(row: Instruction) -> Iterator[str]:
    immediate = "" if row.immediate is Immediate.NONE else f" *{row.immediate.value}*"
    yield ""
    yield f"### `{row.mnemonic}`{immediate}"
    yield ""
    yield f"`{row.effect}` · opcode {row.opcode} · {row.summary}"
    yield ""
    lines = meaning(row)
    yield "```"
    yield from lines
    yield "```"
    if any(_FRAMES.search(line) for line in lines):
        yield ""
        yield _UNITS
