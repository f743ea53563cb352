# SPDX-License-Identifier: Apache-2.0
"""Parallel regions by compilers other than llvm, left in the middle and held against the
reference."""

from __future__ import annotations

import shutil

import pytest

from ..tier import nightly
from . import forced_exit
from .forced_exit import differences
from .llvm.test_groups import EARLY, ENDED, TEXTS

HAS_CC = any(shutil.which(name) for name in ("cc", "gcc", "clang"))
COMPILED = {"cc": forced_exit.cc, "vliw": forced_exit.vliw}
DEFAULT = {"cc": ENDED}
"""The program of a backend by default; vliw takes three seconds of a processor for one."""
CASES = [
    (name, backend) if TEXTS[name] is DEFAULT.get(backend) else nightly((name, backend))
    for name in TEXTS
    for backend in COMPILED
    if backend != "vliw" or TEXTS[name] not in (EARLY, ENDED)
]
"""Items of the two programs that are left out read what others write in the same phase, which vliw
reorders."""


@pytest.mark.parametrize(("name", "backend"), CASES)
def test_the_state_is_exact_where_control_leaves(name: str, backend: str) -> None:
    if backend == "cc" and not HAS_CC:
        pytest.skip("there is no C compiler here")
    growth = 0.5 if TEXTS[name] is DEFAULT.get(backend) else 0.0
    assert [*differences(TEXTS[name], 1, growth, COMPILED[backend])] == []
