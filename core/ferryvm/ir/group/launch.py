# SPDX-License-Identifier: Apache-2.0
"""The loop of a launch whose items wait at barriers, in a body in which their calls are inlined.

    header: launch.test ──> start ─> … ─> barrier 1 ─> behind 1 ─> … ─> (back edge) header
        └──> behind the launch

Its blocks are split, so that each barrier ends a block. Where the launch is refused there is a
reason, and nothing has changed but that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ferryvm.ir.control_flow_graph import remove_unreached
from ferryvm.ir.graph import Block, Body, Constant, Edge, Operation, Parameter, Terminator, Value
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.loop.preheader import Labels
from ferryvm.ir.operation import CALLS
from ferryvm.isa.emitter import Condition
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.type import I32, I64
from ferryvm.program import Program
from ferryvm.region.barrier import BARRIER, waiting
from ferryvm.region.launch import CALL_DISTANCE, item_call
from ferryvm.verify import Verified

MOST_ITEMS = 1 << 16
"""Items of a group, at most: larger launches run as before."""

_REFUSED = {
    "call": "items call a function that is not a part of their code",
    "call_indirect": "items call a function that is not a part of their code",
    "call_host": "items call a native host function",
    "set_object_top": "items make objects",
    "set_heap_pointer": "items allocate from the heap",
}
"""Operations of items that need a record in the middle of a group, and the reasons."""


class NotGroupedError(Exception):
    """The items of a launch cannot run in parallel regions; the message is the reason, empty if
    nobody needs to know."""


@dataclasses.dataclass(frozen=True, eq=False)
class Barrier:
    """A barrier: it ends a block."""

    block: Block
    exit: Operation
    """The operation that leaves in front of it."""
    behind: Block


@dataclasses.dataclass(frozen=True, eq=False)
class Launch:
    """The loop of a launch."""

    body: Body
    loop: Loop
    test: Operation
    """The exit of `launch.test`, whose state has limit, next and record on top."""
    number: Parameter
    """The item: `next`, in the header."""
    limit: Value
    start: Block
    """The first block of items."""
    barriers: list[Barrier]
    members: list[Block]
    """The blocks of items, with those that leave, in the order of the body."""
    loops: list[Loop]
    """The loops of items, inner loops before outer ones."""

    @property
    def header(self) -> Block:
        """The block that tests if items are left."""
        return self.loop.header

    @property
    def pc(self) -> int:
        """Of the `launch.test`."""
        return self.test.exit.pc

    @property
    def item_pc(self) -> int:
        """Of the `launch.item`, in front of which an item has not begun."""
        return self.pc + CALL_DISTANCE - 1

    def join(self) -> None:
        """Put the exits of barriers back."""
        for barrier in self.barriers:
            barrier.block.operations.append(barrier.exit)

    def end_at_header(self) -> None:
        """Make control pass the header when all items have ended, and only then."""
        (out,) = (edge for edge in self.header.end.edges if edge.block is not self.start)
        self.header.terminator = Terminator("jump", edges=(out,))
        self.header.terminator.pc = self.pc


def launch_loops(body: Body, program: Program) -> list[tuple[Loop, list[Operation]]]:
    """The loops of launches in a body whose items wait, inner ones first, each with its barriers
    that are in no launch inside."""
    exits = [
        operation
        for operation in body.operations
        if operation.name == "continue_launch_if"
        and program.code.opcodes[operation.exit.pc] == BARRIER
    ]
    if not exits:
        return []
    found, taken = [], set[Operation]()
    for loop in find_loops(body):
        if _test_of(loop, program) is not None:
            own = {*loop.operations}
            barriers = [each for each in exits if each in own and each not in taken]
            taken.update(barriers)
            if barriers:
                found.append((loop, barriers))
    return found


def uninlined(body: Body, verified: Verified) -> Iterator[int]:
    """pcs of launches whose items may wait, and whose function is not a part of their loop."""
    functions = waiting(verified)
    if not functions:
        return
    for loop in find_loops(body):
        test = _test_of(loop, verified.program)
        calls = [o.fact(0, int) for o in loop.operations if o.name == "call"]
        if test is not None and not functions.keys().isdisjoint(calls):
            yield test.exit.pc


def _test_of(loop: Loop, program: Program) -> Operation | None:
    """The exit of the `launch.test` at the head of a loop; None if it is no launch."""
    for operation in loop.header.operations:
        if operation.name == "continue_launch_if":
            is_launch = item_call(program, operation.exit.pc) is not None
            return operation if is_launch else None
    return None


def split_launch(body: Body, loop: Loop, exits: list[Operation], program: Program) -> Launch:
    """A launch with its blocks split at its barriers. Raises NotGroupedError."""
    test, header = _test_of(loop, program), loop.header
    assert test is not None
    limit, next_, _record = test.exit.words[-LAUNCH_WORDS:]
    if limit is not None and is_never(body, limit, MOST_ITEMS):
        raise NotGroupedError  # there is another loop for fewer items
    members = _members(loop)
    _check([block for block in body.blocks if block in members], exits)
    if header.parameters != [next_] or header.end.name != "branch":
        raise NotGroupedError("items write statics, or allocate from the heap")
    if limit is None or (not isinstance(limit, Constant) and not loop.is_invariant(limit)):
        raise NotGroupedError("the number of items changes in their launch")
    number = header.parameters[0]
    inside = [edge.block for edge in header.end.edges if edge.block in members]
    is_entered_once = len(inside) == 1 and not inside[0].parameters
    sources = [edge.block for block in members for edge in block.end.edges]
    latches = [loop.graph.blocks[edge.source] for edge in loop.back_edges]
    if (
        not is_entered_once
        or inside[0] in sources
        or any(latch.end.name != "jump" for latch in latches)
    ):
        raise NotGroupedError("the launch's loop has another form")
    labels, barriers = Labels(body), []
    for block in [block for block in body.blocks if block in members]:
        here = block
        while (at := _place(here, exits)) is not None:
            behind = labels.block(block, "behind")
            exit_ = here.operations[at]
            behind.operations, here.operations = here.operations[at + 1 :], here.operations[:at]
            behind.terminator = here.terminator
            here.terminator = Terminator("jump", edges=(Edge(behind, []),))
            here.terminator.pc = exit_.pc
            if exit_.exit.unpaid:
                _pay_behind(body, here, exit_, behind)
            body.blocks.insert(body.blocks.index(here) + 1, behind)
            barriers.append(Barrier(here, exit_, behind))
            members.add(behind)
            here = behind
    inner = [each for each in find_loops(body) if each.header in members]
    ordered = [block for block in body.blocks if block in members]
    return Launch(body, loop, test, number, limit, inside[0], barriers, ordered, inner)


def _pay_behind(body: Body, here: Block, exit_: Operation, behind: Block) -> None:
    """Pay behind a barrier for what follows it, in the counting form; in front of it there has to be
    fuel, without which no item waits."""
    pay = here.operations[-1]
    assert pay.name == "pay"
    here.operations[-1] = Operation("pay", None, (0, 1), (), pay.exit)
    here.operations[-1].pc = pay.pc
    words = (*pay.exit.words[:-1], body.constant(I32, 1))
    pay.state = dataclasses.replace(pay.exit, words=words)
    exit_.state = dataclasses.replace(exit_.exit, unpaid=0)
    behind.operations.insert(0, pay)


def _place(block: Block, exits: list[Operation]) -> int | None:
    return next((at for at, o in enumerate(block.operations) if o in exits), None)


def _members(loop: Loop) -> set[Block]:
    """The blocks of items: those of the loop but for its header, and those that leave."""
    found: set[Block] = set()
    worklist = [edge.block for edge in loop.header.end.edges if edge.block in {*loop.members}]
    while worklist:
        block = worklist.pop()
        if block not in found and block is not loop.header:
            found.add(block)
            worklist += [edge.block for edge in block.end.edges]
    if not found <= {*loop.extent}:
        raise NotGroupedError("control leaves the launch from within an item")
    return found


def _check(members: list[Block], exits: list[Operation]) -> None:
    for block in members:
        if block.end.name == "throw":
            raise NotGroupedError("items throw exceptions")
        for operation in block.operations:
            if operation.name in _REFUSED:
                raise NotGroupedError(_REFUSED[operation.name])
            if operation.name in CALLS:
                raise NotGroupedError(_REFUSED["call"])
            if operation.state is not None and operation.state.phase is not None:
                raise NotGroupedError("items launch items that wait for each other")
            if operation.name == "continue_launch_if" and operation in exits:
                (p,) = operation.arguments
                if not isinstance(p, Constant):
                    raise NotGroupedError("the operand of a barrier is not the constant 0")


def leave_at_barriers(body: Body) -> None:
    """End blocks where control always leaves, and remove those that nothing leads to then."""
    has_changed = False
    for block in body.blocks:
        for place, operation in enumerate(block.operations):
            if operation.name == "continue_launch_if" and _is_true(operation.arguments[0]):
                del block.operations[place + 1 :]
                block.terminator = Terminator("leave", state=operation.exit)
                block.terminator.pc = operation.pc
                has_changed = True
                break
    if has_changed:
        remove_unreached(body)


def _is_true(value: Value) -> bool:
    return isinstance(value, Constant) and bool(value.bits)


def is_never(body: Body, value: Value, most: int) -> bool:
    """True if the number of items is only passed on where it is negative, or larger than `most`."""
    home = next((block for block in body.blocks if value in block.parameters), None)
    if home is None:
        return False
    place = home.parameters.index(value)  # type: ignore[arg-type]  # it is one of them
    for block in body.blocks:
        for edge in block.end.edges:
            if edge.block is home and not _excludes(block.end, edge, edge.arguments[place], most):
                return False
    return True


def _excludes(end: Terminator, edge: Edge, value: Value, most: int) -> bool:
    """True if a value is negative, or larger than `most`, on an edge of a branch."""
    p = end.arguments[0] if end.name == "branch" and edge is end.edges[0] else None
    if not isinstance(p, Operation) or p.name != "compare" or p.arguments[0] is not value:
        return False
    bound = p.arguments[1]
    if not isinstance(bound, Constant):
        return False
    if p.static == (I64, Condition.LT_S):
        return bound.bits == 0
    return p.static == (I64, Condition.GT_S) and bound.bits >= most
