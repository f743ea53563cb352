# SPDX-License-Identifier: Apache-2.0
"""A program whose functions tests call, and its host function, which may call back."""

from __future__ import annotations

import ferryvm
from ferryvm import Instance, host, i64

TEXT = """
.host ask (i64) -> (i64)
.static calls i64
.export add
.export scale
.export narrow
.export both
.export nothing
.export asking
.export divide
.export spin
.export deep
.export bytes
.export stop
.export endless
.function begin
    halt
.function add (i64 i64) -> (i64)
    local.get 0
    local.get 1
    i64.add
    return
.function scale (f64 f32) -> (f64)
    local.get 0
    local.get 1
    f64.promote_f32
    f64.mul
    return
.function narrow (i32) -> (i32)
    local.get 0
    return
.function both (i64 f64) -> (i64 f64)
    static.get calls
    i64.const 1
    i64.add
    static.set calls
    local.get 0
    local.get 1
    return
.function nothing
    return
.function asking (i64) -> (i64)
    local.get 0
    host ask
    i64.const 1
    i64.add
    return
.function divide (i64 i64) -> (i64)
    local.get 0
    local.get 1
    i64.div_s
    return
.function spin (i64) -> (i64)
:top
    local.get 0
    i64.const 1
    i64.sub
    local.set 0
    local.get 0
    i64.const 0
    i64.ne
    jump_if top
    i64.const 77
    return
.function deep (i64) -> (i64)
    local.get 0
    i64.eqz
    jump_if end
    local.get 0
    i64.const 1
    i64.sub
    call deep
    return
:end
    i64.const 0
    i64.const 0
    i64.div_s
    return
.function bytes (i64) -> (i64)
    local.get 0
    i64.const 9
    i64.store
    local.get 0
    i64.load
    return
.function stop
    halt
.function endless
:top
    static.get calls
    i64.const 1
    i64.add
    static.set calls
    jump top
"""
PROGRAM = ferryvm.assemble(TEXT, "calls.fasm")


@host
def ask(instance: Instance, x: i64) -> i64:
    """What the tests want of a host function, by its argument."""
    if x == -1:
        raise LookupError("nothing to answer")
    if x == -2:
        return int(instance.divide(1, 0))
    if x == -11:
        raise ValueError(0)
    if x < -11:
        return int(instance.asking(x + 1))
    if x > 0:
        return int(instance.asking(x - 1))
    return 100
