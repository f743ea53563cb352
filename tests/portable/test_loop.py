# SPDX-License-Identifier: Apache-2.0
"""Loops are exported as functions: what they read are arguments, what they change are results."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm.portable import ExportError, export_region
from ferryvm.portable.region import region_subject
from ferryvm.verify import Verified, verify

from ..tier import sample
from .conftest import Folder, run

TWO_EXITS = """
.function main
    i64.const 5
    i64.const 3
    call search
    drop
    halt

.function search (i64 i64) -> (i64)
.local i64
    i64.const 100
:again
    local.get 2
    local.get 0
    i64.ge_s
    jump_if none
    local.get 2
    local.get 1
    i64.eq
    jump_if found
    local.get 2
    i64.const 1
    i64.add
    local.set 2
    jump again
:none
    i64.const 1
    i64.add
    return 1
:found
    local.get 2
    i64.add
    return 1
"""


@pytest.fixture(scope="session")
def search() -> Verified:
    return verify(ferryvm.assemble(TWO_EXITS))


def interface(verified: Verified, name: str) -> tuple[list[str], list[str]]:
    subject = region_subject(verified, name)
    return [each for each, _ in subject.parameters], [each for each, _ in subject.results]


def test_a_loop_takes_what_it_reads_and_returns_what_is_read_after_it(kernels: Verified) -> None:
    assert interface(kernels, "dot/loop.1") == (["a", "b", "local_2", "local_3"], ["new_local_2"])
    assert interface(kernels, "axpy/loop.1") == (["a", "x", "y", "local_3"], [])


def test_exits_of_a_loop_have_numbers(search: Verified) -> None:
    parameters, results = interface(search, "search/loop.1")
    assert parameters == ["local_0", "local_1", "local_2", "operand_0"]
    assert results == ["new_local_2", "exit"]


@pytest.mark.parametrize("name", sample(["dot/loop.1", "steps/loop.1", "histogram/loop.1"], 1))
def test_an_exported_loop_proves_itself(exported: Folder, name: str) -> None:
    checked = run(exported(name), "make", "check", "CC=gcc")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.nightly
def test_a_loop_with_two_exits_and_an_operand_below_it_proves_itself(
    search: Verified, tmp_path: Path
) -> None:
    export_region(search, "search/loop.1", tmp_path / "folder")
    checked = run(tmp_path / "folder", "make", "check", "CC=gcc")
    assert checked.returncode == 0, checked.stdout
    loop = ctypes.CDLL(str(tmp_path / "folder" / "libsearch_loop_1.so")).search_loop_1
    at, way_out = ctypes.c_int64(), ctypes.c_int64()

    def left(limit: int, wanted: int) -> tuple[int, int]:
        given = map(ctypes.c_int64, (limit, wanted, 0, 100))
        assert loop(*given, ctypes.byref(at), ctypes.byref(way_out)) == 0
        return at.value, way_out.value

    assert left(5, 3) == (3, 1)
    assert left(3, 5) == (3, 0)


def test_an_exported_loop_computes_what_its_function_does(exported: Folder) -> None:
    folder = exported("dot/loop.1")
    assert run(folder, "make", "CC=gcc").returncode == 0
    loop: Any = ctypes.CDLL(str(folder / "libdot_loop_1.so")).dot_loop_1
    a, b = np.arange(5.0), np.linspace(-1, 1, 5)
    total = ctypes.c_double()
    pointers = [(ctypes.c_void_p(each.ctypes.data), ctypes.c_int64(5)) for each in (a, b)]
    flat = [each for pair in pointers for each in pair]
    assert loop(*flat, ctypes.c_double(0.5), ctypes.c_int64(1), ctypes.byref(total)) == 0
    assert total.value == 0.5 + sum(a[i] * b[i] for i in range(1, 5))


def test_a_loop_that_is_left_by_a_host_call_is_refused(tmp_path: Path) -> None:
    text = "(define (f (n i64)) (while (> n 0) (print! n) (set! n (- n 1)))) (f 2)"
    verified = verify(ferryvm.compile(text))
    with pytest.raises(ExportError, match="it calls the host function"):
        export_region(verified, "f/loop.1", tmp_path / "folder")


def test_a_whole_program_is_refused(kernels: Verified, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="is a program; name a function, a loop or a launch"):
        export_region(kernels, "program", tmp_path / "folder")
