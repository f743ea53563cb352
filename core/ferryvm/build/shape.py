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

from ferryvm.isa import Type
from ferryvm.isa.table import Operand


class Special(enum.Enum):
    """Elements of a shape that are not types."""

    BOTTOM = "nothing"
    FLOOR = "the start of the block"
    ANYTHING = "anything"
    """Any number of operands of any types, as they are popped; on top of a floor or bottom."""
    UNKNOWN = "unknown"
    """One operand of any type."""

    __hash__ = object.__hash__


Kind = Type | Special

POP = {type_: object() for type_ in Type}
"""Keys of `Shape.after`: a pop of that type."""


class MismatchError(Exception):
    """Operands are missing, or have other types."""


class Shape:
    """A stack of operands; created by `bottom` and `push` alone."""

    __slots__ = ("after", "below", "depth", "is_reachable", "kind", "plain")

    def __init__(self, kind: Kind, below: Shape | None) -> None:
        self.kind = kind
        self.below: Shape = below if below is not None else self
        self.after: dict[object, Shape] = {}
        """Shapes after a push of a kind (the key), a pop (a key of POP), or an instruction (the
        number of its effect)."""
        is_operand = isinstance(kind, Type) or kind is Special.UNKNOWN
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
            found = self.after[kind] = Shape(kind, self)
        return found

    def push_all(self, kinds: Sequence[Kind]) -> Shape:
        """The shape with these operands on top, the last one topmost."""
        shape = self
        for kind in kinds:
            shape = shape.push(kind)
        return shape

    def pop(self, wanted: Kind | None) -> tuple[Shape, Kind]:
        """The shape below the top, and the kind of the top, which must be `wanted` (None: any).

        Raises MismatchError if there is no operand, or another.
        """
        kind = self.kind
        if kind is Special.ANYTHING:
            return self, wanted or Special.UNKNOWN
        if kind is Special.FLOOR or kind is Special.BOTTOM:
            raise MismatchError
        if kind is Special.UNKNOWN:
            return self.below, wanted or kind
        if wanted is not None and wanted is not kind and wanted is not Special.UNKNOWN:
            raise MismatchError
        return self.below, kind

    def pop_all(self, kinds: Sequence[Type]) -> Shape:
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
        for operand in reversed(pops):
            if isinstance(operand, Type):
                shape, _ = shape.pop(operand)
            else:
                shape, bound[operand.name] = shape.pop(bound.get(operand.name))
        for operand in pushes:
            shape = shape.push(operand if isinstance(operand, Type) else bound[operand.name])
        return shape

    def __str__(self) -> str:
        kinds: list[str] = []
        shape = self
        while isinstance(shape.kind, Type) or shape.kind is Special.UNKNOWN:
            if len(kinds) == 8:
                kinds.append("...")
                break
            kinds.append(str(shape.kind) if isinstance(shape.kind, Type) else "unknown")
            shape = shape.below
        if shape.kind is Special.ANYTHING:
            kinds.append("...")
        return f"({' '.join(reversed(kinds))})"


def bottom() -> Shape:
    """An empty stack. Shapes with the same bottom are interned together."""
    return Shape(Special.BOTTOM, None)
