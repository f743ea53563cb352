# SPDX-License-Identifier: Apache-2.0
"""LLVM and OpenCL drivers at their lowest level, in tests that are about something else.

LLVM and PoCL take half the time of a compilation, and the passes of ferryvm run as usual. One test
in eight has them at their usual level, by rotation: of llvm in some rooms, while the conformance
suite chooses its cases; of opencl in all rooms. In the nightly job every test has opencl at its
usual one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferryvm.backend import Code, Options
from ferryvm.compiler import RegionCompiler
from ferryvm.region.region import Region

from .tier import TIMES

ROOMS = ("engine", "examples", "fuzz", "object", "python", "skiff", "testing")
"""Folders of tests in which llvm compiles quickly."""

_FOLDERS = [Path(__file__).with_name(room) for room in ROOMS]

USUAL = {"llvm": 8, "opencl": 8}
"""Of so many tests one has the usual level."""

QUICK = pytest.StashKey[bool]()
"""Of a test for which llvm is to compile quickly in any room."""


@contextlib.contextmanager
def chosen_level(item: pytest.Item) -> Iterator[None]:
    """The level at which llvm and opencl compile in a test, while the test runs."""
    from ferryvm_backends.llvm import LlvmBackend  # a test process may not need them so soon
    from ferryvm_backends.opencl import OpenClBackend

    number = zlib.crc32(item.name.encode())
    with contextlib.ExitStack() as levels:
        if item.stash.get(QUICK, _in_room(item.path) and number % USUAL["llvm"] != 0):
            levels.enter_context(_quick(LlvmBackend))
        if number % USUAL["opencl"] != 1 and TIMES not in os.environ:
            levels.enter_context(_quick(OpenClBackend))
        yield


@functools.cache
def _in_room(file: Path) -> bool:
    return any(room in file.parents for room in _FOLDERS)


@contextlib.contextmanager
def _quick(compiler: type[RegionCompiler]) -> Iterator[None]:
    """A compiler compiles quickly."""
    usual = compiler.compile

    def compile_(self: RegionCompiler, region: Region, options: Options) -> Code:
        return usual(self, region, dataclasses.replace(options, quick=True))

    compiler.compile = compile_  # type: ignore[method-assign] # until the test has ended
    try:
        yield
    finally:
        compiler.compile = usual  # type: ignore[method-assign] # as above
