# SPDX-License-Identifier: Apache-2.0
"""Rows of items: the loop over a region's items as two loops, where items divide their number.

    for item in 0 … 255:                  for row in 0 … 15:
        row = item / 16                       for column in 0 … 15:
        column = item - 16 row      ─>            item = 16 row + column

So what follows from the row does not vary in the inner loop, and neighbours access neighbouring
elements. Which values are quotients is told by their values for each item, however they are
computed.
"""

from __future__ import annotations

from typing import NamedTuple

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
from ferryvm.ir.group.branch import item_poll
from ferryvm.ir.group.check import MOST_KNOWN
from ferryvm.ir.loop.induction import InductionVariable, find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.loop.preheader import Labels, insert_before
from ferryvm.ir.member.value_range import MemberRanges
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.use import substitute
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64

NARROWEST = 8
"""Items of a row, at least."""


class _Items(NamedTuple):
    """A loop over items that can be divided."""

    loop: Loop
    variable: InductionVariable
    number: int
    """Of items."""
    width: int
    """Items of a row."""
    known: dict[tuple[int, ...], list[Operation]]
    """Operations by their values for each item."""


def divide_into_rows(body: Body) -> int:
    """Make two loops of each loop over items that divide their number by a constant; the number of
    loops that were divided."""
    done: set[Block] = set()
    made = 0
    while (items := _next(body, done)) is not None:
        _divide(body, items)
        made += 1
    if made:
        remove_dead_code(body)
    return made


def _next(body: Body, done: set[Block]) -> _Items | None:
    for loop in find_loops(body):
        if loop.header not in done:
            done.add(loop.header)
            found = _items(body, loop)
            if found is not None:
                return found
    return None


def _items(body: Body, loop: Loop) -> _Items | None:
    """A loop over items; None if it is another one, or has no quotients."""
    variable = find_induction_variable(loop)
    if variable is None or loop.entry is None or loop.back_edge is None:
        return None
    numbers = variable.start, variable.step, variable.bound
    start, step, count = (each.bits if isinstance(each, Constant) else -1 for each in numbers)
    if (start, step) != (0, 1) or not 0 < count <= MOST_KNOWN:
        return None
    poll = item_poll(loop)
    if poll is None or not _is_plain(loop, variable, poll):
        return None
    ranges = MemberRanges(body, variable.value, count)
    known: dict[tuple[int, ...], list[Operation]] = {}
    for operation in loop.operations:
        if operation.type is I64:
            values = ranges.for_each(operation)
            if values is not None:
                known.setdefault(tuple(values), []).append(operation)
    for width in range(NARROWEST, count // 2 + 1):
        if not count % width and tuple(m // width for m in range(count)) in known:
            return _Items(loop, variable, count, width, known)
    return None


def _is_plain(loop: Loop, variable: InductionVariable, poll: Operation) -> bool:
    """True if nothing behind a loop uses an operation of it, and its poll no value of it but the
    number of items that are done."""
    assert loop.back_edge is not None
    place = loop.header.parameters.index(variable.value)
    following = loop.back_edge.edge.arguments[place]
    own = {v for block in loop.members for v in (*block.parameters, *block.operations)}
    if any(value in own and value is not following for value in poll.exit.uses()):
        return False
    test = loop.header.end.arguments[0]
    inside = {*loop.members}
    own -= {*loop.header.parameters}
    for block in loop.graph.blocks:
        if block not in inside:
            for operation in (*block.operations, block.end):
                if not own.isdisjoint(operation.uses()):
                    return False
    return all(test not in operation.uses() for operation in loop.operations)


def _divide(body: Body, items: _Items) -> None:
    loop, (column, _, _, _, onward, out) = items.loop, items.variable
    header, latch = loop.header, loop.latch
    assert loop.entry is not None
    assert loop.back_edge is not None
    place, labels, width = header.parameters.index(column), Labels(body), items.width
    following = loop.back_edge.edge.arguments[place]
    poll = latch.operations[-1]
    inside = {*loop.members}

    def constant(value: int) -> Constant:
        return body.constant(I64, value)

    def made(name: str, a: Value, b: Value) -> Operation:
        return Operation(name, I64, (I64,), (a, b))

    rows, row_start, row_end = (labels.block(header, n) for n in ("rows", "row", "row.end"))
    rows.parameters = [Parameter(p.type) for p in header.parameters]
    row = rows.parameters[place]
    base = made("mul", row, constant(width))
    item = made("add", base, column)
    end, next_row = made("add", base, constant(width)), made("add", row, constant(1))

    # What is behind the loop uses the values that the loop over rows has.
    new: dict[Value, Value] = {**dict(zip(header.parameters, rows.parameters, strict=True))}
    new[column] = constant(items.number)
    others = [block for block in body.blocks if block not in inside]
    substitute(others, new)
    leaving = Edge(out.block, [new.get(a, a) for a in out.arguments])

    # Operations of an item have its number, or those of its row and column.
    count, known = items.number, items.known
    own: dict[Value, Value] = {column: item}
    for values, value in (
        (tuple(m // width for m in range(count)), row),
        (tuple(m % width for m in range(count)), column),
        (tuple(range(count)), item),
    ):
        own.update(dict.fromkeys(known.get(values, ()), value))
    substitute(loop.members, own)

    more = Operation("compare", BOOLEAN, (I64, Condition.LT_S), (row, constant(count // width)))
    rows.operations = [more]
    rows.terminator = Terminator("branch", (), (more,), None, (Edge(row_start, []), leaving))
    row_start.operations = [base]
    first: list[Value] = [*rows.parameters]
    first[place] = constant(0)
    row_start.terminator = Terminator("jump", edges=(Edge(header, first),))
    entry = loop.entry.edge
    entry.block = rows

    test = Operation("compare", BOOLEAN, (I64, Condition.LT_S), (column, constant(width)))
    header.operations = [item, *header.operations, test]
    finish = Edge(row_end, [])
    header.terminator = Terminator("branch", (), (test,), None, (onward, finish))
    header.terminator.pc = header.pc
    next_column = made("add", column, constant(1))
    latch.operations[-1:] = [next_column, poll]
    loop.back_edge.edge.arguments[place] = next_column

    again: list[Value] = [*header.parameters]
    again[place] = next_row
    state = poll.exit.replace({following: end})
    row_end.operations = [end, next_row, Operation("poll", None, poll.static, (), state)]
    row_end.terminator = Terminator("jump", edges=(Edge(rows, again, True),))
    for block in (rows, row_start, row_end):
        for operation in (*block.operations, block.end):
            operation.pc = header.pc
    last = max(body.blocks.index(block) for block in loop.members)
    body.blocks.insert(last + 1, row_end)
    insert_before(body, {header: [rows, row_start]})
