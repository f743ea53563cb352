# SPDX-License-Identifier: Apache-2.0
"""Loops over items of several dimensions as nests: rows, and the items of each.

    head(item) ⇄ body(item / 8, item % 8)   ─>   rows(row) ─> head(column) ⇄ body(row, column)
                                                    ▲            └──> next ──┐
                                                    └────────────────────────┘

A launch numbers items of several dimensions row by row, and an item finds its indices by a division by
the length of rows. In the nest they are variables of loops: nothing divides, indices of elements are affine
in both, and short rows can be unrolled (`ferryvm.ir.passes.unroll`), so that all items of a row share what
depends on the row alone. Items keep their order, and exits their states.

The loops of parallel regions have this form where the number of items and the length of rows are constants
that value numbering finds.

    choose ─┬─> rows, a nest ─> a version without checks        settled: choose ─> checks ─┬─> without checks
            └─> items, the loop as it was                                                  └─> items

A nest of unrolled rows has all checks of its items, so it is worth its size only without them. The loop as
it was remains for where a check may fail, behind a condition that never holds, until `settle_rows` knows if
`loop_versioning` has made a version without checks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ferryvm.ir.build import Builder
from ferryvm.ir.control_flow_graph import ControlFlowGraph, remove_unreached
from ferryvm.ir.graph import Block, Body, Constant, Edge, Operation, Parameter, Terminator, Value
from ferryvm.ir.loop.clone import LoopClone
from ferryvm.ir.loop.induction import InductionVariable, find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.loop.preheader import Labels
from ferryvm.ir.passes.unroll import MOST_ITERATIONS
from ferryvm.ir.use import substitute
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64

_MOST_ITEMS = 1 << 12
"""Items, at most, whose quotients are all computed to find the length of rows."""


def divide_into_rows(body: Body, launches: Collection[int]) -> tuple[set[Block], set[Block]]:
    """Make nests of loops over items whose rows are short; the headers of the loops as they were, of those
    inside, and of those around, which would get versions instead of the nests; and the headers of the
    loops of nests. `launches`: pcs of the heads of loops over items."""
    rare: set[Block] = set()
    made: set[Block] = set()
    while (found := _next(body, launches, rare)) is not None:
        loop, *_ = found
        header = loop.header
        loops = find_loops(body)
        inside = [each.header for each in loops if loop.contains(each)]
        around = [
            each.header for each in loops if each.contains(loop) and each.header is not header
        ]
        clone = LoopClone(body, loop)
        choose, rows, items = (clone.new_block(name) for name in ("choose", "rows", "items"))
        m = Builder(body.constants)
        m.open(choose)
        never = m.compare(
            I64, Condition.EQ, m.invariant("object_end", (), (), I64), m.constant(I64, 0)
        )
        m.close(Terminator("branch", (), (never,), edges=(Edge(items, []), Edge(rows, []))))
        clone.select_version(choose, rows, items, [])
        rare.update((clone.blocks[each] for each in inside), around)
        again = _next(body, launches, rare)
        assert again is not None
        made |= {again[0].header, _divide(body, *again)}
    return rare, made


def settle_rows(body: Body) -> bool:
    """Choose nests where they have no checks, and loops as they were elsewhere. False if no nest of a loop
    has a version without checks."""
    chosen: set[str] = set()
    wanted: set[str] = set()
    while (choose := next(filter(_is_choice, body.blocks), None)) is not None:
        items, rows = choose.end.edges
        label = choose.label.split("choose.")[-1]
        wanted.add(label)
        graph = ControlFlowGraph(body)
        first = graph.places[rows.block]
        nest = [block for place, block in enumerate(graph.blocks) if graph.dominates(first, place)]
        checked = [each for each in nest if each.label.startswith("original.rows.")]
        is_free = not any(operation.name == "trap_if" for b in nest for operation in b.operations)
        if checked:
            beside = {*nest, *checked}
            start = graph.places[items.block]
            own = [b for place, b in enumerate(graph.blocks) if graph.dominates(start, place)]
            others = [block for block in body.blocks if block not in own]
            at = 1 + max(others.index(block) for block in beside)
            body.blocks = [*others[:at], *own, *others[at:]]
        for block in body.blocks if checked else ():
            for edge in block.end.edges:
                if edge.block in checked:
                    edge.block, edge.arguments = items.block, [*items.arguments]
        if is_free or checked:
            chosen.add(label)
        choose.terminator = Terminator("jump", edges=(rows if is_free or checked else items,))
        remove_unreached(body)
    return chosen == wanted


def _is_choice(block: Block) -> bool:
    if block.end.name != "branch":
        return False
    p = block.end.arguments[0]
    if not isinstance(p, Operation) or p.static != (I64, Condition.EQ):
        return False
    end, zero = p.arguments
    is_end = isinstance(end, Operation) and end.name == "object_end"
    return is_end and isinstance(zero, Constant) and not zero.bits


def _next(
    body: Body, launches: Collection[int], done: Collection[Block]
) -> tuple[Loop, InductionVariable, Operation, int] | None:
    """The next loop to divide, with its variable, a poll, and the length of rows."""
    for loop in find_loops(body):
        header = loop.header
        is_wanted = header.pc in launches and header not in done and loop.entry is not None
        if not is_wanted or len(header.parameters) != 1 or len(loop.latches) != 1:
            continue
        variable, poll = find_induction_variable(loop), _poll(loop)
        if variable is None or poll is None or not _counts(variable) or len(loop.exits) != 1:
            continue
        length = _row(loop, variable)
        if length is not None:
            return loop, variable, poll, length
    return None


def _counts(variable: InductionVariable) -> bool:
    """True if a variable counts from 0 to a constant by 1."""
    start, bound, step = variable.start, variable.bound, variable.step
    if not (
        isinstance(start, Constant) and isinstance(bound, Constant) and isinstance(step, Constant)
    ):
        return False
    return start.bits == 0 and step.bits == 1 and 0 < bound.bits <= _MOST_ITEMS


def _poll(loop: Loop) -> Operation | None:
    """The poll of a loop whose state has nothing of an iteration but the number of the next item."""
    (back,) = loop.back_edges
    polls = [o for o in loop.graph.blocks[back.source].operations if o.name == "poll"]
    (onward,) = back.edge.arguments
    if len(polls) != 1 or any(operation.state for operation in loop.header.operations):
        return None
    inside = {v for b in loop.members for v in (*b.parameters, *b.operations)} - {onward}
    return polls[0] if inside.isdisjoint(polls[0].exit.uses()) else None


def _row(loop: Loop, variable: InductionVariable) -> int | None:
    """The length of rows; None if no item divides its number, or rows are too long."""
    assert isinstance(variable.bound, Constant)
    items = variable.bound.bits
    for operation, quotient in _quotients(loop, variable.value, items):
        length = next((n for n, q in enumerate(quotient) if q == 1), None)
        if length is None or not 1 < length <= MOST_ITERATIONS or items % length:
            continue
        if quotient == [n // length for n in range(items)] and operation.type is I64:
            return length
    return None


def _quotients(loop: Loop, number: Value, items: int) -> Iterator[tuple[Operation, list[int]]]:
    """Operations that divide the number of an item, each with its values for all items."""
    for operation in loop.operations:
        last = operation.arguments[-1] if operation.arguments else None
        if not isinstance(last, Constant) or not last.bits or operation.static != (I64,):
            continue
        first = operation.arguments[0]
        if operation.name in ("div_u", "div_s") and first is number:
            yield operation, [n // last.bits for n in range(items)]
        elif operation.name == "shr_u" and isinstance(first, Operation) and first.name == "mul":
            factor = first.arguments[-1]
            if first.arguments[0] is number and isinstance(factor, Constant):
                shift = last.bits % I64.bits
                yield operation, [(n * factor.bits & I64.mask) >> shift for n in range(items)]


def _divide(
    body: Body, loop: Loop, variable: InductionVariable, poll: Operation, length: int
) -> Block:
    """Make a nest of a loop; the header of the loop over rows."""
    m, labels, header = Builder(body.constants), Labels(body), loop.header
    assert isinstance(variable.bound, Constant)
    items, number = variable.bound.bits, variable.value
    of_rows = m.constant(I64, length)
    rows, row, past = (
        labels.block(header, "rows"),
        labels.block(header, "row"),
        labels.block(header, "next"),
    )
    which = Parameter(I64)
    rows.parameters = [which]
    members = [block for block in loop.extent if block is not variable.exit.block]
    (latch,) = loop.latches
    back = next(e for e in loop.graph.blocks[latch].end.edges if e.block is header)
    onward = back.arguments[0]
    indices = _indices(loop, variable, length, which)

    m.pc = header.pc
    m.open(rows)
    is_more = m.compare(I64, Condition.LT_S, which, m.constant(I64, items // length))
    leaving = Edge(variable.exit.block, [*variable.exit.arguments], variable.exit.is_back)
    m.close(Terminator("branch", (), (is_more,), edges=(Edge(row, []), leaving)))
    m.open(row)
    first = m.mul(I64, which, of_rows)
    m.close(Terminator("jump", edges=(Edge(header, [m.constant(I64, 0)]),)))

    m.open(past)
    state = poll.exit.replace({onward: m.mul(I64, m.add(I64, which, m.constant(I64, 1)), of_rows)})
    m.emit(Operation("poll", None, (), (), state))
    again = m.add(I64, which, m.constant(I64, 1))
    m.close(Terminator("jump", edges=(Edge(rows, [again], is_back=True),)))

    # The header has a variable of rows now; the item's number follows.
    column = Parameter(I64)
    m.open(header)
    before, header.operations = header.operations, []
    item = m.add(I64, first, column)
    is_in_row = m.compare(I64, Condition.LT_S, column, of_rows)
    header.operations += before
    end = Terminator("branch", (), (is_in_row,), edges=(variable.onward, Edge(past, [])))
    m.close(end)
    source = loop.graph.blocks[latch]
    m.open(source)
    back.arguments = [m.add(I64, column, m.constant(I64, 1))]
    substitute(members, {number: item} | dict.fromkeys(indices[1], column) | indices[0])
    header.parameters = [column]
    inside = {*members}
    others = [block for block in body.blocks if block not in inside]
    substitute([*others, rows], {number: variable.bound})
    for block in others:
        for edge in block.end.edges:
            if edge.block is header and block is not row:
                edge.block, edge.arguments = rows, [m.constant(I64, 0)]
    at = body.blocks.index(header)
    body.blocks[at:at] = [rows, row]
    last = max(body.blocks.index(block) for block in members)
    body.blocks.insert(last + 1, past)
    return rows


def _indices(
    loop: Loop, variable: InductionVariable, length: int, row: Value
) -> tuple[dict[Value, Value], list[Value]]:
    """Operations whose values are the row, with that; and those whose values are the column."""
    assert isinstance(variable.bound, Constant)
    items, number = variable.bound.bits, variable.value
    expected = [n // length for n in range(items)]
    quotients = {o for o, found in _quotients(loop, number, items) if found == expected}
    products = {
        operation
        for operation in loop.operations
        if operation.name == "mul"
        and operation.arguments[0] in quotients
        and isinstance(operation.arguments[1], Constant)
        and operation.arguments[1].bits == length
    }
    columns: list[Value] = [
        operation
        for operation in loop.operations
        if operation.name == "sub"
        and operation.arguments[0] is number
        and operation.arguments[1] in products
    ]
    return dict.fromkeys(quotients, row), columns
