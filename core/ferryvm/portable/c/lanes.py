# SPDX-License-Identifier: Apache-2.0
"""Sums that loops carry side by side, as vectors of GNU C.

    p2 = p2 + a * x[i];                 lanes_f64 x1;
    p3 = p3 + a * x[i + 1];    ─>       __builtin_memcpy(&x1, x + i + …, sizeof x1);
    …                                   const lanes_f64 x2 = a * x1;
    p9 = p9 + a * x[i + 7];             q1[k1] += x2;

Unroll-and-jam makes such sums, of products of matrices for example. GCC's vectoriser adds each of
them in order by taking its vectors apart, so it is slower than none; lanes of a vector are apart
from the beginning. Each lane is computed as its sum was, in the same order. (Larsen, Amarasinghe:
Exploiting Superword Level Parallelism with Multimedia Instruction Sets, PLDI 2000.)
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

from ferryvm.ir.graph import Block, Body, Constant, Operation, Parameter, Value
from ferryvm.ir.loop.natural import Loop
from ferryvm.ir.operation import PURE
from ferryvm.isa.element import Element
from ferryvm.isa.type import F32, F64, I64, Type

LANES = 8
"""Sums of a group."""

_ORDINARY = PURE | {"array_load", "local_get", "error_if"}
"""Operations that change no memory."""

_ARITHMETIC = frozenset({"fadd", "fsub", "fmul"})


@dataclasses.dataclass(frozen=True)
class Packed:
    """A vector: operations of the same name, lane by lane, or one number in all lanes."""

    values: Sequence[Value]
    operands: tuple[Packed, ...] = ()
    """Of arithmetic."""


@dataclasses.dataclass(frozen=True)
class Sums:
    """A group of sums."""

    parameters: list[Parameter]
    """Their values at the head of the loop."""
    last: Operation
    """The last of the operations that compute the next ones, after all others."""
    root: Packed
    """The next values."""

    @property
    def type(self) -> Type:
        """The type of each sum."""
        return self.parameters[0].word_type


def find_sums(body: Body, loops: Iterable[Loop]) -> list[Sums]:
    """The groups of sums in the innermost loops of a body."""
    uses = Counter(v for b in body.blocks for o in (*b.operations, b.end) for v in o.uses())
    found: list[Sums] = []
    for loop in loops:
        if loop.is_innermost and loop.back_edge is not None:
            found += _of_loop(loop, uses)
    return found


def dead_operations(body: Body, sums: Sequence[Sums]) -> set[Operation]:
    """The operations of which no text is left if sums are vectors: those of the lanes, and what
    only the lanes after the first one use."""
    dead: set[Operation] = set()
    heads: set[Value] = set()
    """Operations of which the first lane's operands are used in the text."""
    for each in sums:
        for packed in _all(each.root):
            is_computed = any(value is not packed.values[0] for value in packed.values)
            if is_computed and isinstance(packed.values[0], Operation):
                dead |= {value for value in packed.values if isinstance(value, Operation)}
                heads.add(packed.values[0])
    users: dict[Value, list[Operation]] = {}
    for block in body.blocks:
        for operation in (*block.operations, block.end):
            for value in operation.uses():
                users.setdefault(value, []).append(operation)
    for block in reversed(body.blocks):
        for operation in reversed(block.operations):
            using = users.get(operation, [])
            if (
                operation.name in PURE
                and using
                and heads.isdisjoint(using)
                and dead.issuperset(using)
            ):
                dead.add(operation)
    return dead


def _all(packed: Packed) -> Iterable[Packed]:
    yield packed
    for operand in packed.operands:
        yield from _all(operand)


def _of_loop(loop: Loop, uses: Counter[Value]) -> Iterable[Sums]:
    edge, latch = loop.back_edge, loop.latch
    assert edge is not None
    for t in (F64, F32):
        places = [n for n, p in enumerate(loop.header.parameters) if p.type is t]
        for start in range(0, len(places) - LANES + 1, LANES):
            group = [loop.header.parameters[n] for n in places[start : start + LANES]]
            next_ = [edge.edge.arguments[n] for n in places[start : start + LANES]]
            root = _Packing(loop, uses, group).root(next_, loop)
            if root is not None:
                yield Sums(group, max(root.values, key=latch.operations.index), root)  # type: ignore[arg-type]  # operations of the latch


class _Packing:
    """Vectors of the values of a block."""

    def __init__(self, loop: Loop, uses: Counter[Value], group: list[Parameter]) -> None:
        self.latch, self.blocks = loop.latch, set(loop.members)
        self.uses, self.group = uses, group
        self._added: set[Value] = set()

    def root(self, values: Sequence[Value], loop: Loop) -> Packed | None:
        """The vector of the next values, if nothing else of the loop reads the present ones."""
        made = self._packed(values)
        self._added = set(values)
        if made is None or not made.operands or self.latch.end.name != "jump":
            return None
        if any(self._reads(block) for block in loop.members):
            return None
        first = min(
            self.latch.operations.index(value)
            for packed in _all(made)
            for value in packed.values
            if isinstance(value, Operation) and value in self.latch.operations
        )
        rest = self.latch.operations[first:]
        return made if all(operation.name in _ORDINARY for operation in rest) else None

    def _reads(self, block: Block) -> bool:
        """True if a block of the loop reads the present values, other than in the next ones."""
        group = set(self.group)
        inside = [edge for edge in block.end.edges if edge.block in self.blocks]
        return (
            not group.isdisjoint(block.end.arguments)
            or any(not group.isdisjoint(edge.arguments) for edge in inside)
            or any(
                not group.isdisjoint(o.arguments) for o in block.operations if o not in self._added
            )
        )

    def _packed(self, values: Sequence[Value]) -> Packed | None:
        first = values[0]
        if all(value is first for value in values):
            return Packed(values)
        if list(values) == self.group:
            return Packed(self.group)
        operations = [v for v in values if isinstance(v, Operation) and self.uses[v] == 1]
        if len(operations) < LANES or len(set(operations)) < LANES:
            return None
        if any(o.name != operations[0].name or o not in self.latch.operations for o in operations):
            return None
        if operations[0].name == "array_load":
            return Packed(operations) if _is_row(operations) else None
        if operations[0].name not in _ARITHMETIC:
            return None
        operands = [
            self._packed([o.arguments[n] for o in operations])
            for n in range(len(operations[0].arguments))
        ]
        made = tuple(operand for operand in operands if operand is not None)
        is_vector = any(each.values[0] is not each.values[1] for each in made)
        return Packed(operations, made) if is_vector and len(made) == len(operands) else None


def _is_row(loads: Sequence[Operation]) -> bool:
    """True for loads of neighbouring elements, in rising order."""
    pointer, element = loads[0].arguments[0], loads[0].fact(0, Element)
    terms, start = _linear(loads[0].arguments[1])
    return all(
        load.arguments[0] is pointer
        and load.fact(0, Element) is element
        and _linear(load.arguments[1]) == (terms, (start + lane) & I64.mask)
        for lane, load in enumerate(loads)
    )


def _linear(value: Value, depth: int = 6) -> tuple[Counter[Value], int]:
    """The terms of a sum, and its constant modulo 2^64; sums in it to some depth."""
    if isinstance(value, Constant):
        return Counter(), value.bits
    if isinstance(value, Operation) and value.name == "add" and depth:
        (a, c), (b, d) = (_linear(each, depth - 1) for each in value.arguments)
        return a + b, (c + d) & I64.mask
    return Counter([value]), 0
