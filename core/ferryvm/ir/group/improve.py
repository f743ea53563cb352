# SPDX-License-Identifier: Apache-2.0
"""Improvements of loops over items, behind the passes that every compiler runs.

    split_item_loops ─> spare_item_checks ─> drop_restored ─> divide_into_rows ─> split_at_numbers ─┐
                         check_before_loops <─ passes of a compiler <──────────────────────────────┘

So most loops over items have no exits and no branches that are the same for all items, and their
items access neighbouring elements: a compiler can run several together.
"""

from __future__ import annotations

from collections.abc import Callable

from ferryvm.ir.graph import Body
from ferryvm.ir.group.branch import fix_ends, split_item_loops
from ferryvm.ir.group.check import spare_item_checks
from ferryvm.ir.group.early_check import check_before_loops
from ferryvm.ir.group.number_split import split_at_numbers
from ferryvm.ir.group.restored import drop_restored
from ferryvm.ir.group.row import divide_into_rows
from ferryvm.ir.passes.code_motion import hoist_invariants
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.passes.value_numbering import number_values


def improve_item_loops(body: Body, of_rows: Callable[[Body], object] | None = None) -> None:
    """Improve the loops over the items of parallel regions. `of_rows`: a pass for rows that have
    all checks of their items yet, behind which checks are often invariant; then loops are not
    divided at numbers of items."""
    if of_rows is None:
        hoist_invariants(body, divisions=True)
    if split_item_loops(body):
        number_values(body)
        thread_jumps(body)
        fix_ends(body)
        remove_dead_code(body)
    spare_item_checks(body)
    drop_restored(body)
    is_changed = bool(divide_into_rows(body))
    if of_rows is None and split_at_numbers(body):
        is_changed = True
        thread_jumps(body)
    if is_changed:
        hoist_invariants(body)
        number_values(body)
    if of_rows is not None:
        of_rows(body)
    check_before_loops(body, invariant=of_rows is not None)
