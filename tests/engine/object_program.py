# SPDX-License-Identifier: Apache-2.0
"""Programs in assembly that make objects."""

from __future__ import annotations

from pathlib import Path

from ferryvm import asm
from ferryvm.verify import Verified, verify

GARBAGE = """
.host print_i64 (i64)
.struct cell value i64 next cell
.static kept cell
.function main
.local n i64
.local k i64
.local list cell
.local a i64[]
    i64.const {rounds}
    local.set n
:top
    ref.null cell
    local.set list
    i64.const 10
    local.set k
:more
    local.get k
    local.get list
    struct.new cell
    local.set list
    local.get k
    i64.const 1
    i64.sub
    local.set k
    local.get k
    i64.eqz
    jump_unless more
    i64.const 10000
    array.new_default_i64
    local.set a
    local.get a
    i64.const 9999
    local.get list
    struct.get cell.value
    array.set_i64
    local.get list
    static.set kept
    local.get n
    i64.const 1
    i64.sub
    local.set n
    local.get n
    i64.eqz
    jump_unless top
    local.get a
    i64.const 9999
    array.get_i64
    host print_i64
    halt
"""
"""Makes a list of 10 cells and an array of 80 KB, again and again; the last ones stay."""

HOARD = """
.struct cell next cell
.static kept cell
.function main
:top
    static.get kept
    struct.new cell
    static.set kept
    jump top
"""
"""Keeps all cells, without end."""

MIXED = (Path(__file__).parent / "objects.fasm").read_text(encoding="utf-8")
"""Structs, arrays inside and outside the space, casts, recursion with references on the stack."""


def program(text: str) -> Verified:
    """A verified program."""
    return verify(asm.assemble(text, "<test>"))
