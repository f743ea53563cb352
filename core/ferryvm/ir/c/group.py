# SPDX-License-Identifier: Apache-2.0
"""Barriers and arrays of groups, as OpenCL C statements (The OpenCL Specification 1.2, 6.12.8).

wait:                                the label to which members go that leave
if (left) votes[turn] = left;
barrier(CLK_LOCAL_MEM_FENCE);
left = votes[turn];
turn ^= 1;                           others may vote again before all have looked
if (left) goto next;
"""

from __future__ import annotations

from ferryvm.ir.c.scope import FunctionScope
from ferryvm.ir.graph import Block, Operation

STOPPED = 3
"""Index in `votes` of the status with which a group is not to begin."""


class Groups:
    """Prints operations of groups."""

    def __init__(self, scope: FunctionScope) -> None:
        self.scope = scope
        self._votes = {block.operations[0]: block for block in scope.shared.choices.votes}

    def begin(self) -> None:
        """Skip what a group does that is not to begin."""
        choices = self.scope.shared.choices
        if choices.may_skip:
            self.scope.lines.open(f"if (votes[{STOPPED}]) {{")
            self.scope.lines.add(f"{self.scope.base('left')} = votes[{STOPPED}];")
            self._go(choices.first)
            self.scope.lines.close()

    def _go(self, to: Block | None) -> None:
        if to is None:
            self.scope.lines.add("return left;")
        else:
            self.scope.lines.jump(to)

    def do_member(self, operation: Operation) -> str:
        return "member"

    def do_group_array(self, operation: Operation) -> str:
        """No value: accesses name the array."""
        return "0"

    def do_barrier(self, operation: Operation) -> None:
        lines, choices = self.scope.lines, self.scope.shared.choices
        block = self._votes.get(operation)
        if block is None:
            lines.add(f"barrier({choices.fence});")
            return
        self.scope.base("left")
        lines.add("if (left) votes[turn] = left;")
        lines.add(f"barrier({choices.fence});")
        lines.add("left = votes[turn];")
        lines.add("turn ^= 1;")
        lines.open("if (left) {")
        self._go(choices.votes[block])
        lines.close()
