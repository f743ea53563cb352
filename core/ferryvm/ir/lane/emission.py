# SPDX-License-Identifier: Apache-2.0
"""A body of lanes while it is made: the current block and mask, and operations appended there."""

from __future__ import annotations

from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    Operation,
    Static,
    Value,
    ValueType,
)
from ferryvm.ir.lane.rule import yields_varying
from ferryvm.ir.lane.shape import UNIFORM, VARYING
from ferryvm.ir.lane.variable import LaneValue, Variables
from ferryvm.isa.type import I64, Type


class Emission:
    """The block to which operations are appended."""

    def __init__(self, body: Body) -> None:
        """`body`: the new body, without blocks."""
        assert body.varying is not None
        self.body, self.varying = body, body.varying
        self.variables = Variables(self.materialise, self.nothing, self.varying)
        self.block = Block("", 0)
        self.mask = self.true
        """The lanes in which the current operation is run."""
        self.is_full = True
        """True if all lanes that are not suspended are in the mask: then there is one."""
        self.pc = -1
        self._ramps: dict[tuple[Block, Value, int], Value] = {}
        self._some: dict[tuple[Block, Value], Value] = {}

    @property
    def true(self) -> Value:
        """All lanes."""
        return self.body.constant(BOOLEAN, 1)

    def start(self, block: Block, mask: Value, is_full: bool) -> None:
        """Go on in a block, with the lanes of a mask."""
        self.block, self.mask, self.is_full = block, mask, is_full

    def emit(
        self,
        name: str,
        t: ValueType | None,
        static: tuple[Static, ...] = (),
        arguments: tuple[Value, ...] = (),
    ) -> Operation:
        """Append an operation."""
        operation = Operation(name, t, static, arguments)
        operation.pc = self.pc
        if t is not None and yields_varying(operation, self.varying):
            self.varying.add(operation)
        self.block.operations.append(operation)
        return operation

    def constant(self, t: ValueType, number: int) -> Constant:
        """A constant of the body."""
        mask = t.mask if isinstance(t, Type) else 1
        return self.body.constant(t, number & mask)

    def nothing(self, t: ValueType) -> Value:
        """Some value."""
        return self.constant(t, 0)

    def materialise(self, found: LaneValue, block: Block | None = None) -> Value:
        """The value of each lane as one operand; a uniform value is one as it is."""
        if found.shape is VARYING or found.shape == UNIFORM:
            return found.value
        block = self.block if block is None else block
        key = (block, found.value, found.shape)
        if key not in self._ramps:
            here, self.block = self.block, block
            t = found.value.type
            stride = self.constant(t, found.shape)
            self._ramps[key] = self.emit("ramp", t, (t,), (found.value, stride))
            self.block = here
        return self._ramps[key]

    # --- masks ------------------------------------------------------------------------------

    def both(self, mask: Value, p: Value) -> Value:
        """The lanes of a mask in which a condition holds."""
        if mask is self.true or p is mask:
            return p
        return mask if p is self.true else self.emit("all", BOOLEAN, (), (mask, p))

    def none(self, p: Value) -> Value:
        """The negation of a condition."""
        if isinstance(p, Constant):
            return self.constant(BOOLEAN, 1 - p.bits)
        return self.emit("none", BOOLEAN, (), (p,))

    def either(self, old: LaneValue | None, mask: Value) -> LaneValue:
        """The lanes of two masks, of which the first may be missing."""
        if old is None or old.value is mask:
            return LaneValue(mask, self.shape(mask))
        joined = self.emit("any", BOOLEAN, (), (old.value, mask))
        return LaneValue(joined, self.shape(joined))

    def blend(self, mask: Value, new: LaneValue, old: LaneValue | None) -> LaneValue:
        """A new value in the lanes of a mask, the old one in others."""
        if old is None or old == new or mask is self.true:
            return new
        a, b = self.materialise(new), self.materialise(old)
        if a.type is BOOLEAN:
            yes, no = self.both(mask, a), self.both(self.none(mask), b)
            blended: Value = self.emit("any", BOOLEAN, (), (yes, no))
        else:
            blended = self.emit("select", a.type, (), (mask, a, b))
        return LaneValue(blended, self.shape(blended))

    def shape(self, value: Value) -> int | None:
        """The shape of an operand."""
        return VARYING if value in self.varying else UNIFORM

    def some(self) -> Value:
        """True if there is a lane in the mask."""
        key = (self.block, self.mask)
        if key not in self._some:
            self._some[key] = self.emit("any_lane", BOOLEAN, (), (self.mask,))
        return self._some[key]

    def safe(self, value: Value, otherwise: int) -> Value:
        """As `chosen`, of an operand that does no harm if it is a constant."""
        return value if isinstance(value, Constant) else self.chosen(value, otherwise)

    def chosen(self, value: Value, otherwise: int) -> Value:
        """A uniform operand, or a number where no lane takes part."""
        if self.is_full:
            return value
        other = self.constant(value.type, otherwise)
        return self.emit("select", value.type, (), (self.some(), value, other))

    def offset(self, value: Value, distance: int) -> Value:
        """A uniform i64 plus a number."""
        return self.emit("add", I64, (I64,), (value, self.constant(I64, distance)))
