# SPDX-License-Identifier: Apache-2.0
"""A body as the blocks of a native function."""

from __future__ import annotations

from llvmlite import ir

from ferryvm.ir.graph import Block, Edge, Operation, Terminator
from ferryvm.ir.operation import SAFEPOINTS
from ferryvm.isa.trap import Trap
from ferryvm.machine.control import Status
from ferryvm_backends._llvm.arithmetic import word
from ferryvm_backends.llvm.calling import Calling
from ferryvm_backends.llvm.shared import INT32, Shared, llvm_type, status_constant
from ferryvm_backends.llvm.variant import Variant

_LEAVING = {
    "leave": Status.LEAVE,
    "trap": Status.TRAP,
    "halt": Status.HALT,
    "host": Status.HOST,
}
"""Statuses of the terminators that leave."""


def lower_body(shared: Shared, variant: Variant, builder: ir.IRBuilder) -> None:
    """Emit a body at a builder, which is in a block of its native function."""
    _Blocks(shared, variant, builder).run()


class _Blocks(Calling):
    """Lowers blocks and their ends: a parameter becomes a phi, an edge what comes into it."""

    def __init__(self, shared: Shared, variant: Variant, builder: ir.IRBuilder) -> None:
        super().__init__(shared, variant, builder)
        entry, *others = variant.body.blocks
        if not variant.body.is_root:
            arguments = self.function.args[2:]  # after control block and frame
            self.values.update(zip(entry.parameters, arguments, strict=True))
        self.blocks: dict[Block, ir.Block] = {
            block: self.function.append_basic_block(block.label) for block in variant.body.blocks
        }
        self.builder.branch(self.blocks[entry])
        for block in others:
            self.builder.position_at_end(self.blocks[block])
            for parameter in block.parameters:
                self.values[parameter] = self.builder.phi(llvm_type(parameter.type))

    def run(self) -> None:
        """Emit all blocks."""
        for block in self.body.blocks:
            self.builder.position_at_end(self.blocks[block])
            for operation in block.operations:
                self._operation(operation)
            self._terminator(block.end)

    def _operation(self, operation: Operation) -> None:
        if self.shared.is_forced and operation.name in SAFEPOINTS:
            self._give_up(operation.exit)
        arguments = [self._value(a) for a in operation.arguments]
        special = getattr(self, f"_do_{operation.name}", None)
        if special is not None:
            result = special(operation, *arguments)
        else:
            result = getattr(self, operation.name)(*operation.static, *arguments)
        if operation.type is not None:
            self.values[operation] = result

    # --- ends -------------------------------------------------------------------------------

    def _terminator(self, end: Terminator) -> None:
        arguments = [self._value(a) for a in end.arguments]
        match end.name:
            case "jump":
                self.builder.branch(self._target(end.edges[0]))
            case "branch":
                yes, no = self._targets(end.edges)
                self.builder.cbranch(arguments[0], yes, no)
            case "switch":
                *targets, last = self._targets(end.edges)
                switch = self.builder.switch(arguments[0], last)
                for number, target in enumerate(targets):
                    switch.add_case(word(number), target)
            case "return":
                self._do_return(end, arguments)
            case _:
                fields = {}
                if end.name == "trap":
                    fields["trap"] = ir.Constant(INT32, int(end.fact(0, Trap)))
                if end.name == "host":
                    fields["exit_id"] = ir.Constant(INT32, end.fact(0, int))
                self._leave(end.exit, status_constant(_LEAVING[end.name]), **fields)

    def _do_return(self, end: Terminator, results: list[ir.Value]) -> None:
        if not self.body.is_root:
            self._return(results[0] if results else None, has_left=False)
            return
        slots = [
            self.to_slot(a.word_type, value)
            for a, value in zip(end.arguments, results, strict=True)
        ]
        self.shared.writers.go_back(self.builder, (self.control, self.frame), slots)
        self.builder.ret(status_constant(Status.LEAVE))

    def _targets(self, edges: tuple[Edge, ...]) -> list[ir.Block]:
        """Where edges go; through a block of its own where two go to the same block."""
        targets, taken = [], set()
        for edge in edges:
            if edge.block in taken and edge.arguments:
                between = self.function.append_basic_block("edge")
                here = self.builder.block
                self.builder.position_at_end(between)
                self.builder.branch(self._target(edge))
                self.builder.position_at_end(here)
                targets.append(between)
            else:
                taken.add(edge.block)
                targets.append(self._target(edge))
        return targets

    def _target(self, edge: Edge) -> ir.Block:
        """The block of an edge, told what this block passes to it."""
        for parameter, argument in zip(edge.block.parameters, edge.arguments, strict=True):
            self.values[parameter].add_incoming(self._value(argument), self.builder.block)
        return self.blocks[edge.block]
