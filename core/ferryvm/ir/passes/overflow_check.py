# SPDX-License-Identifier: Apache-2.0
"""Checks of overflow of a * x + b, made together: one comparison of x excludes them all.

    trap_if (overflows %x * 3)              %r = compare gt_u (%x - low), high - low
    %y = mul %x, 3                 ─>       %y = mul %x, 3;  %z = add %y, 1
    trap_if (overflows %y + 1)              branch %r rare() checked()
    %z = add %y, 1                    rare: trap_if (overflows %x * 3);  trap_if (overflows %y + 1)

In the block `rare` are the checks as they were, in their order and with their states. Only pure
operations are between them, which may be computed before a check fails.

Runs late. Preserves effects and exits.
"""

from __future__ import annotations

from typing import NamedTuple

from ferryvm.ir.build import Builder
from ferryvm.ir.graph import Block, Body, Constant, Edge, Operation, Terminator, Value
from ferryvm.ir.loop.natural import find_loops
from ferryvm.ir.loop.preheader import Labels
from ferryvm.ir.passes.code_motion import is_movable
from ferryvm.isa.emitter import Condition
from ferryvm.isa.overflow import EXPANSIONS
from ferryvm.isa.type import I64, signed

RARE = "rare"
"""Prefix of the label of a block that hardly ever runs."""

FEWEST = 2
"""Checks that are made together, at least."""

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class _Affine(NamedTuple):
    """scale * x + offset, exactly."""

    x: Value
    scale: int
    offset: int


class _Group:
    """Checks in a block that are implied by the range of one value."""

    def __init__(self, x: Value) -> None:
        self.x = x
        self.checks: list[Operation] = []
        self.low, self.high = _LEAST, _MOST
        """The range in which no check fails."""

    @property
    def is_worth(self) -> bool:
        """True if there are several checks, which may pass."""
        return len(self.checks) >= FEWEST and self.low <= self.high


def gather_overflow_checks(body: Body) -> int:
    """Gather checks of overflow in innermost loops; the number of groups."""
    labels = Labels(body)
    made: dict[Block, list[Block]] = {}
    for loop in find_loops(body):
        for block in loop.members if loop.is_innermost else ():
            group = _group(block)
            if group is not None:
                made[block] = [*_split(body, labels, block, group)]
    if made:
        body.blocks[:] = [e for block in body.blocks for e in (block, *made.get(block, ()))]
    return len(made)


def _group(block: Block) -> _Group | None:
    """The first group of checks of a block that are worth it."""
    results = {(o.name, o.static, o.arguments): o for o in block.operations}
    group: _Group | None = None
    exact: dict[Value, _Affine] = {}
    for operation in block.operations:
        if is_movable(operation):
            continue
        found = _overflow(operation)
        if found is not None:
            first, number = found.arguments
            assert isinstance(number, Constant)
            if group is None:
                group = _Group(first)
                exact = {first: _Affine(first, 1, 0)}
            if first in exact:
                name = found.name.removesuffix("_overflows")
                value = _applied(exact[first], name, signed(I64, number.bits))
                if value.scale:
                    _restrict(group, value)
                    group.checks.append(operation)
                    result = results.get((name, found.static, found.arguments))
                    if result is not None:
                        exact[result] = value
                    continue
        if group is not None and group.is_worth:
            return group
        group = None
    return group if group is not None and group.is_worth else None


def _overflow(operation: Operation) -> Operation | None:
    """The test of overflow of a value and a constant in the condition of a check."""
    if operation.name != "trap_if":
        return None
    p = operation.arguments[0]
    parts = p.arguments if isinstance(p, Operation) and p.name == "all" else (p,)
    for part in parts:
        if isinstance(part, Operation) and part.name in EXPANSIONS and part.static == (I64,):
            return part if isinstance(part.arguments[1], Constant) else None
    return None


def _applied(value: _Affine, name: str, number: int) -> _Affine:
    match name:
        case "add":
            return value._replace(offset=value.offset + number)
        case "sub":
            return value._replace(offset=value.offset - number)
    return _Affine(value.x, value.scale * number, value.offset * number)


def _restrict(group: _Group, value: _Affine) -> None:
    """Restrict the range to where a value fits."""
    ends = (_LEAST - value.offset, _MOST - value.offset)
    least, most = ends if value.scale > 0 else ends[::-1]
    group.low = max(group.low, -(-least // value.scale))
    group.high = min(group.high, most // value.scale)


def _split(body: Body, labels: Labels, block: Block, group: _Group) -> tuple[Block, Block]:
    """Move the checks of a block into a block of their own, and what follows them into another."""
    rare, rest = labels.block(block, RARE), labels.block(block, "checked")
    last = block.operations.index(group.checks[-1])
    rest.operations = block.operations[last + 1 :]
    rest.terminator = block.end
    gathered = {*group.checks}
    block.operations = [each for each in block.operations[:last] if each not in gathered]
    rare.operations = group.checks
    m = Builder(body.constants)
    m.open(block)
    m.pc = group.checks[0].pc
    moved = m.sub(I64, group.x, m.constant(I64, group.low & I64.mask))
    size = m.constant(I64, group.high - group.low)
    outside = m.compare(I64, Condition.GT_U, moved, size)
    m.close(Terminator("branch", (), (outside,), edges=(Edge(rare, []), Edge(rest, []))))
    rare.terminator = Terminator("jump", edges=(Edge(rest, []),))
    rare.terminator.pc = m.pc
    return rare, rest
