# SPDX-License-Identifier: Apache-2.0
"""LLVM at its lowest level, in tests that are about something else than its optimiser.

LLVM takes half the time of a compilation, and the passes of ferryvm run as usual. In some rooms one
test in four has LLVM at its usual level, by rotation; the conformance suite chooses its cases.
"""

from __future__ import annotations

import contextlib
import dataclasses
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferryvm.backend import Code, Options
from ferryvm.region.region import Region

ROOMS = ("engine", "examples", "fuzz", "object", "python", "skiff", "testing")
"""Folders of tests."""

_FOLDERS = [Path(__file__).with_name(room) for room in ROOMS]

USUAL = 4
"""Of so many tests one has LLVM at its usual level."""

QUICK = pytest.StashKey[bool]()
"""Of a test for which LLVM is to compile quickly in any room."""


def _is_quick(item: pytest.Item) -> bool:
    is_turn = zlib.crc32(item.name.encode()) % USUAL != 0
    return item.stash.get(QUICK, is_turn and any(room in item.path.parents for room in _FOLDERS))


@contextlib.contextmanager
def chosen_level(item: pytest.Item) -> Iterator[None]:
    """The level at which LLVM compiles in a test, while the test runs."""
    if not _is_quick(item):
        yield
        return
    from ferryvm_backends.llvm import LlvmBackend  # not all rooms need it

    usual = LlvmBackend.compile

    def compile_(self: LlvmBackend, region: Region, options: Options) -> Code:
        return usual(self, region, dataclasses.replace(options, quick=True))

    LlvmBackend.compile = compile_  # type: ignore[method-assign] # until the test has ended
    try:
        yield
    finally:
        LlvmBackend.compile = usual  # type: ignore[method-assign] # as above
