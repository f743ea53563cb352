# SPDX-License-Identifier: Apache-2.0
"""Live-in registers of blocks, by backward data-flow analysis (Aho, Lam, Sethi, Ullman, section
9.2.5).

Whatever is live at an exit's target is live above the exit.
"""

from __future__ import annotations

from ferryvm_backends.vliw.code.operation import MachineBlock, MachineCode, Register

Live = dict[MachineBlock, frozenset[Register]]


def live_at_entry(code: MachineCode) -> Live:
    """The registers whose values each block needs from before."""
    live: Live = dict.fromkeys(code.blocks, frozenset())
    has_changed = True
    while has_changed:
        has_changed = False
        for block in reversed(code.blocks):
            found = _above(block, live)
            if found != live[block]:
                live[block] = found
                has_changed = True
    return live


def _above(block: MachineBlock, live: Live) -> frozenset[Register]:
    needed: set[Register] = set()
    for operation in reversed(block.operations):
        if operation.result is not None:
            needed.discard(operation.result)
        needed.update(operation.registers())
        for target in operation.targets():
            needed |= live[target]
    return frozenset(needed)
