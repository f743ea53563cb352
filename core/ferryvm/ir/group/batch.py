# SPDX-License-Identifier: Apache-2.0
"""Batches of groups: the same parallel region of many groups in one loop.

    for each group:                     for each batch of groups:
        arrays, checks                      arrays, checks of all groups of the batch
        for each row: region 0      ─>      for each group, row: region 0
        for each row: region 1              for each group, row: region 1

So a loop that a compiler pipelines has many iterations, not those of one group.

    first group ─> fits ─> checks: next group … ─> objects: next group … ─> region 0 ─> region 1 ─> poll
             └──> unfit

Nothing may leave between the first group's regions and the last one's: a state has one group in its
middle. So all exits are those in front of the first group's regions, and the poll behind the batch,
where its groups are done. What other groups would check there is computed for all of them, without
an effect; if a check may fail, the batch has one group, and the others come when they are first.
Loops over rows do not poll: the groups of a batch are few, and so are their rows (`bounded`).

Groups are items of a launch, and so independent of each other: the order in which their regions
access memory does not matter. Each group has the objects at the places where they would be. What
differs between groups and is used in regions is computed with the checks, into context arrays whose
elements are groups.

Regions are loops over items, or rows of them, without exits and inner loops, one after the other;
between them is nothing that reads or writes memory. Other launches stay as they are. Requires
`early_check`.
"""

from __future__ import annotations

from ferryvm.ir.control_flow_graph import remove_unreached
from ferryvm.ir.graph import (
    Body,
    Module,
    Operation,
)
from ferryvm.ir.group.batch_builder import BatchBuilder
from ferryvm.ir.group.batch_form import NotBatchedError, group_chain
from ferryvm.ir.group.record import Group
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.passes.dead_code import remove_dead_code


def batch_groups(module: Module, body: Body) -> int:
    """Run the groups of launches in batches where that is possible; the number of these
    launches."""
    made = 0
    for group in module.groups:
        for loop in find_loops(body):
            if _begins(loop, group):
                try:
                    BatchBuilder(body, group, group_chain(loop)).run()
                    made += 1
                except NotBatchedError:
                    pass
                break
    if made:
        remove_unreached(body)
        _drop_unread(body)
        remove_dead_code(body)
    return made


def _begins(loop: Loop, group: Group) -> bool:
    return any(o.name == "begin_group" and o.fact(0, int) == group.number for o in loop.operations)


def _drop_unread(body: Body) -> None:
    """Remove what is stored into context arrays for the records of groups that no exit names."""
    states = (o.state for b in body.blocks for o in (*b.operations, b.end) if o.state is not None)
    numbers = {state.phase.group.number for state in states if state.phase is not None}
    loaded = {o.static[1:] for o in body.operations if o.name == "context_load"}

    def is_read(operation: Operation) -> bool:
        if operation.name == "begin_group":
            return operation.static[0] in numbers
        static = operation.static[1:]
        return operation.name != "context_store" or static[0] in numbers or static in loaded

    for block in body.blocks:
        block.operations = [o for o in block.operations if is_read(o)]
