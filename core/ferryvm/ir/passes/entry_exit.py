# SPDX-License-Identifier: Apache-2.0
"""Exits before a function has changed anything leave in the state of its entry.

    before:  trap_if %bad [12: %a %b - - %x %y]        after:  trap_if %bad [0: %a %b - - 0]

What continues runs the function again from its start, which comes to the same exit: only work is
lost. So no value has to live until an exit for its frame alone, and there is one frame to be
written instead of one for each exit. That suits the items of a launch on a device, where few leave
and each register costs parallelism.

With this a check may also come earlier than its instruction, since an item that leaves needlessly
only runs in order. `hoist_entry_checks` moves checks of arguments to the entry that each run of the
function comes to unless it leaves: nulls, bounds, read-only arrays. An item that passes them has no
exit left where it accesses its own elements, neither before nor after a store.

`leave_at_entry` requires a body whose calls have been inlined as far as wanted, and runs before
other passes, which find what is no longer used. Both preserve effects; exits only as described.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    FrameState,
    Operation,
    Value,
)
from ferryvm.ir.operation import SHAPES, Role
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import Type

_EFFECTS = (Role.CHANGES, Role.CALLS)

MOVABLE = frozenset(
    {
        *("add", "sub", "mul", "bit_and", "bit_or", "bit_xor", "shl", "shr_s", "shr_u"),
        *("add_overflows", "sub_overflows", "mul_overflows"),
        *("compare", "all", "any", "none", "select", "boolean_to_i32"),
        *("wrap", "extend_s", "extend_u", "header_word", "frame", "stack_limit"),
        *("member", "member_index"),
    }
)
"""Operations on integers that can be computed wherever their operands are known; null has header
words, too."""

_MOST_BLOCKS = 100
"""Blocks of a body whose checks are hoisted, at most: the search is quadratic."""


def entry_state(body: Body, locals_: Sequence[Type]) -> FrameState:
    """The state at the entry of a function; `locals_`: types of its locals besides parameters."""
    zeros = (body.constant(t, 0) for t in locals_)
    header = (None,) * HEADER_WORDS
    return FrameState(body.entry, (*body.blocks[0].parameters, *header, *zeros))


def leave_at_entry(body: Body, state: FrameState) -> None:
    """Give exits that nothing has been changed before the state of the entry; calls keep theirs,
    which their callees' frames stand on."""
    changed = _changed_before(body)
    for block in body.blocks:
        is_changed = block in changed
        for operation in (*block.operations, block.end):
            role = SHAPES[operation.name].role
            if operation.state is not None and not is_changed and role is not Role.CALLS:
                operation.state = state
            is_changed |= role in _EFFECTS


def _changed_before(body: Body) -> set[Block]:
    """Blocks before which something may have been changed."""
    effects = {b for b in body.blocks if any(SHAPES[o.name].role in _EFFECTS for o in b.operations)}
    found: set[Block] = set()
    open_ = [edge.block for block in effects for edge in block.end.edges]
    while open_:
        block = open_.pop()
        if block not in found:
            found.add(block)
            open_ += [edge.block for edge in block.end.edges]
    return found


def leaves_at_entry(body: Body) -> bool:
    """True if all exits of a function leave in the state of its entry, and it calls nothing."""
    count, header = body.parameters, (None,) * HEADER_WORDS
    arguments = tuple(body.blocks[0].parameters[:count])

    def is_entry(state: FrameState) -> bool:
        words = state.words
        known = words[:count] == arguments and words[count:][:HEADER_WORDS] == header
        zeros = words[count + HEADER_WORDS :]
        is_zero = all(isinstance(word, Constant) and not word.bits for word in zeros)
        others = state.statics, state.heap_pointer, state.unpaid, state.header
        return known and is_zero and state.pc == body.entry and others == ((), None, 0, None)

    operations = [o for block in body.blocks for o in (*block.operations, block.end)]
    return all(
        SHAPES[o.name].role is not Role.CALLS and (o.state is None or is_entry(o.state))
        for o in operations
    )


def hoist_entry_checks(body: Body, state: FrameState) -> None:
    """Check at the entry, in its state, what each run checks of its arguments."""
    if len(body.blocks) > _MOST_BLOCKS:
        return
    entry = body.blocks[0]
    arguments = set(entry.parameters)
    movable: dict[Value, bool] = {}

    def is_movable(value: Value) -> bool:
        if isinstance(value, Constant) or value in arguments:
            return True
        if not isinstance(value, Operation) or value.name not in MOVABLE:
            return False
        if value not in movable:
            movable[value] = all(map(is_movable, value.arguments))
        return movable[value]

    checks = [
        (block, operation)
        for block in always_run(body)
        for operation in block.operations
        if operation.name == "trap_if" and is_movable(operation.arguments[0])
    ]
    if not checks:
        return
    needed: dict[Operation, None] = {}

    def need(value: Value) -> None:
        if isinstance(value, Operation) and value not in needed:
            for argument in value.arguments:
                need(argument)
            needed[value] = None

    for _, check in checks:
        need(check.arguments[0])
    removed = {*needed, *(check for _, check in checks)}
    for block in body.blocks:
        if not removed.isdisjoint(block.operations):
            block.operations = [o for o in block.operations if o not in removed]
    conditions = list(dict.fromkeys(check.arguments[0] for _, check in checks))
    condition, *others = conditions
    joined = []
    for other in others:
        condition = Operation("any", BOOLEAN, (), (condition, other))
        joined.append(condition)
    first = checks[0][1]
    check = Operation("trap_if", None, first.static, (condition,), state)
    check.pc = first.pc
    entry.operations = [*needed, *joined, check, *entry.operations]


def always_run(body: Body) -> Iterable[Block]:
    """The blocks that control comes through on every path from the entry to a return."""
    entry, returns = body.blocks[0], {b for b in body.blocks if b.end.name == "return"}
    for block in body.blocks:
        if block is entry:
            yield block
            continue
        seen, open_ = {block}, [entry]
        while open_:
            here = open_.pop()
            if here not in seen:
                seen.add(here)
                open_ += [edge.block for edge in here.end.edges]
        if returns and returns.isdisjoint(seen - {block}):
            yield block
