# SPDX-License-Identifier: Apache-2.0
"""Checks of items that no item fails, since the number of items is a constant.

The passes that come before show which lengths are constants, so this is for the loops over items
after them.
"""

from __future__ import annotations

from ferryvm.ir.graph import Body, Constant
from ferryvm.ir.loop.induction import find_induction_variable
from ferryvm.ir.loop.natural import find_loops
from ferryvm.ir.member.check import spare_checks
from ferryvm.ir.member.value_range import MemberRanges
from ferryvm.ir.passes.dead_code import remove_dead_code

MOST_KNOWN = 1024
"""Items, at most, of each of which values are computed."""


def spare_item_checks(body: Body) -> None:
    """Remove checks in loops that count from 0 to a constant, where no iteration fails them."""
    for loop in find_loops(body):
        found = find_induction_variable(loop)
        if found is None:
            continue
        start, step, bound = (
            each.bits if isinstance(each, Constant) else -1
            for each in (found.start, found.step, found.bound)
        )
        if (start, step) == (0, 1) and 0 < bound <= MOST_KNOWN:
            ranges = MemberRanges(body, found.value, bound)
            spare_checks((block for block in loop.members if block is not loop.header), ranges)
    remove_dead_code(body)
