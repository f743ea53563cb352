# SPDX-License-Identifier: Apache-2.0
"""The operations of a pure function of the instruction table, for compilers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import Block, Body, Operation, Parameter, Value
from ferryvm.ir.use import substitute
from ferryvm.isa.constant_table import ConstantTable
from ferryvm.isa.emitter import Condition
from ferryvm.isa.overflow import EXPANSIONS
from ferryvm.isa.pure_function import Meaning, PureFunction
from ferryvm.isa.type import Type


class FunctionBody(NamedTuple):
    """A function as operations in order."""

    parameters: tuple[Parameter, ...]
    operations: list[Operation]
    result: Value

    def conditional(self) -> set[Operation]:
        """The applications of `PureEmitter.apply_if`: only a selection uses the result, so they can
        be made where it selects them."""
        uses = [argument for operation in self.operations for argument in operation.arguments]
        return {
            chosen
            for operation in self.operations
            if operation.name == "select"
            and isinstance(chosen := operation.arguments[1], Operation)
            and chosen.name == "apply"
            and uses.count(chosen) == 1
            and chosen is not self.result
        }

    def used(self) -> set[Value]:
        """The values on which the result depends."""
        found: set[Value] = {self.result}
        for operation in reversed(self.operations):
            if operation in found:
                found.update(operation.arguments)
        return found


@functools.cache
def function_body(function: PureFunction) -> FunctionBody:
    """The operations of a function, simplified; equal ones are one. Nothing may change them."""
    return meaning_body(function.meaning, function.parameters)


def meaning_body(meaning: Meaning, types: Sequence[Type]) -> FunctionBody:
    """The operations of a meaning whose parameters have these types."""
    block = Block("function", 0)
    parameters = tuple(map(Parameter, types))
    builder = Builder()
    builder.open(block)
    result = meaning(builder, *parameters)
    return FunctionBody(parameters, block.operations, result)


def expand(body: Body) -> bool:
    """Replace each application of a function by the function's operations, those of functions that
    it applies included, and look-ups and tests of overflow likewise; false if there is none."""
    found = False
    while _expand(body):
        found = True
    return found


_EXPANDED = frozenset({"apply", "lookup", *EXPANSIONS})


def _expand(body: Body) -> bool:
    new: dict[Value, Value] = {}
    for block in body.blocks:
        if not any(operation.name in _EXPANDED for operation in block.operations):
            continue
        operations, block.operations = block.operations, []
        builder = Builder(body.constants)
        builder.open(block)
        for operation in operations:
            arguments = [new.get(a, a) for a in operation.arguments]
            builder.pc = operation.pc
            if operation.name == "apply":
                function = operation.fact(0, PureFunction)
                new[operation] = function.meaning(builder, *arguments)
            elif operation.name == "lookup":
                (index,) = arguments
                new[operation] = _selected(builder, operation.fact(0, ConstantTable), index)
            elif operation.name in EXPANSIONS:
                one, other = arguments
                expansion = EXPANSIONS[operation.name]
                new[operation] = expansion(builder, operation.fact(0, Type), one, other)
            else:
                block.operations.append(operation)
    if new:
        substitute(body.blocks, new)
    return bool(new)


def _selected(builder: Builder, table: ConstantTable, index: Value) -> Value:
    """The constant of a table by selections: a bit of the index decides between each two."""
    integer = table.type.integer
    found: list[Value] = [builder.constant(table.type, bits) for bits in table.bits]
    step, none = 1, builder.constant(integer, 0)
    while len(found) > 1:
        bit = builder.bit_and(integer, index, builder.constant(integer, step))
        is_odd = builder.compare(integer, Condition.NE, bit, none)
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [builder.select(is_odd, odd, even) for even, odd in pairs]
        step *= 2
    return found[0]
