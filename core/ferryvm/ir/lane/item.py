# SPDX-License-Identifier: Apache-2.0
"""The code of one item of a launch, as it is vectorised: a scalar body with all frames in states.

    item function ─ clone ─> leaves for what must be done in order ─> without unreachable blocks

Allocation, growth of the heap and host calls cannot be done out of the order of items: the code
leaves in front of them, always. What follows them is another backend's.
"""

from __future__ import annotations

import dataclasses

from ferryvm.errors import FerryError
from ferryvm.ir.control_flow_graph import edges_to, remove_unreached
from ferryvm.ir.graph import (
    Body,
    Constant,
    FrameState,
    Module,
    Operation,
    Terminator,
    Value,
)
from ferryvm.ir.loop.clone import copied
from ferryvm.ir.operation import UPDATES
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.use import users_of
from ferryvm.isa.emitter import Atomic
from ferryvm.isa.frame import HEADER_WORDS

_IN_ORDER = frozenset({"grow_if", "allocate_if", "call_host"})
"""Operations in front of which the code leaves."""

_DROPPED = frozenset({"check_entry", "report_version"})
"""Operations that the code for lanes does without: it polls between vectors."""

_CHANGES = "its items write statics or allocate from the heap"


class UnvectorisedError(FerryError):
    """The items of a launch are not run in lanes; the message is the reason."""


def item_body(module: Module) -> Body:
    """The code of the items of a region that is a launch's loop: a clone of their function's body,
    whose states have all words of an item's part of the stack. Raises UnvectorisedError."""
    if module.counting:
        raise UnvectorisedError("it counts instructions")
    call = _item_call(module)
    header = call.exit.words[-HEADER_WORDS:]
    body = copied(module.functions[call.fact(0, int)], lambda o: o.name in _DROPPED)
    refuse_ordered_updates(body)
    _leave_in_order(body)
    remove_dead_code(body)  # such as conditions of what is not reached
    completed: dict[FrameState, FrameState] = {}
    for block in body.blocks:
        for operation in (*block.operations, block.end):
            if operation.state is not None:
                state = operation.state
                if state not in completed:
                    completed[state] = _completed(state, header, body)
                operation.state = completed[state]
    return body


def _item_call(module: Module) -> Operation:
    """The call of the items. Raises UnvectorisedError where the region is none of a launch."""
    calls = [operation for operation in module.root.operations if operation.name == "call"]
    if len(calls) != 1:
        raise UnvectorisedError("it is not the loop of a launch")
    return calls[0]


def refuse_ordered_updates(body: Body) -> None:
    """Raise UnvectorisedError if the order of updates of elements or statics matters."""
    used = users_of(body)
    for operation in body.operations:
        if operation.name == "set_static":
            raise UnvectorisedError(_CHANGES)
        if operation.name in UPDATES:
            is_free = (
                operation.name == "update_element" and operation.static[1] is not Atomic.EXCHANGE
            )
            if not is_free or used.get(operation):
                raise UnvectorisedError("its items use what atomic updates return, or exchange")


def _completed(state: FrameState, header: tuple[Value | None, ...], body: Body) -> FrameState:
    """A state with the header of the item's frame."""
    if state.statics or state.heap_pointer is not None:
        raise UnvectorisedError(_CHANGES)
    words = list(state.words)
    words[body.parameters : body.parameters + HEADER_WORDS] = [_own(body, w) for w in header]
    return dataclasses.replace(state, words=tuple(words))


def _own(body: Body, word: Value | None) -> Value:
    """A constant of another body as one of this body."""
    assert isinstance(word, Constant)
    return body.constant(word.type, word.bits)


def _leave_in_order(body: Body) -> None:
    """End blocks in front of what must be done in order, and remove what is not reached then."""
    for block in body.blocks:
        for place, operation in enumerate(block.operations):
            if operation.name in _IN_ORDER:
                end = Terminator("leave", state=operation.exit)
                end.pc = operation.pc
                del block.operations[place:]
                block.terminator = end
                break
    remove_unreached(body)
    into = edges_to(body)
    for block in body.blocks[1:]:
        assert into[block], block.label
