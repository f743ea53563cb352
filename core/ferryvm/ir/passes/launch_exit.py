# SPDX-License-Identifier: Apache-2.0
"""The exit of a launch's loop for pieces of the record moves behind the loop.

    b0:  continue_launch_if (done and record)      b0:      branch done behind.b0() b1()
         branch done leave() b1()            ─>    behind.b0:  continue_launch_if record
                                                            jump leave()

`launch.test` leaves for a piece only if the items of the range are done, and the branch behind it
asks the same. So the loop over items has one exit less, the one that would be tested for each of
them.

Requires no other pass. Preserves effects and exits.
"""

from __future__ import annotations

from ferryvm.ir.graph import Block, Body, Edge, Operation, Terminator
from ferryvm.ir.loop.preheader import Labels


def sink_launch_exits(body: Body) -> None:
    """Move the exits of launches' loops behind these."""
    found = [block for block in body.blocks if _exit_of(block) is not None]
    if not found:
        return
    labels = Labels(body)
    for block in found:
        exit_ = _exit_of(block)
        assert exit_ is not None
        _done, record = _condition(exit_).arguments
        block.operations.pop()
        edge = block.end.edges[0]
        behind = labels.block(block, "behind")
        exit_.arguments = (record,)
        behind.operations.append(exit_)
        behind.terminator = Terminator(
            "jump", edges=(Edge(edge.block, edge.arguments, edge.is_back),)
        )
        behind.terminator.pc = block.end.pc
        edge.block, edge.arguments, edge.is_back = behind, [], False
        body.blocks.insert(body.blocks.index(block) + 1, behind)


def _exit_of(block: Block) -> Operation | None:
    """The exit at the end of a block that branches on a part of its condition."""
    last = block.operations[-1] if block.operations else None
    if last is None or last.name != "continue_launch_if" or block.end.name != "branch":
        return None
    condition = last.arguments[0]
    if not isinstance(condition, Operation) or condition.name != "all":
        return None
    if block.end.edges[0].is_back:  # it would need a poll
        return None
    return last if condition.arguments[0] is block.end.arguments[0] else None


def _condition(exit_: Operation) -> Operation:
    condition = exit_.arguments[0]
    assert isinstance(condition, Operation)
    return condition
