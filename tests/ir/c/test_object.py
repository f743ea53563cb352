# SPDX-License-Identifier: Apache-2.0
"""The helpers for objects, compiled: bytes at addresses that nothing aligns, and NaNs."""

from __future__ import annotations

import ctypes
from pathlib import Path

from ferryvm.ir.c import C11

from .native import each_compiler, load, needs_compiler

HELPERS = {
    f"object_{name}_{size}": parameters
    for size in (1, 2, 4, 8)
    for name, parameters in (("load", 1), ("store", 2), ("fill", 3))
} | {"object_move": 3, "object_canonical_f32": 1, "object_canonical_f64": 1}
"""Their names and numbers of parameters, all of which are words."""


def exported() -> str:
    """A text with a function `do_NAME` for each helper."""
    parts = [C11.prelude, *C11.definitions(HELPERS)]
    for name, count in HELPERS.items():
        names = "abc"[:count]
        result = "uint64_t" if "load" in name else "void"
        parameters = ", ".join(f"uint64_t {each}" for each in names)
        call = f"{name}({', '.join(names)});"
        returned = "return " if result != "void" else ""
        parts.append(f"{result} do_{name}({parameters}) {{ {returned}{call} }}\n")
    return "\n".join(parts)


@needs_compiler
@each_compiler
def test_helpers_access_so_many_bytes_at_any_address(compiler: str, tmp_path: Path) -> None:
    library = load(exported(), tmp_path, compiler, level=3)

    def run(name: str, *words: int) -> int:
        function = library[f"do_{name}"]
        function.restype = ctypes.c_uint64
        return int(function(*map(ctypes.c_uint64, words)))

    for size in (1, 2, 4, 8):
        memory = bytearray(range(1, 65))
        expected = bytearray(memory)
        buffer = (ctypes.c_char * len(memory)).from_buffer(memory)
        first = ctypes.addressof(buffer)
        word = 0xF1E2_D3C4_B5A6_9788
        low = word.to_bytes(8, "little")[:size]
        assert run(f"object_load_{size}", first + 3) == int.from_bytes(
            memory[3 : 3 + size], "little"
        )
        run(f"object_store_{size}", first + 5, word)
        expected[5 : 5 + size] = low
        run(f"object_fill_{size}", first + 17, 5, word)
        expected[17 : 17 + 5 * size] = low * 5
        run(f"object_fill_{size}", first + 60, 0, word)
        assert memory == expected

        if size >= 4:
            quiet = 0x7FC0_0000 if size == 4 else 0x7FF8_0000_0000_0000
            payload, infinity = quiet | 5, quiet & (quiet << 1)
            for bits, made in ((payload, quiet), (infinity, infinity), (7, 7)):
                run(f"object_store_{size}", first + 16, bits)
                run(f"object_canonical_f{8 * size}", first + 16)
                assert run(f"object_load_{size}", first + 16) == made


@needs_compiler
@each_compiler
def test_moved_bytes_may_overlap_and_none_need_no_address(compiler: str, tmp_path: Path) -> None:
    library = load(exported(), tmp_path, compiler, level=3)
    memory = bytearray(range(32))
    first = ctypes.addressof((ctypes.c_char * len(memory)).from_buffer(memory))
    for to, from_, size in ((first + 3, first + 1, 20), (first + 2, first + 9, 13), (0, 0, 0)):
        library.do_object_move(*map(ctypes.c_uint64, (to, from_, size)))
    expected = bytearray(range(32))
    expected[3:23] = expected[1:21]
    expected[2:15] = expected[9:22]
    assert memory == expected
