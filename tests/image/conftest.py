# SPDX-License-Identifier: Apache-2.0
"""What the tests of images share: a small program that has something in every section."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm import Program

TEXT = """
.host print_i64 (i64)
.static s i64 = 5
.data 8 "ferry"
.table f
.tag e i64 f32
.export f as g
.function main
.catch e from a to b using c
.catch_record from a to b using d
    static.get s
    i32.const 0
:a  call_indirect (i64) -> i64
:b  halt
:c  halt
:d  halt
.function f (x i64) -> i64
.local y i64
    local.get x
    return
"""


@pytest.fixture(scope="session")
def program() -> Program:
    return ferryvm.assemble(TEXT, "small.fasm")
