# SPDX-License-Identifier: Apache-2.0
"""A body as the blocks of a native function."""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir

from ferryvm.ir.graph import Block, Body, Edge, Operation, Terminator
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

_LONGEST = 32
"""Operations of a loop that is mined, at most."""

_BRANCHES = SAFEPOINTS | {"call", "call_indirect", "canonicalise"}
"""Operations from which control may go elsewhere than straight to the next one."""


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
        self._back: dict[Operation, Edge] = {}
        self._strips: dict[Block, tuple[ir.Block, list[ir.PhiInstr]]] = {}
        """What is in front of loops, by head: where a strip of one begins."""
        if shared.strips:
            for poll, edge in _mined(variant.body):
                self._back[poll] = edge
                if edge.block not in self._strips:
                    self._strips[edge.block] = self._strip(edge.block)

    def _strip(self, head: Block) -> tuple[ir.Block, list[ir.PhiInstr]]:
        """A block in front of a head, with what it gets for the head's parameters.

        It makes two loops of one: the inner one goes on while there is budget, the outer one looks
        at the flag. How often the inner one goes round is known as it begins, so it can be
        vectorised. (Loop strip mining; Wolfe: High Performance Compilers, 1996, section 9.7.)
        """
        block = self.function.append_basic_block(f"{head.label}.strip")
        self.builder.position_at_end(block)
        begun = [self.builder.phi(llvm_type(each.type)) for each in head.parameters]
        self.builder.branch(self.blocks[head])
        for parameter, value in zip(head.parameters, begun, strict=True):
            self.values[parameter].add_incoming(value, block)
        return block, begun

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

    def _onward(self, poll: Operation) -> ir.Block | None:
        return self._strip_begun(self._back[poll]) if poll in self._back else None

    def _strip_begun(self, edge: Edge) -> ir.Block:
        """Where a strip begins that an edge leads to, told what this block passes to it."""
        block, begun = self._strips[edge.block]
        for phi, argument in zip(begun, edge.arguments, strict=True):
            phi.add_incoming(self._value(argument), self.builder.block)
        return block

    def _target(self, edge: Edge) -> ir.Block:
        """The block of an edge, told what this block passes to it."""
        if edge.block in self._strips and not edge.is_back:
            return self._strip_begun(edge)
        for parameter, argument in zip(edge.block.parameters, edge.arguments, strict=True):
            self.values[parameter].add_incoming(self._value(argument), self.builder.block)
        return self.blocks[edge.block]


def _mined(body: Body) -> Iterator[tuple[Operation, Edge]]:
    """The polls of loops that may be vectorised, each with the edge that goes back after it.

    These are short, have no loop inside, and leave by their condition alone. Others only get
    slower by a loop around them, or by being vectorised.
    """
    places = {block: place for place, block in enumerate(body.blocks)}
    for place, block in enumerate(body.blocks):
        if not block.operations or block.operations[-1].name != "poll" or block.end.name != "jump":
            continue
        (edge,) = block.end.edges
        between = body.blocks[places[edge.block] : place + 1]  # all of the loop, maybe more
        operations = [operation for each in between for operation in each.operations]
        if (
            edge.is_back
            and len(operations) <= _LONGEST
            and sum(operation.name in _BRANCHES for operation in operations) == 1
        ):
            yield block.operations[-1], edge
