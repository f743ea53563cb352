# SPDX-License-Identifier: Apache-2.0
"""Programs whose exceptions cross calls: a loop calls `work` under a clause, or what does so."""

from __future__ import annotations

LOOP = """
.static total i64
.tag none
.tag number i64
.tag each i32 f32 i64 f64
.tag failed f64
.table thrower
.function main
.local i i64
:again
    local.get i
    call work
    static.get total
    i64.const 3
    i64.mul
    i64.add
    static.set total
    local.get i
    i64.const 1
    i64.add
    local.set i
    local.get i
    i64.const 30
    i64.lt_s
    jump_if again
    static.get total
    halt
"""
"""Thirty calls of a function `work (n i64) -> i64`."""

THROWER = """
.function thrower (n i64) -> i64
    local.get n
    i32.wrap_i64
    i32.const 7
    i32.and
    jump_table none number each failed good
:good
    local.get n
    return
:none
    throw none
:number
    local.get n
    i64.const 11
    i64.mul
    throw number
:each
    local.get n
    i32.wrap_i64
    i32.const -1
    i32.xor
    f32.const 1.5
    i64.const -9
    local.get n
    f64.convert_i64_s
    throw each
:failed
    f64.const -0.0
    throw failed
"""
"""Throws a tag for arguments whose low three bits are below 4, otherwise returns its argument."""

_FRAMES = """
.function outer (n i64) -> i64
.local a f64
.local b i32
    f64.const 2.5
    local.set a
    local.get n
    i64.const 5
    local.get n
    call inner
    i64.add
    i64.sub
    return
.function inner (n i64) -> i64
    static.get total
    local.get n
    i64.xor
    static.set total
    i32.const 3
    local.get n
    call thrower
    i64.const 2
    i64.mul
    return
"""


def _program(work: str, rest: str = _FRAMES + THROWER) -> str:
    return LOOP + work + rest


PROGRAMS = {
    "tags of all types above operands": _program("""
.function work (n i64) -> i64
    local.get n
:try
    i64.const 4
    i64.const 8
    local.get n
    call outer
    i64.add
    i64.add
    i64.add
    return
:end
:none
    return
:number
    i64.sub
    i64.sub
    return
:each
    i64.trunc_f64_s
    i64.add
    local.set n
    i64.trunc_f32_s
    local.get n
    i64.add
    local.set n
    i64.extend_i32_s
    local.get n
    i64.add
    i64.add
    return
:failed
    i64.reinterpret_f64
    i64.add
    i64.add
    i64.add
    return
.catch none from try to end using none depth 1
.catch number from try to end using number depth 2
.catch each from try to end using each depth 1
.catch failed from try to end using failed depth 3
"""),
    "one handler of several tags": _program("""
.function work (n i64) -> i64
    local.get n
:try
    i64.const 8
    local.get n
    call outer
    i64.add
    i64.add
    return
:end
:two
    i64.mul
    return
:rest
    i64.const 77
    static.set total
    return
.catch number from try to end using two depth 1
.catch none from try to end using two depth 2
.catch_all from try to end using rest depth 1
"""),
    "records thrown on": _program("""
.function work (n i64) -> i64
:try
    local.get n
    call careful
    return
:end
:number
    static.get total
    i64.add
    return
:rest
    i64.add
    i64.add
    i64.add
    i64.add
    return
.catch number from try to end using number
.catch_record from try to end using rest
.function careful (n i64) -> i64
    local.get n
:try
    local.get n
    call outer
:end
    i64.add
    return
:cleanup
    static.get total
    i64.const 1
    i64.add
    static.set total
    throw_record
.catch_record from try to end using cleanup
"""),
    "records caught where they are thrown": _program("""
.function work (n i64) -> i64
    local.get n
:outer
    local.get n
:inner
    local.get n
    call outer
    i64.add
    i64.add
    return
:end
:cleanup
    static.get total
    i64.const 1
    i64.add
    static.set total
    throw_record
:outer_end
:none
    return
:number
    i64.sub
    return
:each
    drop
    drop
    drop
    drop
    return
:rest
    i64.const 3
    i64.mul
    return
.catch_record from inner to end using cleanup depth 1
.catch none from outer to outer_end using none depth 1
.catch number from outer to outer_end using number depth 1
.catch each from outer to outer_end using each depth 1
.catch_all from outer to outer_end using rest depth 1
"""),
    "retried from the handler": _program("""
.function work (n i64) -> i64
.local count i64
:retry
    local.get count
    i64.const 1
    i64.add
    local.set count
    local.get n
    local.get count
    i64.add
    call outer
    local.get count
    i64.add
    return
:end
:rest
    drop
    drop
    drop
    drop
    static.get total
    i64.add
    static.set total
    jump retry
.catch none from retry to end using retry
.catch number from retry to end using again
.catch_record from retry to end using rest
:again
    static.get total
    i64.sub
    static.set total
    jump retry
"""),
    "memory of a callee": _program(
        """
.function work (n i64) -> i64
    static.get total
    i64.const 5
    i64.add
    static.set total
:try
    local.get n
    call keep
    return
:end
:number
    i64.load
    static.get total
    i64.add
    return
:rest
    static.get total
    heap.size
    i64.add
    return
.catch number from try to end using number
.catch_all from try to end using rest
.function keep (n i64) -> i64
.local place i64
    i64.const 16
    heap.alloc
    local.set place
    local.get place
    local.get n
    i64.store
    static.get total
    i64.const 9
    i64.xor
    static.set total
    local.get n
    i64.const 3
    i64.rem_u
    i64.eqz
    jump_if out
    local.get place
    throw number
:out
    throw none
""",
        THROWER,
    ),
    "through the table, with further results": _program(
        """
.function work (n i64) -> i64
:try
    local.get n
    i32.const 0
    call_indirect (i64) -> i64
    local.get n
    call three
    i64.add
    i64.add
    i64.sub
    return
:end
:each
    drop
    drop
    drop
    i64.extend_i32_s
    return
:rest
    i64.const 5
    return
.catch each from try to end using each
.catch_all from try to end using rest
.function three (n i64) -> (i64 i64 i64)
    local.get n
    local.get n
    i64.const 3
    i64.add
    call thrower
    i64.const 7
    return
""",
        THROWER,
    ),
    "caught at some levels of a recursion": _program(
        """
.function work (n i64) -> i64
    local.get n
:try
    local.get n
    call down
:end
    i64.add
    return
:number
    i64.sub
    return
.catch number from try to end using number depth 1
.function down (n i64) -> i64
    local.get n
    i64.eqz
    jump_if bottom
    local.get n
    i64.const 4
    i64.rem_s
    i64.eqz
    jump_if careful
    local.get n
    i64.const 1
    i64.sub
    call down
    return
:careful
    local.get n
:try
    local.get n
    i64.const 1
    i64.sub
    call down
:end
    i64.add
    return
:handler
    i64.add
    throw number
:bottom
    i64.const 100
    throw number
.catch number from try to end using handler depth 1
""",
        THROWER,
    ),
    "caught by nobody in the end": _program("""
.function work (n i64) -> i64
:try
    local.get n
    call outer
    return
:end
:none
    i64.const 1
    return
:number
    return
.catch none from try to end using none
.catch number from try to end using number
"""),
}
"""Programs by name."""
