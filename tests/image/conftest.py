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
.function main
    static.get s
    i32.const 0
    call_indirect (i64) -> i64
    halt
.function f (x i64) -> i64
.local y i64
    local.get x
    return
"""


@pytest.fixture(scope="session")
def program() -> Program:
    return ferryvm.assemble(TEXT, "small.fasm")
