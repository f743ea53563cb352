# SPDX-License-Identifier: Apache-2.0
"""Jump threading: branches to a block that is one jump go where that goes.

A jump takes its delay slots, in which such a block does nothing. In front of a loop it stays, as
the loop's preheader. (Muchnick: Advanced Compiler Design and Implementation, 1997, section 18.11.)
"""

from __future__ import annotations

from ferryvm_backends.vliw.code.operation import MachineBlock, MachineCode


def thread_jumps(code: MachineCode) -> None:
    """Thread the jumps of code, and remove blocks that nothing leads to then."""
    entered = {o for b in code.blocks for each in b.operations for o in each.operands}
    others = {other for b in code.blocks for each in b.operations for other in each.others}
    onward: dict[MachineBlock, MachineBlock] = {}
    for block in code.blocks[1:]:
        target = _only_jump(block)
        if target is not None and block not in entered and block not in others:
            onward[block] = target

    for block in [*onward]:
        seen, at = {block}, onward[block]
        while at in onward and at not in seen:
            seen.add(at)
            at = onward[at]
        if at in seen:
            del onward[block]  # the jumps are endless

    def last(block: MachineBlock) -> MachineBlock:
        while block in onward:
            block = onward[block]
        return block

    for block in code.blocks:
        for operation in block.operations:
            if operation.target is not None and block not in onward:
                operation.target = last(operation.target)
    code.blocks[:] = [block for block in code.blocks if block not in onward]


def _only_jump(block: MachineBlock) -> MachineBlock | None:
    """The target of a block that is one jump, not into a loop of one block."""
    if len(block.operations) != 1 or block.operations[0].name != "jump":
        return None
    target = block.operations[0].target
    assert target is not None
    return None if target is block or target.operations[-1].target is target else target
