# SPDX-License-Identifier: Apache-2.0
"""Ranges of values in the code of a member.

A value that is computed from the number of the member alone is known for each of them; others have
ranges: of loops that count, of what branches have found. (Harrison: Compiler Analysis of the Value Ranges
for Variables, 1977.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ferryvm.ir.control_flow_graph import ControlFlowGraph
from ferryvm.ir.graph import Block, Body, Constant, Operation, Parameter, Value
from ferryvm.ir.loop.induction import find_induction_variable
from ferryvm.ir.loop.natural import Loop, loops_of
from ferryvm.ir.member.form import GroupForm
from ferryvm.ir.operation import PURE
from ferryvm.ir.simplify import evaluate
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, signed

MOST = 1 << 62
_DEEPEST = 24
_OPPOSITE = {
    Condition.LT_S: Condition.GE_S,
    Condition.GE_S: Condition.LT_S,
    Condition.GT_S: Condition.LE_S,
    Condition.LE_S: Condition.GT_S,
    Condition.EQ: Condition.NE,
    Condition.NE: Condition.EQ,
}


MOST_GROUPS = 1 << 31
"""Groups of a launch, at most."""


class Range(NamedTuple):
    """The least and the largest value, as signed numbers."""

    low: int
    high: int


_ANY = Range(-(1 << 63), (1 << 63) - 1)


def member_ranges(body: Body, form: GroupForm) -> MemberRanges:
    """The ranges of values in the code of a member."""
    return MemberRanges(body, form.member, form.members, body.blocks[0].parameters[0], form.size)


class MemberRanges:
    """The ranges of values in the code of a member, as it was when this was made."""

    def __init__(
        self,
        body: Body,
        member: Value,
        members: int,
        item: Value | None = None,
        size: Value | None = None,
    ) -> None:
        """`member`: the number of the member, of so many; `item`: that of the group, if it is
        known; `size`: the number of members, if it is no constant, and then so many at most."""
        self._member, self._members, self._item, self._size = member, members, item, size
        self._graph = graph = ControlFlowGraph(body)
        self._home = graph.definitions
        self._each: dict[Value, Sequence[int] | None] = {}
        self._loops: dict[Parameter, Loop] = {
            p: loop for loop in loops_of(graph) for p in loop.header.parameters
        }
        self._facts = self._find_facts()

    def is_false(self, condition: Value, block: Block) -> bool:
        """True if a condition holds for no member that computes it in a block."""
        if isinstance(condition, Constant):
            return not condition.bits
        if not isinstance(condition, Operation):
            return False
        if condition.name == "any":
            return all(self.is_false(each, block) for each in condition.arguments)
        if condition.name == "all":
            return any(self.is_false(each, block) for each in condition.arguments)
        each = self.for_each(condition)
        if each is not None:
            return not any(each)
        if condition.name != "compare" or condition.static[0] is not I64:
            return False
        if condition.arguments == (self._member, self._size):
            return condition.static[1] in (Condition.GE_U, Condition.GE_S)
        left, right = (self.range(each, block) for each in condition.arguments)
        match condition.static[1]:
            case Condition.GE_U:
                return left.low >= 0 and left.high < right.low
            case Condition.GT_U:
                return left.low >= 0 and left.high <= right.low
            case Condition.LT_S:
                return left.low >= right.high
            case Condition.GE_S:
                return left.high < right.low
            case Condition.GT_S:
                return left.high <= right.low
            case Condition.EQ:
                return left.high < right.low or right.high < left.low
        return False

    def ends_by_factors(self, loop: Loop) -> bool:
        """True if a loop halves a number while that is above a number that is not negative, or
        doubles one while it is below a bound."""
        end = loop.header.end
        test = end.arguments[0] if end.name == "branch" else None
        if not isinstance(test, Operation) or test.name != "compare" or loop.entry is None:
            return False
        value, other = test.arguments
        if not isinstance(value, Parameter) or value not in loop.header.parameters:
            return False
        index = loop.header.parameters.index(value)
        steps = [edge.arguments[index] for _, edge in loop.back_edges]
        source = self._graph.blocks[loop.entry.source]
        start = self.range(loop.entry.edge.arguments[index], source)
        inside = {self._graph.blocks[place] for place in loop.blocks}
        is_yes = end.edges[0].block in inside and end.edges[1].block not in inside
        is_no = end.edges[1].block in inside and end.edges[0].block not in inside
        condition = test.static[1]
        if not (is_yes or is_no) or condition not in _OPPOSITE:
            return False
        assert isinstance(condition, Condition)
        continues = condition if is_yes else _OPPOSITE[condition]
        limit = self.range(other, source)
        if all(self._shrinks(step, value) for step in steps) and start.low >= 0:
            return continues is Condition.GT_S and limit.low >= 0
        if all(self._doubles(step, value) for step in steps) and start.low >= 1:
            return continues is Condition.LT_S and limit.high < MOST
        return False

    @staticmethod
    def _doubles(step: Value, value: Parameter) -> bool:
        return _change(step, value) in (("shl", 1), ("mul", 2))

    # --- values of the member alone ---------------------------------------------------------

    def for_each(self, value: Value) -> Sequence[int] | None:
        """The bits of a value that depends on the number of the member alone, for each member."""
        if value not in self._each:
            self._each[value] = None
            self._each[value] = self._computed(value)
        return self._each[value]

    def for_each_with(
        self, value: Value, variable: Value, bits: Sequence[int]
    ) -> Sequence[int] | None:
        """As `for_each`, of a value that depends on a variable, too, which has these `bits`."""
        before, self._each = self._each, {variable: bits}
        try:
            return self.for_each(value)
        finally:
            self._each = before

    def _computed(self, value: Value) -> Sequence[int] | None:
        count = self._members if self._size is None else 1  # of what is the same for all
        if value is self._member:
            return range(count) if self._size is None else None
        if isinstance(value, Constant):
            return [value.bits] * count
        if isinstance(value, Operation) and value.name == "member_index":
            _, stride, size = value.static
            assert isinstance(stride, int)
            assert isinstance(size, int)
            return [m // stride % size for m in range(count)]
        if not isinstance(value, Operation) or value.name not in PURE:
            return None
        if value.name in ("apply", "lookup"):
            return None
        operands = [self.for_each(each) for each in value.arguments]
        found: list[int] = []
        if any(each is None for each in operands):
            return None
        for bits in zip(*(each for each in operands if each is not None), strict=True):
            result = evaluate(value.name, value.static, bits)
            if result is None:
                return None
            found.append(result)
        return found

    # --- ranges -----------------------------------------------------------------------------

    def range(self, value: Value, block: Block, depth: int = 0) -> Range:
        """The range of an i64 where a block uses it."""
        found = self._range(value, block, depth)
        if depth > _DEEPEST:
            return found
        place = self._graph.places[block]
        for edge_block, condition, other, is_left in self._facts.get(value, ()):
            if not self._graph.dominates(self._graph.places[edge_block], place):
                continue
            limit = self._range(other, edge_block, depth + 4)
            found = _refined(found, condition, limit, is_left)
        if isinstance(value, Operation) and value.name == "sub":
            left, right = value.arguments
            least = self._difference(left, right, place)
            found = Range(max(found.low, least), found.high)
        return found

    def limits(self, value: Value, block: Block) -> Iterator[Value]:
        """Values that a value is below wherever a block uses it, as branches have found."""
        place = self._graph.places[block]
        for edge_block, condition, other, is_left in self._facts.get(value, ()):
            found = condition if is_left else _FLIPPED[condition]
            if found is Condition.LT_S and self._graph.dominates(
                self._graph.places[edge_block], place
            ):
                yield other

    def _difference(self, left: Value, right: Value, place: int) -> int:
        """The least difference of two values by what a branch has found."""
        for edge_block, condition, other, is_left in self._facts.get(left, ()):
            if other is right and self._graph.dominates(self._graph.places[edge_block], place):
                condition = condition if is_left else _FLIPPED[condition]
                if condition in (Condition.GE_S, Condition.GT_S):
                    return 0 if condition is Condition.GE_S else 1
        return _ANY.low

    def _range(self, value: Value, block: Block, depth: int) -> Range:
        if isinstance(value, Constant):
            number = signed(I64, value.bits)
            return Range(number, number)
        each = self.for_each(value)
        if each is not None:
            numbers = [signed(I64, bits) for bits in each]
            return Range(min(numbers), max(numbers))
        if value is self._size:
            return Range(1, self._members)
        if value is self._member:
            return Range(0, self._members - 1)
        if depth > _DEEPEST:
            return _ANY
        if value is self._item:
            return Range(0, MOST_GROUPS - 1)
        if isinstance(value, Parameter) and value in self._loops:
            return self._in_loop(value, self._loops[value], block, depth)
        if isinstance(value, Operation):
            return self._of(value, block, depth)
        return _ANY

    def _of(self, value: Operation, block: Block, depth: int) -> Range:
        def operand(number: int) -> Range:
            return self.range(value.arguments[number], block, depth + 1)

        second = value.arguments[1] if len(value.arguments) > 1 else None
        amount = signed(I64, second.bits) if isinstance(second, Constant) else None
        match value.name:
            case "add":
                a, b = operand(0), operand(1)
                return _checked(a.low + b.low, a.high + b.high)
            case "sub":
                a, b = operand(0), operand(1)
                return _checked(a.low - b.high, a.high - b.low)
            case "mul":
                a, b = operand(0), operand(1)
                ends = [x * y for x in a for y in b]
                return _checked(min(ends), max(ends))
            case "shl" if amount is not None and 0 <= amount < 62:
                a = operand(0)
                return _checked(a.low << amount, a.high << amount)
            case "shr_s" if amount is not None and 0 <= amount < 64:
                a = operand(0)
                return Range(a.low >> amount, a.high >> amount)
            case "shr_u" if amount is not None and 0 <= amount < 64:
                a = operand(0)
                return Range(a.low >> amount, a.high >> amount) if a.low >= 0 else _ANY
            case "div_s" if amount is not None and amount > 0:
                a = operand(0)
                return (
                    Range(int(a.low / amount) - 1, int(a.high / amount) + 1)
                    if a.low < 0
                    else (Range(a.low // amount, a.high // amount))
                )
            case "bit_and" if amount is not None and amount >= 0:
                return Range(0, amount)
            case "rem_s" if amount is not None and amount > 0:
                a = operand(0)
                return Range(0 if a.low >= 0 else 1 - amount, amount - 1)
            case "select":
                a, b = operand(1), operand(2)
                return Range(min(a.low, b.low), max(a.high, b.high))
        return _ANY

    def _in_loop(self, value: Parameter, loop: Loop, block: Block, depth: int) -> Range:
        """The range of a parameter of a loop's head: it counts up to a bound, or is halved."""
        if loop.entry is None:
            return _ANY
        index = loop.header.parameters.index(value)
        source = self._graph.blocks[loop.entry.source]
        start = self.range(loop.entry.edge.arguments[index], source, depth + 2)
        steps = [edge.arguments[index] for _, edge in loop.back_edges]
        if all(self._shrinks(step, value) for step in steps) and start.low >= 0:
            return Range(0, start.high)
        if start.low == start.high and steps:
            others = [self._reflected(step, value) for step in steps]
            if others[0] is not None and len({*others}) == 1:
                return _checked(
                    min(start.low, others[0] - start.low), max(start.low, others[0] - start.low)
                )
        if start.low >= 1 and self.ends_by_factors(loop):
            test = loop.header.end.arguments[0]
            assert isinstance(test, Operation)
            limit = self.range(test.arguments[1], source, depth + 2).high
            return Range(start.low, max(2 * limit, start.high))
        variable = find_induction_variable(loop)
        if (
            variable is None
            or variable.value is not value
            or not isinstance(variable.step, Constant)
        ):
            return _ANY
        step = signed(I64, variable.step.bits)
        bound = self.range(variable.bound, source, depth + 2)
        if step < 1 or start.low < 0 or bound.high > MOST - step:
            return _ANY
        onward = self._graph.places[variable.onward.block]
        if self._graph.dominates(onward, self._graph.places[block]):
            return Range(start.low, max(bound.high - 1, start.low))
        return Range(start.low, max(bound.high + step - 1, start.high))

    @staticmethod
    def _reflected(step: Value, value: Parameter) -> int | None:
        """The number from which each iteration subtracts a value; None if it does not."""
        if isinstance(step, Operation) and step.name == "sub" and step.arguments[1] is value:
            of = step.arguments[0]
            return signed(I64, of.bits) if isinstance(of, Constant) else None
        return None

    @staticmethod
    def _shrinks(step: Value, value: Parameter) -> bool:
        name, amount = _change(step, value)
        return (name in ("shr_s", "shr_u") and 0 < amount < 64) or (name == "div_s" and amount > 1)

    # --- branches ---------------------------------------------------------------------------

    def _find_facts(self) -> dict[Value, list[tuple[Block, Condition, Value, bool]]]:
        """The facts on values in a block and those it dominates: the condition of the only edge
        that leads there."""
        found: dict[Value, list[tuple[Block, Condition, Value, bool]]] = {}
        graph = self._graph
        for place, block in enumerate(graph.blocks):
            only = graph.only_edge(place)
            if only is None:
                continue
            source, edge = only
            end = graph.blocks[source].end
            if end.name != "branch":
                continue
            test = end.arguments[0]
            if not isinstance(test, Operation) or test.name != "compare":
                continue
            kind, condition = test.static
            if (
                kind is not I64
                or condition not in _OPPOSITE
                or end.edges[0].block is end.edges[1].block
            ):
                continue
            assert isinstance(condition, Condition)
            if edge is end.edges[1]:
                condition = _OPPOSITE[condition]
            left, right = test.arguments
            found.setdefault(left, []).append((block, condition, right, True))
            found.setdefault(right, []).append((block, condition, left, False))
        return found


