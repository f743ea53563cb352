# SPDX-License-Identifier: Apache-2.0
"""Objects in OpenCL C 1.2: their helpers, and what finds them on a device with memory of its own.

A processor that works in the host's memory has objects at the addresses that the host has; the
others have a buffer, in which elements outside of the object space are at places of the device's
own:

    ~chunk ...  │ object space, as on the host │ elements outside, each array at a chunk …
    dirty marks ^ objects                      ^ object_bytes

    tables   │ number of arrays │ object_bytes │ word of their rows │ 0 │ type rows … │ rows …
    row      │ place on the host │ place on the device │              ascending by the first

Headers are the same on both sides. A place is translated where code loads it from a header, which
is once before most loops; so no element costs more than on a processor, and nothing is rewritten
when objects come back. All places that code computes with are those of the device. The only one
outside of the space that it stores is that of the prepared elements.
"""

from __future__ import annotations

from ferryvm.ir.c.dialect import helper_text
from ferryvm.ir.c.opencl_atomic import atomics
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, Type

DIRTY_SHIFT = 12
"""Memory is divided into chunks of 2 to this power bytes, for which stores set dirty marks."""

TABLE_WORDS = 4
"""Words of the tables before the type rows."""
COUNT_WORD, BYTES_WORD, ROWS_WORD = range(3)
"""Indices of these: the number of arrays outside, `object_bytes`, the index of their first row."""

FIELDS = """\
    ulong objects;
    ulong object_bytes;
    __global const ulong *types;
    __global const ulong *arrays;
    ulong array_count;
"""
"""Fields of `struct ferry_memory` on a device with memory of its own."""

PARAMETERS = """,
    __global uchar *objects_buffer, ulong objects_at,
    __global const ulong *tables"""
"""Parameters of the kernel, after all others."""

BOUND = f"""\
    memory.objects = (ulong)(objects_buffer + objects_at);
    memory.object_bytes = tables[{BYTES_WORD}];
    memory.types = tables + {TABLE_WORDS};
    memory.arrays = tables + tables[{ROWS_WORD}];
    memory.array_count = tables[{COUNT_WORD}];
"""
"""Statements that set these fields."""

TRIED = """\
        ++*(__global ulong *)control->objects;
        control->scratch[1] = 1;
"""
"""Statements of a dry run in the host's memory: the device uses an address of the host."""

_ALIAS = """\
#ifdef __has_attribute
#if __has_attribute(may_alias)
#define FERRY_MAY_ALIAS __attribute__((may_alias))
#endif
#endif
#ifndef FERRY_MAY_ALIAS
#define FERRY_MAY_ALIAS
#endif
"""

_MARK = f"""\
static inline void marked(ulong base, ulong address, ulong size)
{{
    const ulong first = (address - base) >> {DIRTY_SHIFT};
    const ulong last = (address - base + size - 1) >> {DIRTY_SHIFT};
    for (ulong chunk = first; chunk <= last; ++chunk)
        *(__global uchar *)(base + ~chunk) = 1;
}}
"""

_MARK_ONE = f"*(__global uchar *)(base + ~((address - base) >> {DIRTY_SHIFT})) = 1;"
"""Sets the mark of an element: it does not cross a chunk's end, since it is at a multiple of its
size."""

_PLACES = """\
static inline ulong device_place(const struct ferry_memory memory, ulong place)
{
    if (place < memory.object_bytes)
        return place;
    ulong low = 0, high = memory.array_count;
    while (low < high) {
        const ulong middle = (low + high) / 2;
        if (memory.arrays[2 * middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    const bool is_known = low < memory.array_count && memory.arrays[2 * low] == place;
    return is_known ? memory.arrays[2 * low + 1] : 0;
}
#define object_place(place) device_place(memory, place)
"""

_HOST_PLACE = """\
#define object_host_place(place) ((place) < memory.object_bytes ? (place) : control->prepared)
"""


