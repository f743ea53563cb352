# SPDX-License-Identifier: Apache-2.0
"""Live-in registers of blocks, by backward data-flow analysis (Aho, Lam, Sethi, Ullman, section
9.2.5).

Registers that are live at an exit's target are live above the exit.
"""

from __future__ import annotations

from ferryvm_backends.vliw.code.operation import MachineBlock, MachineCode, Register

Live = dict[MachineBlock, frozenset[Register]]


KnownEffects = dict[MachineBlock, "BlockEffect"]
"""Effects of blocks on liveness, by block."""


def live_at_entry(code: MachineCode, known: KnownEffects | None = None) -> Live:
    """The registers whose values each block needs from before.

    `known`: effects from before, which are taken for blocks that have not changed.
    """
    known = {} if known is None else known
    for block in code.blocks:
        if block not in known or known[block].operations is not block.operations:
            known[block] = BlockEffect(block)
    effects = {block: known[block] for block in code.blocks}
    before: dict[MachineBlock, list[MachineBlock]] = {block: [] for block in code.blocks}
    for block, effect in effects.items():
        for target in effect.set_before:
            before[target].append(block)
    live = {block: frozenset(effect.read) for block, effect in effects.items()}
    changed = dict.fromkeys(code.blocks)
    while changed:
        target, _ = changed.popitem()
        for block in before[target]:
            effect = effects[block]
            more = live[target] - effect.set_before[target] - live[block]
            if more:
                live[block] |= more
                changed[block] = None
    return live


class BlockEffect:
    """A block's effect on liveness: registers that it defines and uses."""

    def __init__(self, block: MachineBlock) -> None:
        self.operations = block.operations
        self.read: set[Register] = set()
        """Registers that it reads before it sets them (upward exposed)."""
        self.set_before: dict[MachineBlock, frozenset[Register]] = {}
        """For each target the registers that are set on every path to it."""
        results: set[Register] = set()
        self.results = results
        """Registers that it sets."""
        for operation in block.operations:
            self.read.update(each for each in operation.registers() if each not in results)
            for target in operation.targets():
                # Later edges to the same target have set more.
                self.set_before.setdefault(target, frozenset(results))
            if operation.result is not None:
                results.add(operation.result)
