# SPDX-License-Identifier: Apache-2.0
"""Accesses of a batch's regions to elements.

    place + offset(row)      ─>   base of the group + scale * row + constant
    array of the group's own ─>   context array, the elements of the first group, those of the next…

A base is computed once for each group. Arrays that nobody else can see, and whose elements are
stored before they are loaded, are context arrays of the batch: where a row has as many elements in
each, the address of a row of any group is that of the first one plus a multiple of all rows before,
so a pipelined loop needs one pointer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import Block, Constant, Operation, Value
from ferryvm.ir.group.batch_form import GroupRegion
from ferryvm.ir.group.record import Group
from ferryvm.ir.loop.affine import AffineAnalysis, AffineExpression, split_constant
from ferryvm.ir.loop.natural import Loop
from ferryvm.isa.element import Element
from ferryvm.isa.object import ARRAY_HEADER_BYTES
from ferryvm.isa.type import I32, I64, signed

TYPES = {Element.I32: I32, Element.F32: I32, Element.I64: I64, Element.F64: I64}
"""The types by which elements are in context arrays."""


@dataclasses.dataclass(frozen=True)
class OwnArray:
    """An array of a group that no one else sees."""

    start: int
    """The place of its elements, relative to the group's first object."""
    bytes: int
    """Of its elements."""


@dataclasses.dataclass
class OwnArrays:
    """Such arrays of a group."""

    arrays: list[OwnArray]
    places: dict[Value, int]
    """The places of objects, and of what is inside them, relative to the first object."""
    addresses: list[Value] = dataclasses.field(default_factory=list)
    """Of the context arrays."""

    def find(self, place: Value) -> int | None:
        """The number of the array with a place; None if there is none."""
        at = self.places.get(place, -1)
        inside = (n for n, a in enumerate(self.arrays) if a.start <= at < a.start + a.bytes)
        return next(inside, None)


def accesses(loop: Loop) -> Iterator[tuple[Block, Operation]]:
    """The loads and stores of elements in a loop."""
    for block in loop.members:
        for operation in block.operations:
            if operation.name in ("element_load", "element_store"):
                yield block, operation


def own_arrays(
    regions: Iterable[GroupRegion], places: dict[Value, int], extents: Iterable[tuple[int, int]]
) -> list[OwnArray]:
    """The arrays among some objects that can be context arrays. `places`: of objects, and what is
    inside them; `extents`: where objects begin and end."""
    regions = [*regions]
    found = []
    for start, end in extents:
        array = OwnArray(start + ARRAY_HEADER_BYTES, end - start - ARRAY_HEADER_BYTES)
        inside = {value for value, place in places.items() if start <= place < end}
        if all(_is_element(region, inside) for region in regions) and _is_filled(
            regions, places, inside, array
        ):
            found.append(array)
    return found


def _is_element(region: GroupRegion, inside: set[Value]) -> bool:
    """True if a loop uses an object as the place of elements only."""
    for block in region.loop.members:
        for o in (*block.operations, block.end):
            if o.name == "poll":
                continue
            used = [value for value in o.uses() if value in inside]
            is_access = o.name in ("element_load", "element_store")
            if used and not (is_access and used == [o.arguments[0]] and o.static[0] in TYPES):
                return False
    return True


def _is_filled(
    regions: list[GroupRegion], places: dict[Value, int], inside: set[Value], array: OwnArray
) -> bool:
    """True if a region stores into all elements, and regions behind it alone load them."""
    for region in regions:
        own = [(b, o) for b, o in accesses(region.loop) if o.arguments[0] in inside]
        if not own:
            continue
        if any(o.name == "element_load" for _, o in own):
            return False
        m = Builder({})
        m.open(Block("analysis", 0))
        affine, graph = AffineAnalysis(m, (region.variable.value,), region.loop), region.loop.graph
        stored: set[int] = set()
        for block, o in own:
            if not graph.dominates(graph.places[block], graph.places[region.loop.latch]):
                continue
            expression = affine.expression(o.arguments[1])
            numbers = None if expression is None else constants(expression)
            if numbers is None:
                continue
            base, scale = numbers
            base += places[o.arguments[0]] - array.start
            kind = o.static[0]
            assert isinstance(kind, Element)
            size = kind.bytes
            for row in range(region.count):
                stored.update(range(base + scale * row, base + scale * row + size))
        return stored.issuperset(range(array.bytes))
    return False