def _copying(bytes_: int) -> list[str]:
    """Statements that copy words of a size, from the end on where the other order would lose
    some."""
    shift = bytes_.bit_length() - 1
    step = f"object_set_{bytes_}(to + {bytes_} * i, object_get_{bytes_}(from + {bytes_} * i));"
    count = f"size >> {shift}" if shift else "size"
    return [
        "if (to - from >= size)",
        f"    for (ulong i = 0; i < ({count}); ++i)",
        f"        {step}",
        "else",
        f"    for (ulong i = {count}; i-- > 0;)",
        f"        {step}",
    ]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def objects(types: dict[int, str], apart: bool) -> dict[str, str]:
    """The helpers on objects by name. `types`: the unsigned type of each number of bytes; `apart`:
    stores set dirty marks, and places are translated."""
    found = {"FERRY_MAY_ALIAS": _ALIAS}
    if apart:
        found |= {"marked": _MARK, "object_place": _PLACES, "object_host_place": _HOST_PLACE}
    for bytes_, c in types.items():
        found |= _of_size(bytes_, c, apart)
    found |= atomics(_MARK_ONE if apart else "")
    for t in (F32, F64):
        found |= _canonical(t, types[t.bits // 8], apart)
    words = ["if (((to | from | size) & 7) == 0) {", *_indented(_copying(8))]
    halves = ["} else if (((to | from | size) & 3) == 0) {", *_indented(_copying(4))]
    bytes_left = ["} else {", *_indented(_copying(1)), "}"]
    found["moved"] = helper_text(
        "void", "moved", "ulong to, ulong from, ulong size", *words, *halves, *bytes_left
    )
    for name, base in (("object_move", "memory.objects"), ("heap_move", "memory.heap")):
        if apart:
            found[name] = helper_text(
                "void",
                f"{name}_in",
                "ulong base, ulong to, ulong from, ulong size",
                "if (size == 0)",
                "    return;",
                "marked(base, to, size);",
                "moved(to, from, size);",
            )
            given = f"(ulong){base}, to, from, size"
            found[name] += f"#define {name}(to, from, size) {name}_in({given})\n"
        else:
            found[name] = f"#define {name}(to, from, size) moved(to, from, size)\n"
    return found


def _canonical(t: Type, c: str, apart: bool) -> dict[str, str]:
    """The helper that makes an element in memory canonical if it is a NaN; `c`: the unsigned type
    of its size. The load is volatile, so that no compiler uses the operand of the store before it
    instead. That store has marked the chunk."""
    name, float_ = f"object_canonical_{t}", "float" if t is F32 else "double"
    pointer = f"volatile __global ferry_object_{t.bits // 8} *"
    body = [
        f"const {c} bits = *element;",
        f"const {float_} a = as_{float_}(bits);",
        "if (a != a)",
        f"    *element = {CANONICAL_NAN[t]:#x}{'u' if t is F32 else 'ul'};",
    ]
    if apart:
        first = f"{pointer}const element = ({pointer})address;"
        return {name: helper_text("void", name, "ulong address", first, *body)}
    first = f"{pointer}const element = ({pointer})(base + offset);"
    text = helper_text("void", f"{name}_at", "__global uchar *base, ulong offset", first, *body)
    given = "(__global uchar *)objects, (address) - objects"
    return {name: f"{text}#define {name}(address) {name}_at({given})\n"}


def _of_size(bytes_: int, c: str, apart: bool) -> dict[str, str]:
    names = ("load", "get", "set", "store", "fill")
    load, get, set_, store, fill = (f"object_{name}_{bytes_}" for name in names)
    pointer = f"__global ferry_object_{bytes_} *"
    alias = f"typedef {c} ferry_object_{bytes_} FERRY_MAY_ALIAS;\n"
    found = {f"ferry_object_{bytes_}": alias}
    found[get] = helper_text("ulong", get, "ulong address", f"return *(const {pointer})address;")
    found[set_] = helper_text(
        "void",
        set_,
        "ulong address, ulong word",
        f"*({pointer})address = ({c})word;",
    )
    each = ["for (ulong i = 0; i < count; ++i)", f"    {set_}(address + {bytes_} * i, word);"]
    if not apart:
        # Addresses from one pointer: of addresses that are computed as integers compilers know no
        # base, so they cannot check that two ranges are apart, and vectorise no loop.
        base, offset = "__global uchar *base", "(address) - objects"
        found[load] = helper_text(
            "ulong",
            f"{load}_at",
            f"const {base}, ulong offset",
            f"return *(const {pointer})(base + offset);",
        ) + (f"#define {load}(address) {load}_at((const __global uchar *)objects, {offset})\n")
        found[store] = helper_text(
            "void",
            f"{store}_at",
            f"{base}, ulong offset, ulong word",
            f"*({pointer})(base + offset) = ({c})word;",
        ) + (
            f"#define {store}(address, word) "
            f"{store}_at((__global uchar *)objects, {offset}, word)\n"
        )
        found[fill] = helper_text("void", fill, "ulong address, ulong count, ulong word", *each)
        return found
    found[load] = f"#define {load}(address) {get}(address)\n"
    put = helper_text(
        "void",
        f"{store}_in",
        "ulong base, ulong address, ulong word",
        _MARK_ONE,
        f"{set_}(address, word);",
    )
    found[store] = put + (
        f"#define {store}(address, word) {store}_in(memory.objects, address, word)\n"
    )
    filled = helper_text(
        "void",
        f"{fill}_in",
        "ulong base, ulong address, ulong count, ulong word",
        "if (count == 0)",
        "    return;",
        f"marked(base, address, {bytes_} * count);",
        *each,
    )
    found[fill] = filled + (
        f"#define {fill}(address, count, word) {fill}_in(memory.objects, address, count, word)\n"
    )
    return found
