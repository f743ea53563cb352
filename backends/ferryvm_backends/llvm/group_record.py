# SPDX-License-Identifier: Apache-2.0
"""The record of a launch, written where control leaves a parallel region (`ferryvm.ir.group`).

    exit: frames, registers ──┐
    exit: frames, registers ──┼─> one block for all exits of a group ─> record(…) ─> return
    …                       ──┘

One cold function for each group makes the pieces: `ferryvm.ir.group.writer` has its body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ferryvm.ir.graph import Phase
from ferryvm.ir.group.record import ITEMS
from ferryvm.ir.group.writer import record_body
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import word
from ferryvm_backends.llvm.function import FunctionContext
from ferryvm_backends.llvm.symbol import UNFINISHED

_COLD = ("noinline", "cold", "optnone", '"no-builtins"')


class GroupRecords:
    """The blocks of one native function in which exits of groups come together."""

    def __init__(self, function: FunctionContext) -> None:
        self.function, self.builder = function, function.builder
        self._blocks: dict[tuple[object, ...], tuple[ir.Block, list[ir.PhiInstr]]] = {}

    def leave(
        self,
        phase: Phase,
        values: Sequence[ir.Value],
        status: ir.Value,
        finish: Callable[[ir.Value], None],
    ) -> None:
        """End the block: write the record of a phase with these values, and return by `finish`,
        which gets the status and is called once for all exits."""
        key = phase.group, *phase.values[ITEMS:]
        here, found = self.builder.block, self._blocks.get(key)
        own = [word(phase.region), *values, status]  # an exit may compute what items share
        if found is None:
            block = self.function.block(f"record{phase.group.number}")
            self.builder.position_at_end(block)
            found = self._blocks[key] = block, [self.builder.phi(each.type) for each in own]
            phis = found[1]
            arguments = [self.function.control, self.function.frame, *phis[:-1]]
            self.builder.call(self._writer(phase), arguments, cconv="fastcc")
            self.function.shared.count(self.function.storage, UNFINISHED, word(1))
            finish(phis[-1])
            self.builder.position_at_end(here)
        block, phis = found
        for phi, value in zip(phis, own, strict=True):
            phi.add_incoming(value, here)
        self.builder.branch(block)

    def _writer(self, phase: Phase) -> ir.Function:
        """The function that writes the record of a group."""
        shared, group = self.function.shared, phase.group
        if group not in shared.records:
            body = record_body(self.function.body, phase)
            native = shared.function(body.name, body)
            for attribute in _COLD:
                native.attributes.add(attribute)
            shared.records[group] = native, body
        return shared.records[group][0]
