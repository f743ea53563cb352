# SPDX-License-Identifier: Apache-2.0
"""Parallel regions by compilers other than llvm, left in the middle and held against the reference."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from ferryvm.region.region import Region

from ..tier import nightly
from . import forced_exit
from .forced_exit import Run, differences
from .llvm.test_groups import ENDED, TEXTS

HAS_CC = any(shutil.which(name) for name in ("cc", "gcc", "clang"))
BACKENDS = [
    pytest.param(
        forced_exit.cc, id="cc", marks=pytest.mark.skipif(not HAS_CC, reason="no compiler")
    )
]


@pytest.mark.parametrize("compiled", BACKENDS)
@pytest.mark.parametrize(
    "name", [name if text is ENDED else nightly(name) for name, text in TEXTS.items()]
)
def test_the_state_is_exact_where_control_leaves(
    name: str, compiled: Callable[[Region], Run]
) -> None:
    step = 3 if TEXTS[name] is ENDED else 1
    assert [*differences(TEXTS[name], step, compiled=compiled)] == []
