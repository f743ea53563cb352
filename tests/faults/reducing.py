# SPDX-License-Identifier: Apache-2.0
"""Reducing the programs that show planted faults: how small, and how fast."""

from __future__ import annotations

import time

from ferryvm.testing import Differ
from ferryvm.testing.generate import LIMITS
from ferryvm.testing.reduction import reduce

from .backend import registry_with
from .search import MOST, Find, program_of
from .table import by_name

SECONDS = 60.0
"""That a reduction may take."""


def reduced(seed: int, name: str, find: Find) -> tuple[int | None, float]:
    """Instructions of the reduced program, and the seconds that took; None if the reducer does not
    see the disagreement."""
    began = time.perf_counter()
    differ = Differ([name], registry=registry_with(by_name([name])), limits=LIMITS, most=MOST)
    reduction = reduce(differ, name, program_of(seed, find.number), SECONDS)
    size = None if reduction is None else len(reduction.program.code)
    return size, time.perf_counter() - began
