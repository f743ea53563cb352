# SPDX-License-Identifier: Apache-2.0
"""Rows of a loop: a loop that divides its variable becomes two, the inner one without a division.

    while i < bound:                       while i < bound:
        row = i / width                        row = i / width
        column = i - row * width      ─>       end = min(bound, (row + 1) * width)
        …                                      while i < end:
        i = i + 1                                  column = i - row * width
                                                   …
                                                   i = i + 1

So an index of a matrix, row * size + column, is affine in the inner loop: its check is hoisted, and
the loop can be vectorised. (Strip mining, with strips that end where a quotient changes.)

The quotients are `i / width`, signed or not, and `i * factor >> shift`, the division by a constant
of launches of dimensions. The code trusts no factor: a row is as long as `(row + 1) * width` says
only if the last item of it has the same quotient, and nothing overflows. Quotients never fall from
one item to the next then, so all in between have it, too. Otherwise a row is one item.

Preserves effects, exits, and the states of polls. Requires `code_motion`; loops without inner loops
are divided that are left by their header alone.
"""

from __future__ import annotations

from typing import NamedTuple

from ferryvm.ir.build import FlowBuilder
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    Edge,
    FrameState,
    Operation,
    Parameter,
    Value,
)
from ferryvm.ir.loop.clone import LoopClone
from ferryvm.ir.loop.induction import InductionVariable, find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.loop.preheader import Labels, insert_before
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.use import substitute
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64, Type, signed

NARROWEST = 16
"""Numbers of a row, at least: a row of three takes twice as long as three numbers without rows."""

MOST = 4
"""Quotients of a loop that is divided."""

_DIVISIONS = {"div_s": "div_s", "div_u": "div_u", "rem_s": "div_s", "rem_u": "div_u"}
"""Operations that divide, with the quotient that they need."""


class _Quotient(NamedTuple):
    """The number of a row: `i / width`, or `i * factor >> shift`."""

    division: str
    """`div_s` or `div_u`; `shr_u` for a multiplication and a shift."""
    width: Value
    factor: Value | None = None
    shift: Value | None = None


class _Rows(NamedTuple):
    """A loop that can be divided."""

    loop: Loop
    variable: InductionVariable
    poll: Operation
    quotients: dict[_Quotient, list[Operation]]
    """Each with the operations that it takes the place of: quotients, and remainders."""


def split_rows(body: Body) -> int:
    """Make two loops of each loop over numbers whose rows it computes; the number of loops that
    were divided."""
    if not any(o.name in _DIVISIONS or o.name == "shr_u" for o in body.operations):
        return 0
    remove_dead_code(body)  # such as a condition for the exit that was moved behind a launch's loop
    done: set[Block] = set()
    made = 0
    while (rows := _next(body, done)) is not None:
        widths = [each.width for each in rows.quotients if not isinstance(each.width, Constant)]
        if widths:
            header, impossible = _beside_narrow(body, rows.loop, widths)
            (loop,) = (each for each in find_loops(body) if each.header is header)
            again = _rows(loop)
            assert again is not None
            rows = again
            done.add(header)
            substitute(_inside(rows.loop, rows.variable), impossible)
        _Split(body, rows).run()
        made += 1
    if made:
        remove_dead_code(body)
    return made


def _next(body: Body, done: set[Block]) -> _Rows | None:
    for loop in find_loops(body):
        if loop.header not in done:
            done.add(loop.header)
            found = _rows(loop)
            if found is not None:
                return found
    return None


def _rows(loop: Loop) -> _Rows | None:
    """A loop that can be divided; None if it is another one, or has no quotients."""
    if not loop.is_innermost or loop.entry is None or loop.back_edge is None:
        return None
    variable = find_induction_variable(loop)
    if variable is None or not isinstance(variable.step, Constant) or variable.step.bits != 1:
        return None
    poll = loop.latch.operations[-1] if loop.latch.operations else None
    if poll is None or poll.name != "poll" or not _is_plain(loop, variable, poll):
        return None
    quotients = _quotients(loop, variable.value)
    if not 0 < len(quotients) <= MOST:
        return None
    return _Rows(loop, variable, poll, quotients)