def constants(expression: AffineExpression) -> tuple[int, int] | None:
    """Base and scale of an expression, if they are constants."""
    scale: Value | None = None
    for _, scale in expression.terms:
        if not isinstance(scale, Constant):
            return None
    if not isinstance(expression.base, Constant):
        return None
    return (
        signed(I64, expression.base.bits),
        signed(I64, scale.bits) if isinstance(scale, Constant) else 0,
    )


class AddressDivision(Builder):
    """Addresses of accesses in a region."""

    def __init__(self, front: Builder, own: OwnArrays, region: GroupRegion, group: Group) -> None:
        """`front`: builds what each group computes once."""
        super().__init__(front.constants)
        self.front, self.own, self.region, self.group = front, own, region, group
        self.affine = AffineAnalysis(front, (region.variable.value,), region.loop)

    def run(self, block: Block) -> None:
        """Change the accesses of a block."""
        operations, block.operations = block.operations, []
        self.open(block)
        for o in operations:
            if o.name in ("element_load", "element_store"):
                self.pc = o.pc
                number = self.own.find(o.arguments[0])
                if number is not None:
                    self._to_context(o, number)
                elif self.region.loop.is_invariant(o.arguments[0]):
                    self._divide(o)
            block.operations.append(o)

    def _divide(self, o: Operation) -> None:
        """Let an access have a place that is the same for all rows of a group."""
        place, offset, *value = o.arguments
        expression = self.affine.expression(offset)
        if expression is None:
            return
        base, more = split_constant(self.front, expression.base)
        if place not in self.own.places:
            place, base = self.front.add(I64, place, base), self.constant(I64, 0)
        offset = self._varying(self.add(I64, base, self.constant(I64, more & I64.mask)), expression)
        o.arguments = (place, offset, *value)

    def _varying(self, base: Value, expression: AffineExpression) -> Value:
        for variable, scale in expression.terms:
            base = self.add(I64, self.mul(I64, variable, scale), base)
        return base

    def _to_context(self, o: Operation, number: int) -> None:
        """Make an access one of a context array."""
        place, offset, *values = o.arguments
        array, address = self.own.arrays[number], self.own.addresses[number]
        inside = self.constant(I64, self.own.places[place] - array.start)
        expression = self.affine.expression(offset)
        known = None if expression is None else constants(expression)
        bytes_ = self.constant(I64, array.bytes)
        if known is not None and known[1] * self.region.count == array.bytes:
            varying = self.mul(I64, self.region.done, self.constant(I64, known[1]))
            place = self.add(I64, varying, self.constant(I64, known[0] & I64.mask))
        else:
            place = self.add(I64, self.mul(I64, self.region.group, bytes_), offset)
        place = self.add(I64, self.add(I64, address, place), inside)
        kind = o.static[0]
        assert isinstance(kind, Element)
        t, zero, item = TYPES[kind], self.constant(I64, 0), o.item
        static = self.group.context(t, self.group.slots + number)
        if values:
            new = self.wrap(values[0]) if t is I32 else values[0]
            o.name, o.static, o.arguments = "context_store", static, (place, zero, new)
        elif t is I32:
            load = self.emit(Operation("context_load", t, static, (place, zero)))
            load.item = item
            o.name, o.static, o.arguments = "extend_u", (), (load,)
        else:
            o.name, o.static, o.arguments = "context_load", static, (place, zero)


def drop_unused(loop: Loop) -> None:
    """Remove what a region computed for addresses."""
    blocks = loop.members
    roots = [o for b in blocks for o in b.operations if o.type is None and o.name != "poll"]
    used: set[Value] = set()
    waiting = [v for o in (*roots, *(b.end for b in blocks)) for v in o.uses()]
    while waiting:
        value = waiting.pop()
        if value not in used:
            used.add(value)
            waiting += value.uses() if isinstance(value, Operation) else ()
    for block in blocks:
        block.operations = [o for o in block.operations if o.type is None or o in used]