def _checked(low: int, high: int) -> Range:
    return Range(low, high) if low >= -MOST and high <= MOST else _ANY


_FLIPPED = {
    Condition.LT_S: Condition.GT_S,
    Condition.GT_S: Condition.LT_S,
    Condition.LE_S: Condition.GE_S,
    Condition.GE_S: Condition.LE_S,
    Condition.EQ: Condition.EQ,
    Condition.NE: Condition.NE,
}


def _refined(found: Range, condition: Condition, other: Range, is_left: bool) -> Range:
    """A range of which a comparison with a value of another one is known."""
    match condition if is_left else _FLIPPED[condition]:
        case Condition.LT_S:
            return Range(found.low, min(found.high, other.high - 1))
        case Condition.LE_S:
            return Range(found.low, min(found.high, other.high))
        case Condition.GT_S:
            return Range(max(found.low, other.low + 1), found.high)
        case Condition.GE_S:
            return Range(max(found.low, other.low), found.high)
        case Condition.EQ:
            return Range(max(found.low, other.low), min(found.high, other.high))
    return found


def _change(step: Value, value: Parameter) -> tuple[str, int]:
    """The operation and the constant by which a step changes a value; "" and 0 for other steps."""
    match step:
        case Operation(arguments=(of, Constant() as by)) if of is value:
            return step.name, signed(I64, by.bits)
    return "", 0
