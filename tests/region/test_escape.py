# SPDX-License-Identifier: Apache-2.0
"""The tags that leave functions: what a clause takes stays, records may be of any."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.region.escape import escaping
from ferryvm.verify import verify

PROGRAM = """
.tag a
.tag b i64
.tag c
.table throws quiet
.function main
    call quiet
    halt
.function quiet
    return
.function throws
    i32.const 0
    jump_if other
    throw a
:other
    i64.const 3
    throw b
.function catches
:try
    call throws
:end
    return
:handler
    drop
    return
.catch b from try to end using handler
.function all
:try
    call passes
    throw c
:end
:handler
    return
.catch_all from try to end using handler
.function passes
    call catches
    return
.function indirect
    i32.const 0
    call_indirect ()
    return
.function record
    i64.const 0
    i64.const 0
    i64.const 0
    i64.const 0
    i64.const 0
    throw_record
.function left
    call right
    throw c
.function right
:try
    call left
:end
    throw a
:handler
    return
.catch c from try to end using handler
"""

ESCAPING = {
    "main": "",
    "quiet": "",
    "throws": "ab",
    "catches": "a",
    "all": "",
    "passes": "a",
    "indirect": "ab",
    "record": "abc",
    "left": "ac",
    "right": "a",
}


@pytest.mark.parametrize("name", ESCAPING)
def test_tags_leave_the_functions_that_do_not_catch_them(name: str) -> None:
    program = ferryvm.assemble(PROGRAM)
    (number,) = [n for n, f in enumerate(program.functions) if f.name == name]
    tags = escaping(verify(program), [number])
    assert "".join(program.tags[tag].name for tag in sorted(tags)) == ESCAPING[name]
