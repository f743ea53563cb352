# SPDX-License-Identifier: Apache-2.0
"""Shapes of the operand stack: lists of its types, hash-consed.

Equal stacks are one object, and each caches the shapes after instructions. So checking an
instruction whose effect on this stack is known is a dictionary lookup, and comparing stacks at a
join is `is`, however deep they are.

    bottom ── i64 ── i32            a stack of two operands
    bottom ── i64 ── FLOOR ── f64   the i64 is below a block's floor: the block cannot pop it
    bottom ── ANYTHING ── i32       unreachable code: below the i32, any operands can be popped

Unreachable code is checked as in the validation algorithm of WebAssembly (Core, appendix).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from ferryvm.build.object_type import ObjectTypes
from ferryvm.isa import Type
from ferryvm.isa.table import Operand, Variable
from ferryvm.isa.type import Reference, ValueType


class Special(enum.Enum):
    """Elements of a shape that are not types."""

    BOTTOM = "nothing"
    FLOOR = "the start of the block"
    ANYTHING = "anything"
    """Any number of operands of any types, as they are popped; on top of a floor or bottom."""
    UNKNOWN = "unknown"
    """One operand of any type."""

    __hash__ = object.__hash__


Kind = Type | Reference | Special


def pop_key(type_: ValueType) -> object:
    """The key of `Shape.after` for a pop of that type."""
    return "pop", type_


class MismatchError(Exception):
    """Operands are missing, or have other types."""


class Shape:
    """A stack of operands; created by `bottom` and `push` alone."""

    __slots__ = ("after", "below", "depth", "is_reachable", "kind", "plain", "types")

    def __init__(self, kind: Kind, below: Shape | None, types: ObjectTypes) -> None:
        self.kind = kind
        self.types = types
        """The reference types of the program."""
        self.below: Shape = below if below is not None else self
        self.after: dict[object, Shape] = {}
        """Shapes after a push of a kind (the key), a pop (`pop_key`), or an instruction (the
        number of its effect)."""
        is_operand = not isinstance(kind, Special) or kind is Special.UNKNOWN
        self.depth: int = 0 if below is None else below.depth + is_operand
        """Number of operands."""
        self.is_reachable: bool = kind is not Special.ANYTHING and (
            below is None or below.is_reachable
        )
        self.plain: Shape = self
        """The same operands without floors."""
        if below is not None:
            if kind is Special.FLOOR:
                self.plain = below.plain
            elif below.plain is not below:
                self.plain = below.plain.push(kind)

    def push(self, kind: Kind) -> Shape:
        """The shape with one more operand on top."""
        found = self.after.get(kind)
        if found is None:
            found = self.after[kind] = Shape(kind, self, self.types)
        return found

    def push_all(self, kinds: Sequence[Kind]) -> Shape:
        """The shape with these operands on top, the last one topmost."""
        shape = self
        for kind in kinds:
            shape = shape.push(kind)
        return shape

    def pop(self, wanted: Kind | None) -> tuple[Shape, Kind]:
        """The shape below the top, and the kind of the top, which must fit `wanted` (None: any).

        Raises MismatchError if there is no operand, or another.
        """
        kind = self.kind
        if kind is Special.ANYTHING:
            return self, wanted or Special.UNKNOWN
        if kind is Special.FLOOR or kind is Special.BOTTOM:
            raise MismatchError
        if kind is Special.UNKNOWN:
            return self.below, wanted or kind
        if wanted is None or wanted is kind or wanted is Special.UNKNOWN:
            return self.below, kind
        if self.types.fits(kind, wanted):
            return self.below, kind
        raise MismatchError

    def pop_all(self, kinds: Sequence[ValueType]) -> Shape:
        """The shape below operands of these types, the last one topmost. Raises MismatchError."""
        shape = self
        for kind in reversed(kinds):
            shape, _ = shape.pop(kind)
        return shape

    def applied(
        self, pops: Sequence[Operand], pushes: Sequence[Operand], bound: dict[str, Kind]
    ) -> Shape:
        """The shape after an instruction; `bound`: open types that are determined already.

        Raises MismatchError.
        """
        shape = self
        settled = frozenset(bound)
        for operand in reversed(pops):
            if not isinstance(operand, Variable):
                shape, _ = shape.pop(operand)
                continue
            name = operand.name
            earlier = bound.get(name)
            if name not in settled:  # the operands of this type need not have one and the same
                earlier = self.types.join(earlier, shape.kind) or earlier
            shape, found = shape.pop(earlier)
            if name not in settled:
                bound[name] = earlier if isinstance(earlier, Reference) else found
        for operand in pushes:
            shape = shape.push(bound[operand.name] if isinstance(operand, Variable) else operand)
        return shape

    def fits(self, wanted: Shape) -> bool:
        """True if all operands, without floors, can stand where those of another shape are
        expected."""
        return self.join(wanted) is wanted

    def join(self, other: Shape) -> Shape | None:
        """The shape of what has one shape or the other, both without floors; None if there is
        none."""
        left, right = self, other
        kinds: list[Kind] = []
        while left is not right:
            kind = left.kind if left.kind is right.kind else self.types.join(left.kind, right.kind)
            if kind is None or left.depth != right.depth:
                return None
            kinds.append(kind)
            left, right = left.below, right.below
        return left.push_all(kinds[::-1])

    def __str__(self) -> str:
        kinds: list[str] = []
        shape = self
        while not isinstance(shape.kind, Special) or shape.kind is Special.UNKNOWN:
            if len(kinds) == 8:
                kinds.append("...")
                break
            kinds.append("unknown" if isinstance(shape.kind, Special) else str(shape.kind))
            shape = shape.below
        if shape.kind is Special.ANYTHING:
            kinds.append("...")
        return f"({' '.join(reversed(kinds))})"


def bottom(types: ObjectTypes) -> Shape:
    """An empty stack. Shapes with the same bottom are interned together."""
    return Shape(Special.BOTTOM, None, types)
