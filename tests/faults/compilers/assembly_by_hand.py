# SPDX-License-Identifier: Apache-2.0
"""Those programs by hand that no text of Skiff compiles to, in assembly."""

from __future__ import annotations

BYTES = """
.data 0 i64 -2 300 -70000 9223372036854775807
.static s i32
.static t i64
.function main
.local i i64
.local x i32
:next
    local.get i
    i32.load8_u 1
    local.get i
    i32.load16_s 2
    i32.add
    local.get i
    i64.load 8
    i32.wrap_i64
    i32.sub
    local.set x
    local.get i
    local.get x
    i32.store16 3
    local.get i
    local.get x
    i64.extend_i32_s
    i64.store 12
    local.get x
    static.set s
    local.get x
    i64.extend_i32_s
    static.get t
    i64.xor
    static.set t
    local.get i
    i64.load32_s 4
    i64.const 5
    i64.shr_s
    static.get t
    i64.add
    static.set t
    local.get x
    i32.const 3
    i32.shr_u
    static.get s
    i32.xor
    static.set s
    local.get i
    i64.const 3
    i64.add
    local.set i
    local.get i
    i64.const 14
    i64.lt_u
    jump_if next
    i64.const 1
    i64.const -1
    call both
    static.set t
    local.get i
    i32.load8_u 10
    static.set s
    local.get i
    i64.load 10
    static.set t
    halt
.function both (a i64, b i64) -> i64
    local.get a
    i64.const 0
    i64.gt_s
    local.get b
    i64.const 0
    i64.gt_s
    i32.and
    jump_if yes
    local.get a
    i64.const 0
    i64.gt_s
    jump_if one
    i64.const 1
    return
:one
    i64.const 2
    return
:yes
    i64.const 3
    return
"""
"""Loads and stores of all sizes."""

ENTRIES = """
.static out i64
.function main
    i64.const 5
    call work
    static.set out
    i64.const 4
    call work
    static.get out
    i64.add
    static.set out
    halt
.function work (n i64) -> i64
.local s i64
.local k i32
    local.get n
    i64.const 5
    i64.eq
    jump_if second
:first
    local.get s
    i64.const 10
    i64.mul
    local.set s
    local.get k
    jump_table second third done
:second
    local.get s
    local.get n
    i64.add
    local.set s
:third
    local.get k
    i32.const 1
    i32.add
    local.set k
    local.get n
    i64.const 1
    i64.sub
    local.set n
    local.get n
    i64.const 0
    i64.gt_s
    jump_if first
:done
    local.get s
    return
"""
"""A cycle with several entries."""

BEHIND = """
.data 0 i64 3 1 4 1 5 9 2 6 5 3
.static s i64
.function main
    i64.const 0
    i64.const 8
    call follow
    i64.const 0
    i64.const 16
    call follow
    halt
.function follow (i64 i64)
.local i i64
:next
    local.get 0
    i64.load 0
    local.get 0
    i64.load 8
    i64.const 3
    i64.mul
    i64.add
    static.get s
    i64.xor
    static.set s
    local.get 1
    static.get s
    i64.store 0
    local.get 0
    i64.const 8
    i64.add
    local.set 0
    local.get 1
    i64.const 8
    i64.add
    local.set 1
    local.get i
    i64.const 1
    i64.add
    local.set i
    local.get i
    i64.const 6
    i64.lt_s
    jump_if next
    return
"""
"""Loads and stores whose addresses rise by a constant."""