def _is_plain(loop: Loop, variable: InductionVariable, poll: Operation) -> bool:
    """True if a loop is left by its header alone, where nothing else uses its test; and the state
    of its poll can be written in terms of the next iteration's parameters."""
    assert loop.back_edge is not None
    inside = _inside(loop, variable)
    leaving = [e for block in loop.members for e in block.end.edges if e.block not in inside]
    if leaving != [variable.exit] or variable.exit.is_back:
        return False
    following = {*loop.back_edge.edge.arguments}
    if not all(loop.is_invariant(value) or value in following for value in poll.exit.uses()):
        return False
    test = loop.header.end.arguments[0]
    if any(test in operation.uses() for operation in loop.operations):
        return False
    own = {*loop.header.operations}
    return not any(
        own.intersection(operation.uses())
        for block in loop.graph.blocks
        if block not in inside
        for operation in (*block.operations, block.end)
    )


def _inside(loop: Loop, variable: InductionVariable) -> set[Block]:
    """The blocks of a loop, and those that it ends in, such as traps, but for the one behind it."""
    tails = {loop.graph.blocks[place] for place in loop.tails} - {variable.exit.block}
    return {*loop.members, *tails}


def _quotients(loop: Loop, i: Parameter) -> dict[_Quotient, list[Operation]]:
    """The quotients of the variable by what does not vary in a loop."""
    found: dict[_Quotient, list[Operation]] = {}
    widths: dict[Value, Value] = {}
    for operation in loop.operations:
        if operation.name == "mul" and operation.fact(0, Type) is I64:
            for value, width in (operation.arguments, operation.arguments[::-1]):
                if loop.is_invariant(width):
                    widths.setdefault(value, width)
    for operation in loop.operations:
        quotient = _quotient(loop, operation, i, widths)
        if quotient is not None and not _is_narrow(quotient.width):
            found.setdefault(quotient, []).append(operation)
    return found


def _quotient(
    loop: Loop, operation: Operation, i: Parameter, widths: dict[Value, Value]
) -> _Quotient | None:
    """The quotient that an operation is, or the remainder of which it is; `widths`: factors of
    values."""
    if operation.name in _DIVISIONS and operation.fact(0, Type) is I64:
        value, width = operation.arguments
        if value is i and loop.is_invariant(width):
            return _Quotient(_DIVISIONS[operation.name], width)
    elif operation.name == "shr_u" and operation.fact(0, Type) is I64 and operation in widths:
        product, shift = operation.arguments
        if isinstance(product, Operation) and product.name == "mul" and i in product.arguments:
            (factor,) = [each for each in product.arguments if each is not i] or [i]
            if loop.is_invariant(factor) and loop.is_invariant(shift):
                return _Quotient("shr_u", widths[operation], factor, shift)
    return None


def _is_narrow(width: Value) -> bool:
    return isinstance(width, Constant) and signed(I64, width.bits) < NARROWEST


def _beside_narrow(body: Body, loop: Loop, widths: list[Value]) -> tuple[Block, dict[Value, Value]]:
    """Make a clone of a loop that runs unless rows are narrow; its header, and the values of tests
    there that a width is 0 or the like."""
    tests = [o for o in body.operations if _is_narrow_test(o, widths)]
    clone = LoopClone(body, loop, prefix="wide")
    first, original, preheader = (
        clone.new_block(name) for name in ("width", "narrow", "preheader")
    )
    m = FlowBuilder(body.constants)
    m.pc = loop.header.pc
    m.open(first)
    is_narrow: Value = m.constant(BOOLEAN, 0)
    for width in widths:
        one = m.compare(I64, Condition.LT_S, width, m.constant(I64, NARROWEST))
        is_narrow = m.any(is_narrow, one)
    m.branch(is_narrow, Edge(original, []), Edge(preheader, []))
    clone.select_version(first, original, preheader, [])
    no = m.constant(BOOLEAN, 0)
    return clone.header, {value: no for test in tests for value in (test, *clone.all([test]))}


def _is_narrow_test(operation: Operation, widths: list[Value]) -> bool:
    """True for a test if a width is a small number, such as the 0 and the -1 by which nothing is
    divided."""
    if operation.name != "compare" or operation.static != (I64, Condition.EQ):
        return False
    value, number = operation.arguments
    return value in widths and _is_narrow(number)


