# SPDX-License-Identifier: Apache-2.0
"""Quotients that all lanes share, such as the row of an item of a launch of dimensions.

    items ─ has a lane another quotient? ─┬─ yes: a body for any quotients
                                          └─ no: a body in which they are uniform

The items of a vector are consecutive, so nearly all vectors are in one row. There the column is
consecutive, and so are the elements of a matrix: they are loaded and stored as vectors. Without
the question they would be gathered. (Loop versioning, for one vector.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    Edge,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.lane.emission import Emission
from ferryvm.ir.lane.variable import LaneValue
from ferryvm.ir.use import users_of
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, Type
from ferryvm.named_tuple import NamedTuple


class Quotient(NamedTuple):
    """The quotient of an item by a multiplication and a shift: `item * factor >> shift`."""

    product: Operation
    """It has no other use."""
    quotient: Operation
    factor: Value
    """As `shift`, a constant or a parameter of the items."""
    shift: Value
    mask: int
    """The bits of the shift that are used."""

    @property
    def operations(self) -> frozenset[Operation]:
        """The operations that yield it, which are the same in each lane."""
        return frozenset({self.product, self.quotient})


def quotients(item: Body) -> list[Quotient]:
    """The quotients of the items in their code."""
    number, users = item.blocks[0].parameters[0], users_of(item)
    shared = {*item.blocks[0].parameters[1:]}
    found = []
    for operation in item.operations:
        if operation.name != "shr_u" or operation.fact(0, Type) is not I64:
            continue
        product, count = operation.arguments
        count, bits = _masked(count)
        if not isinstance(product, Operation) or product.name != "mul":
            continue
        factors = [each for each in product.arguments if each is not number]
        if len(factors) != 1 or users[product] != [operation]:
            continue
        if all(isinstance(each, Constant) or each in shared for each in (*factors, count)):
            found.append(Quotient(product, operation, factors[0], count, bits))
    return found


def _masked(count: Value) -> tuple[Value, int]:
    """A count of bits, and a mask of those of it that are used."""
    if isinstance(count, Operation) and count.name == "bit_and":
        value, mask = count.arguments
        if isinstance(mask, Constant):
            return value, mask.bits
    return count, I64.mask


def versions(any_: Body, shared: Body, item: Body, found: Iterable[Quotient]) -> Body:
    """A body of lanes that asks if all lanes have the same quotients: then it is that of the second
    one, else that of the first one; `item`: their scalar body."""
    assert any_.varying is not None
    assert shared.varying is not None
    body = dataclasses.replace(any_, varying=any_.varying | shared.varying)
    old = item.blocks[0].parameters
    first = Block("items", any_.blocks[0].pc)
    first.parameters = [Parameter(each.type) for each in old]
    new: dict[Value, Value] = dict(zip(old, first.parameters, strict=True))
    emission = Emission(body)
    emission.pc = first.pc
    emission.start(first, emission.true, True)
    number = first.parameters[0]
    differ: Value = emission.constant(BOOLEAN, 0)
    for each in found:
        factor = new.get(each.factor, each.factor)
        shift = new.get(each.shift, each.shift)
        mask = emission.constant(I64, each.mask)
        shift = emission.emit("bit_and", I64, (I64,), (shift, mask))
        quotient: list[Value] = []
        for numbers in (number, emission.materialise(LaneValue(number, 1))):
            product = emission.emit("mul", I64, (I64,), (numbers, factor))
            quotient.append(emission.emit("shr_u", I64, (I64,), (product, shift)))
        other = emission.emit("compare", BOOLEAN, (I64, Condition.NE), (quotient[1], quotient[0]))
        differ = emission.emit("any", BOOLEAN, (), (differ, other))
    is_any = emission.emit("any_lane", BOOLEAN, (), (differ,))
    for version, name in ((any_, "any"), (shared, "shared")):
        for block in version.blocks:
            block.label = f"{name}.{block.label}"
    edges = tuple(Edge(each.blocks[0], [*first.parameters]) for each in (any_, shared))
    first.terminator = Terminator("branch", arguments=(is_any,), edges=edges)
    first.terminator.pc = first.pc
    body.blocks = [first, *any_.blocks, *shared.blocks]
    return body
