# SPDX-License-Identifier: Apache-2.0
"""The control block in C is the one in Python."""

from __future__ import annotations

import ctypes
from pathlib import Path

from ferryvm.ir.c import C11
from ferryvm.isa.object import ROW_WORDS
from ferryvm.machine.control import DESCRIPTOR_WORDS, ControlBlock, Status
from ferryvm.machine.declaration import declarations

from .native import each_compiler, load, needs_compiler


@needs_compiler
@each_compiler
def test_every_field_stands_at_its_offset(compiler: str, tmp_path: Path) -> None:
    names = [field[0] for field in ControlBlock._fields_]
    offsets = ", ".join(f"offsetof(struct ferry_control, {name})" for name in names)
    text = f"#include <stddef.h>\n{C11.prelude}\n{declarations(C11)}\n"
    text += f"uint64_t places[] = {{ {offsets}, sizeof(struct ferry_control) }};\n"
    library = load(text, tmp_path, compiler)
    found = list((ctypes.c_uint64 * (len(names) + 1)).in_dll(library, "places"))
    expected = [vars(ControlBlock)[name].offset for name in names]
    assert found == [*expected, ctypes.sizeof(ControlBlock)]


def test_every_status_has_its_number() -> None:
    text = declarations(C11)
    for status in Status:
        assert f"FERRY_{status.name} = {int(status)}," in text
    assert f"FERRY_DESCRIPTOR_WORDS = {DESCRIPTOR_WORDS}," in text
    assert f"FERRY_ROW_WORDS = {ROW_WORDS}," in text