class _Split:
    """The division of one loop."""

    def __init__(self, body: Body, rows: _Rows) -> None:
        self.body, self.loop, self.variable, self.poll, self.quotients = body, *rows
        self.m = FlowBuilder(body.constants)
        self.m.pc = self.loop.header.pc
        self.inside = _inside(self.loop, self.variable)
        self.first: Value = self.variable.value
        """The first number of a row."""
        self.zero, self.one = self.m.constant(I64, 0), self.m.constant(I64, 1)

    def run(self) -> None:
        """Insert the loop over rows."""
        loop, m, (value, _, bound, _, onward, out) = self.loop, self.m, self.variable
        header, labels = loop.header, Labels(self.body)
        assert loop.entry is not None
        rows, start, end_of_row = (
            labels.block(header, name) for name in ("rows", "row", "row.end")
        )
        rows.parameters = [Parameter(each.type) for each in header.parameters]
        new: dict[Value, Value] = dict(zip(header.parameters, rows.parameters, strict=True))
        substitute([block for block in self.body.blocks if block not in self.inside], new)
        first = self.first = new[value]

        m.open(rows)
        leaving = Edge(out.block, [new.get(each, each) for each in out.arguments])
        m.branch(m.compare(I64, Condition.LT_S, first, bound), Edge(start, []), leaving)
        m.open(start)
        limit = self._limit(first, bound)
        m.jump(header, *rows.parameters)
        loop.entry.edge.block = rows

        m.open(header)
        m.branch(m.compare(I64, Condition.LT_S, value, limit), onward, Edge(end_of_row, []))
        m.open(end_of_row)
        m.emit(Operation("poll", None, self.poll.static, (), self._state()))
        m.jump(rows, *header.parameters, is_back=True)

        last = max(self.body.blocks.index(block) for block in loop.members)
        self.body.blocks.insert(last + 1, end_of_row)
        insert_before(self.body, {header: [rows, start]})

    def _limit(self, first: Value, bound: Value) -> Value:
        """The end of the row that begins with a number, in the block in front of the row; replaces
        quotients and remainders of the loop."""
        m, new = self.m, dict[Value, Value]()
        numbers: dict[_Quotient, Value] = {}
        end = bound
        for quotient, operations in self.quotients.items():
            number = numbers[quotient] = self._number(quotient, first)
            base = m.mul(I64, number, quotient.width)
            above = m.mul(I64, m.add(I64, number, self.one), quotient.width)
            end = m.select(m.compare(I64, Condition.LT_S, above, end), above, end)
            for operation in operations:
                if operation.name in ("rem_s", "rem_u"):
                    operation.name, operation.arguments = "sub", (self.variable.value, base)
                else:
                    new[operation] = number
        substitute(self.inside, new)
        last = m.sub(I64, end, self.one)
        fits = m.compare(I64, Condition.GE_S, first, self.zero)
        fits = m.all(fits, m.compare(I64, Condition.GT_S, end, first))
        for quotient, number in numbers.items():
            fits = m.all(fits, self._holds(quotient, number, last))
        return m.select(fits, end, m.add(I64, first, self.one))

    def _number(self, quotient: _Quotient, value: Value) -> Value:
        """The quotient of a value, as the loop computes it where it does."""
        m = self.m
        if quotient.division == "shr_u":
            assert quotient.factor is not None
            assert quotient.shift is not None
            shift = m.bit_and(I64, quotient.shift, m.constant(I64, I64.bits - 1))
            return m.shr_u(I64, m.mul(I64, value, quotient.factor), shift)
        # Here it is not small, so not zero.
        return m.pure(quotient.division, (I64,), (value, quotient.width), I64)

    def _holds(self, quotient: _Quotient, number: Value, last: Value) -> Value:
        """True if a quotient is that of each number of a row, which begins at or above 0."""
        m = self.m
        if quotient.factor is None:
            # The next multiple of the width is negative if it is too large, and no end of a row.
            return m.constant(BOOLEAN, 1)
        # A product that is negative is that of no 0, so the quotients do not fall and then rise.
        is_exact = m.none(m.mul_overflows(I64, last, quotient.factor))
        is_same = m.compare(I64, Condition.EQ, self._number(quotient, last), number)
        return m.all(is_exact, is_same)

    def _state(self) -> FrameState:
        """The state of the poll behind a row."""
        assert self.loop.back_edge is not None
        following = self.loop.back_edge.edge.arguments
        new: dict[Value, Value] = {}
        for value, parameter in zip(following, self.loop.header.parameters, strict=True):
            if not self.loop.is_invariant(value):
                new[value] = parameter
        return self.poll.exit.replace(new)
