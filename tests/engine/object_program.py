# SPDX-License-Identifier: Apache-2.0
"""Programs in assembly that make objects."""

from __future__ import annotations

from pathlib import Path

from ferryvm import asm
from ferryvm.isa.element import Element
from ferryvm.isa.object import LARGEST_INLINE
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

ALL = """
.data 0 i64 -1 -2 3 -4 5 6 7 8 9
.function main
.local a {array}
.local b {array}
.local i i64
    {first}
    i64.const {length}
    array.new_{kind}
    local.set a
    i64.const 40
    array.new_default_{kind}
    local.set b
:next
    local.get b
    local.get i
    local.get a
    local.get i
    array.get_{kind}
    array.set_{kind}
    local.get a
    local.get i
    i64.const 1
    i64.add
    {second}
    array.set_{kind}
    local.get i
    i64.const 2
    i64.add
    local.set i
    local.get i
    i64.const 38
    i64.lt_s
    jump_if next
    local.get a
    i64.const 3
    {first}
    i64.const 7
    array.fill_{kind}
    local.get b
    i64.const 5
    local.get b
    i64.const 2
    i64.const 20
    array.copy_{kind}
    local.get a
    i64.const 12
    local.get b
    i64.const 0
    i64.const 9
    array.copy_{kind}
{more}
    local.get b
    array.length
    halt
"""

MORE = """
    local.get a
    i64.const 4
    i64.const 8
    i64.const 6
    array.store_{kind}
    local.get b
    i64.const 1
    i64.const 8
    i64.const 6
    array.load_{kind}
"""

LISTS = """
.struct cell value i64 next cell
.struct pair extends cell weight f64
.host print_i64 (i64)
.function main
.local i i64
:next
    local.get i
    i64.const {length}
    call list
    call total
    host print_i64
    local.get i
    i64.const 1
    i64.add
    local.set i
    local.get i
    i64.const {times}
    i64.lt_s
    jump_if next
    halt
.function list (seed i64 n i64) -> cell
.local all cell
:next
    local.get n
    i64.const 1
    i64.and
    i64.eqz
    jump_if even
    local.get seed
    local.get n
    i64.mul
    local.get all
    f64.const 0.25
    struct.new pair
    local.set all
    jump after
:even
    local.get n
    local.get all
    struct.new cell
    local.set all
:after
    local.get n
    i64.const 1
    i64.sub
    local.set n
    local.get n
    i64.const 0
    i64.gt_s
    jump_if next
    local.get all
    return
.function total (all cell) -> i64
.local sum i64
:next
    local.get all
    ref.is_null
    jump_if done
    local.get all
    ref.test pair
    jump_unless plain
    local.get all
    ref.cast pair
    local.get all
    ref.cast pair
    struct.get pair.weight
    f64.const 2.0
    f64.mul
    struct.set pair.weight
    local.get sum
    local.get all
    ref.cast pair
    struct.get pair.weight
    i64.trunc_f64_s
    i64.add
    local.set sum
:plain
    local.get sum
    local.get all
    struct.get cell.value
    i64.add
    local.set sum
    local.get all
    struct.get cell.next
    local.set all
    jump next
:done
    local.get sum
    return
"""

TREES = """
.struct tree left tree right tree
.host print_i64 (i64)
.function main
.local i i64
:next
    i64.const {depth}
    call bottom_up
    call count
    host print_i64
    local.get i
    i64.const 1
    i64.add
    local.set i
    local.get i
    i64.const 4
    i64.lt_s
    jump_if next
    halt
.function bottom_up (depth i64) -> tree
    local.get depth
    i64.eqz
    jump_if leaf
    local.get depth
    i64.const 1
    i64.sub
    call bottom_up
    local.get depth
    i64.const 1
    i64.sub
    call bottom_up
    struct.new tree
    return
:leaf
    struct.new_default tree
    return
.function count (t tree) -> i64
    local.get t
    struct.get tree.left
    ref.is_null
    jump_if leaf
    local.get t
    struct.get tree.left
    call count
    local.get t
    struct.get tree.right
    call count
    i64.add
    i64.const 1
    i64.add
    return
:leaf
    i64.const 1
    return
"""


def on_elements(element: Element, is_outside: bool) -> str:
    """A program with every instruction on arrays of an element kind, the first one inside of the
    object space or outside."""
    t, kind = element.type, element.kind
    first, second = ("1.7", "nan") if t.is_float else ("-77777", "123456")
    return ALL.format(
        array=f"{kind}[]",
        kind=kind,
        length=LARGEST_INLINE // element.bytes + 1 if is_outside else 40,
        first=f"{t}.const {first}",
        second=f"{t}.const {second}",
        more=MORE.format(kind=kind),
    )


def program(text: str) -> Verified:
    """A verified program."""
    return verify(asm.assemble(text, "<test>"))
