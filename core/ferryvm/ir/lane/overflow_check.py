# SPDX-License-Identifier: Apache-2.0
"""Checks of overflow in lanes, excluded together: one comparison of uniform numbers for a block.

    suspend (overflows i + j)              branch (base of i, or j, is not small) any() small()
    suspend (overflows (i + j) * i)  ─>    any:   the block with its checks
                                           small: the block without those that small numbers pass

A vector of 64-bit products takes several instructions, and the test of its overflow more. Where
items and loop variables, which are uniform or consecutive, are below 2^30, sums and products of
them fit. The comparison is of scalars, for all lanes. (Loop versioning, for one block; the ranges
are intervals: Cousot and Cousot, Abstract Interpretation, POPL 1977.)

Runs last, on the finished body. Preserves effects and exits.
"""

from __future__ import annotations

from ferryvm.ir.build import Builder
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
from ferryvm.ir.loop.clone import Clones
from ferryvm.ir.loop.preheader import Labels
from ferryvm.ir.loop.value_range import Range, exact_range
from ferryvm.ir.use import substitute
from ferryvm.isa.emitter import Condition
from ferryvm.isa.overflow import EXPANSIONS
from ferryvm.isa.type import I64, signed

SMALL = 1 << 30
"""Numbers below it are small: a product of two sums of two fits."""

MOST_LANES = 1 << 10
"""No vector has as many."""

FEWEST = 2
"""Checks that are excluded together, at least."""

MOST_NUMBERS = 4
"""Numbers that are compared, at most."""

_DEEPEST = 12
"""Operations between a value and the numbers that it is computed from, at most."""


def share_overflow_checks(body: Body) -> int:
    """Give blocks of a body of lanes a version without checks of overflow; the number of them."""
    assert body.varying is not None
    labels = Labels(body)
    made: dict[Block, list[Block]] = {}
    for block in [*body.blocks]:
        small = _SmallNumbers(block, body.varying)
        if len(small.excluded) >= FEWEST and len(small.numbers) <= MOST_NUMBERS:
            made[block] = _split(body, labels, block, small)
    if made:
        body.blocks[:] = [e for block in body.blocks for e in (block, *made.get(block, ()))]
    return len(made)


class _SmallNumbers:
    """The checks of a block that pass if some uniform numbers are small."""

    def __init__(self, block: Block, varying: set[Value]) -> None:
        self._varying, self._own = varying, {*block.operations}
        self._ranges: dict[Value, Range | None] = {}
        self.numbers: dict[Value, None] = {}
        """The numbers. They are known where the block begins."""
        self.excluded: dict[Operation, None] = {}
        """The checks, in order."""
        for operation in block.operations:
            if operation.name == "suspend" and self._passes(operation.arguments[1]):
                self.excluded[operation] = None

    def _passes(self, p: Value) -> bool:
        """True if a condition is a test of an overflow that does not happen; for that, more numbers
        may have to be small."""
        if not isinstance(p, Operation) or p not in self._varying:
            return False
        if p.name == "all":
            return any(map(self._passes, p.arguments))
        if p.name not in EXPANSIONS or p.static != (I64,):
            return False
        before, ranges = dict(self.numbers), dict(self._ranges)
        name = p.name.removesuffix("_overflows")
        if self._computed(name, [self._range(each, 0) for each in p.arguments]) is not None:
            return True
        self.numbers, self._ranges = before, ranges
        return False

    def _computed(self, name: str, given: list[Range | None]) -> Range | None:
        a, b = given
        return None if a is None or b is None else exact_range(name, I64, a, b)

    def _range(self, value: Value, depth: int) -> Range | None:
        if value not in self._ranges:
            self._ranges[value] = self._found(value, depth + 1)
        return self._ranges[value]

    def _found(self, value: Value, depth: int) -> Range | None:
        if isinstance(value, Constant):
            number = signed(I64, value.bits)
            return Range(number, number)
        if value.type is not I64 or depth > _DEEPEST:
            return None
        if isinstance(value, Operation):
            found = None
            if value.name == "ramp":
                base, stride = (self._range(each, depth) for each in value.arguments)
                if base is not None and stride is not None:
                    ends = stride.low * MOST_LANES, 0, stride.high * MOST_LANES
                    found = Range(base.low + min(ends), base.high + max(ends))
            elif value.static == (I64,) and len(value.arguments) == 2:
                given = [self._range(each, depth) for each in value.arguments]
                found = self._computed(value.name, given)
            if found is not None:
                return found
        if value in self._varying or value in self._own:
            return None
        self.numbers[value] = None
        return Range(0, SMALL - 1)


def _split(body: Body, labels: Labels, block: Block, small: _SmallNumbers) -> list[Block]:
    """Make a block branch to its two versions; these, and the block behind both."""
    assert body.varying is not None
    any_, fast, join = (labels.block(block, name) for name in ("any", "small", "both"))
    any_.operations, join.terminator = block.operations, block.terminator
    clones = Clones()
    clones.start(block, fast)
    fast.parameters = []
    for parameter in block.parameters:
        del clones.values[parameter]
    replaced = {each: each.arguments[0] for each in small.excluded}
    clones.operations(block, lambda _: False, replaced)
    body.varying |= {
        new for old in any_.operations if old in body.varying and (new := clones.values[old])
    }
    used = _used(body, block)
    passed = {old: Parameter(old.type) for old in used}
    body.varying |= {new for old, new in passed.items() if old in body.varying}
    join.parameters = [*passed.values()]
    others = [each for each in body.blocks if each is not block]
    substitute([*others, join], {**passed})
    for version, arguments in ((any_, used), (fast, [*clones.all(used)])):
        version.terminator = Terminator("jump", edges=(Edge(join, [*arguments]),))
        version.terminator.pc = join.end.pc
    m = Builder(body.constants)
    block.operations = []
    m.open(block)
    m.pc = any_.operations[0].pc
    is_large: Value = m.constant(BOOLEAN, 0)
    for number in small.numbers:
        above = m.compare(I64, Condition.GE_U, number, m.constant(I64, SMALL))
        is_large = m.any(is_large, above)
    m.close(Terminator("branch", (), (is_large,), edges=(Edge(any_, []), Edge(fast, []))))
    return [any_, fast, join]


def _used(body: Body, block: Block) -> list[Value]:
    """The values of a block's operations that its end or other blocks use."""
    defined = {*block.operations}
    found: dict[Value, None] = {}
    for other in body.blocks:
        operations = () if other is block else other.operations
        for operation in (*operations, other.end):
            found.update(dict.fromkeys(v for v in operation.uses() if v in defined))
    return [*found]