OBJECTS = """
.struct node value i64 next node
.struct wide extends node weight i64
.static out i64 = 1
.static nodes node[]
.static wides wide[]
.function main
.local a f64[]
.local b f64[]
.local i i64
    f64.const 1.5
    i64.const 8
    array.new_f64
    local.set a
    f64.const 0.25
    i64.const 9
    array.new_f64
    local.set b
    local.get a
    local.get b
    i64.const 5
    i64.const 8
    call nest
    local.get a
    local.get a
    i64.const 8
    i64.const 8
    call nest
    static.get out
    local.get a
    i64.const 3
    array.get_f64
    i64.trunc_f64_s
    i64.add
    static.set out
    i64.const 2
    array.new_default_ref node[]
    static.set nodes
    i64.const 2
    array.new_default_ref wide[]
    static.set wides
    static.get wides
    i64.const 0
    i64.const 7
    ref.null node
    i64.const 40
    struct.new wide
    array.set_ref wide[]
    static.get nodes
    i64.const 0
    static.get wides
    i64.const 0
    array.get_ref wide[]
    array.set_ref node[]
    static.get wides
    i64.const 1
    i64.const 9
    static.get wides
    i64.const 0
    array.get_ref wide[]
    i64.const 50
    struct.new wide
    array.set_ref wide[]
    static.get nodes
    i64.const 1
    static.get wides
    i64.const 1
    array.get_ref wide[]
    array.set_ref node[]
:next
    local.get i
    i64.const 1
    i64.and
    call fields
    local.get i
    i64.const 1
    i64.add
    local.set i
    local.get i
    i64.const 6
    i64.lt_s
    jump_if next
    i32.const 5
    ref.i31
    call value
    local.get b
    call value
    static.get nodes
    i64.const 1
    array.get_ref node[]
    call value
    local.get b
    local.get a
    i64.const 8
    i64.const 10
    call nest
    halt
.function nest (v f64[] u f64[] n i64 m i64)
.local i i64
.local j i64
:outer
    local.get i
    local.get n
    i64.ge_s
    jump_if done
    i64.const 0
    local.set j
:inner
    local.get j
    local.get m
    i64.ge_s
    jump_if after
    local.get v
    local.get j
    local.get v
    local.get j
    array.get_f64
    local.get u
    local.get i
    array.get_f64
    f64.add
    array.set_f64
    local.get j
    i64.const 1
    i64.add
    local.set j
    jump inner
:after
    local.get i
    i64.const 1
    i64.add
    local.set i
    jump outer
:done
    return
.function fields (k i64)
.local n node
.local w wide
.local x i64
    static.get nodes
    local.get k
    array.get_ref node[]
    local.set n
    static.get wides
    local.get k
    array.get_ref wide[]
    local.set w
    local.get n
    struct.get node.value
    local.set x
    local.get w
    local.get x
    i64.const 5
    i64.add
    struct.set wide.value
    static.get out
    i64.const 3
    i64.mul
    local.get n
    struct.get node.value
    i64.add
    static.set out
    local.get w
    local.get w
    struct.get wide.weight
    local.get x
    i64.add
    struct.set wide.weight
    return
.function value (any anyref)
    local.get any
    ref.test i31ref
    jump_unless other
    static.get out
    local.get any
    ref.cast i31ref
    i31.get_s
    i64.extend_i32_s
    i64.add
    static.set out
    return
:other
    local.get any
    ref.test node
    jump_unless array
    static.get out
    local.get any
    ref.cast node
    struct.get node.value
    i64.mul
    static.set out
    return
:array
    static.get out
    local.get any
    ref.cast arrayref
    array.length
    i64.sub
    static.set out
    return
"""
"""Arrays and structs, casts and type tests."""

PREPARED = """
.static out i64
.function main
.local a i64[]
.local b i64[]
.local n i64
    i64.const 5000
:top
    array.new_default_i64
    local.set a
    i64.const 5000
    array.new_default_i64
    local.set b
    local.get a
    i64.const 0
    i64.const 5
    array.set_i64
    local.get b
    i64.const 0
    i64.const 6
    array.set_i64
    static.get out
    i64.const 31
    i64.mul
    local.get a
    i64.const 0
    array.get_i64
    i64.add
    static.set out
    local.get n
    i64.const 1
    i64.add
    local.set n
    i64.const 5000
    local.get n
    i64.const 4
    i64.lt_s
    jump_if top
    drop
    halt
"""
"""Large arrays that are made where code of a loop is entered, and in its middle."""
