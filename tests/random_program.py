# SPDX-License-Identifier: Apache-2.0
"""Random programs that are quick to compile."""

from __future__ import annotations

import itertools

from ferryvm.program import Program
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import Verified, verify

MOST = 700
"""Instructions; some texts in Skiff have thousands, which take compilers ten seconds."""


def small_programs(seed: int, kind: ProgramKind, first: int, count: int) -> list[Verified]:
    """So many programs of at most `MOST` instructions, from a number on."""
    made = (generate(seed, number, kind) for number in itertools.count(first))
    return [verify(each) for each in itertools.islice(filter(_is_small, made), count)]


def _is_small(program: Program) -> bool:
    return len(program.code) <= MOST
