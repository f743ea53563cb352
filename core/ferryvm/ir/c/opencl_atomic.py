# SPDX-License-Identifier: Apache-2.0
"""Atomic updates of elements in OpenCL C 1.2, which order no other access (6.12.11).

For 32 bits there is a function for each. For 64 bits there are those of the extension
`cl_khr_int64_base_atomics` (OpenCL 1.2 Extension Specification, 9.3): the updates that it lacks
repeat a comparison and exchange.
"""

from __future__ import annotations

from ferryvm.ir.c.dialect import helper_text
from ferryvm.isa.emitter import Atomic

_NAMES = {
    Atomic.ADD: "add",
    Atomic.MIN_S: "min",
    Atomic.MIN_U: "min",
    Atomic.MAX_S: "max",
    Atomic.MAX_U: "max",
    Atomic.AND: "and",
    Atomic.OR: "or",
    Atomic.EXCHANGE: "xchg",
}
_BASE = frozenset({Atomic.ADD, Atomic.EXCHANGE})
"""The updates of 64 bits that the extension has."""

_NEW = {
    Atomic.MIN_S: "(long)word < (long)old ? word : old",
    Atomic.MIN_U: "word < old ? word : old",
    Atomic.MAX_S: "(long)word > (long)old ? word : old",
    Atomic.MAX_U: "word > old ? word : old",
    Atomic.AND: "old & word",
    Atomic.OR: "old | word",
}

_LONG = "ferry_atomics_64"
_PRAGMA = f"""\
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#define {_LONG} 1
"""


def atomics(mark: str) -> dict[str, str]:
    """The helpers on elements of objects by name. `mark`: the statement that sets the dirty mark of
    an address relative to a base; empty where stores set none."""
    found = {_LONG: _PRAGMA}
    for bytes_ in (4, 8):
        for kind in Atomic:
            body = _update(kind, bytes_, "__global", "address")
            found |= _helper(f"object_{kind.value}_{bytes_}", body, mark)
        exchange = _compare_exchange(bytes_, "__global", "address")
        found |= _helper(f"object_compare_exchange_{bytes_}", exchange, mark, "expected, ")
    return found


def group_atomics() -> dict[str, str]:
    """The helpers on elements of arrays of groups by name."""
    found = {}
    place, array = "array + (uint)offset", "__local uchar *array, ulong offset"
    for bytes_ in (4, 8):
        for kind in Atomic:
            name, body = f"group_{kind.value}_{bytes_}", _update(kind, bytes_, "__local", place)
            found[name] = helper_text("ulong", name, f"{array}, ulong word", *body)
        name, body = f"group_compare_exchange_{bytes_}", _compare_exchange(bytes_, "__local", place)
        found[name] = helper_text("ulong", name, f"{array}, ulong expected, ulong word", *body)
    return found


def _update(kind: Atomic, bytes_: int, space: str, place: str) -> list[str]:
    if bytes_ == 4:
        t = "int" if kind in (Atomic.MIN_S, Atomic.MAX_S) else "uint"
        pointer = f"(volatile {space} {t} *)({place})"
        return [f"return (uint)atomic_{_NAMES[kind]}({pointer}, ({t})word);"]
    pointer = f"(volatile {space} ulong *)({place})"
    if kind in _BASE:
        return [f"return atom_{_NAMES[kind]}({pointer}, word); /* {_LONG} */"]
    return [
        f"for (ulong old = *{pointer};;) {{ /* {_LONG} */",
        f"    const ulong found = atom_cmpxchg({pointer}, old, {_NEW[kind]});",
        "    if (found == old)",
        "        return old;",
        "    old = found;",
        "}",
    ]


def _compare_exchange(bytes_: int, space: str, place: str) -> list[str]:
    if bytes_ == 4:
        pointer = f"(volatile {space} uint *)({place})"
        return [f"return atomic_cmpxchg({pointer}, (uint)expected, (uint)word);"]
    pointer = f"(volatile {space} ulong *)({place})"
    return [f"return atom_cmpxchg({pointer}, expected, word); /* {_LONG} */"]


def _helper(name: str, body: list[str], mark: str, more: str = "") -> dict[str, str]:
    """`more`: the operands between address and word."""
    parameters = f"ulong address, {more and 'ulong ' + more}ulong word"
    if not mark:
        return {name: helper_text("ulong", name, parameters, *body)}
    text = helper_text("ulong", f"{name}_in", f"ulong base, {parameters}", mark, *body)
    call = f"{name}_in(memory.objects, address, {more}word)"
    return {name: text + f"#define {name}(address, {more}word) {call}\n"}
