# SPDX-License-Identifier: Apache-2.0
"""Checks that always fail: a block ends there.

    if (2^61 >= x_length) error ─ x[2^61] = 0 ─ ...    >    error

An element at such an index would be past the last byte that an object of C has (PTRDIFF_MAX), so no
array is that long. Compilers warn of what stands behind such a check: of an element out of bounds, of
a division by the constant 0.
"""

from __future__ import annotations

import itertools

from ferryvm.ir.build import Builder
from ferryvm.ir.control_flow_graph import remove_unreached
from ferryvm.ir.graph import BOOLEAN, Body, Constant, Operation, Parameter, Terminator, Value
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.simplify import simplify
from ferryvm.ir.use import substitute
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64
from ferryvm.portable.plain import PlainFunction

LARGEST_OBJECT = (1 << 63) - 1
"""Bytes of the largest object of C on the widest machines."""

_SWAPPED = {
    Condition.LE_U: Condition.GE_U,
    Condition.LT_U: Condition.GT_U,
    Condition.GE_U: Condition.LE_U,
    Condition.GT_U: Condition.LT_U,
}
"""Unsigned comparisons, if their operands are exchanged."""

_OF_LARGER = {
    **dict.fromkeys((Condition.GE_U, Condition.GT_U), True),
    **dict.fromkeys((Condition.LE_U, Condition.LT_U), False),
}
"""The outcomes of comparing a larger number with a smaller one."""


_INDICES = {
    **dict.fromkeys(("array_load", "array_store", "array_update", "array_exchange"), (1,)),
    "array_fill": (1,),
    "array_move": (1, 3),
}
"""The operands that are indices, by operation."""


def end_at_failures(function: PlainFunction) -> None:
    """End blocks at checks that always fail, and fold comparisons of lengths with numbers that none
    has. Members of a group that a target runs go on behind a failure; nothing is changed in
    them."""
    if function.member is not None:
        return
    body = function.body
    _fold(body, _lengths(function))
    has_ended = False
    for block in body.blocks:
        remaining: list[Operation] = []
        for operation in block.operations:
            condition = operation.arguments[0] if operation.name == "error_if" else None
            is_reached = not _is_past_any_array(operation)
            if not is_reached or (isinstance(condition, Constant) and condition.bits):
                static = operation.static if is_reached else _any_error(function)
                block.terminator = Terminator("error", static)
                block.terminator.pc = operation.pc
                has_ended = True
                break
            if not isinstance(condition, Constant):
                remaining.append(operation)
        block.operations = remaining
    if has_ended:
        remove_unreached(body)
    thread_jumps(body)
    remove_dead_code(body)


def _longest(bytes_: int) -> int:
    """The largest number of elements of so many bytes that an array has."""
    return LARGEST_OBJECT // bytes_


def _lengths(function: PlainFunction) -> dict[Value, int]:
    """The lengths among the parameters, each with the bytes of an element."""
    parameters = function.body.blocks[0].parameters
    return {
        length: function.pointers[pointer].element.bytes
        for pointer, length in itertools.pairwise(parameters)
        if pointer in function.pointers
    }


def _is_past_any_array(operation: Operation) -> bool:
    """True if an operation accesses an element that no array has, so a check before it fails."""
    places = _INDICES.get(operation.name, ())
    return any(
        isinstance(index, Constant) and index.bits >= _longest(operation.fact(0, Element).bytes)
        for index in (operation.arguments[place] for place in places)
    )


def _any_error(function: PlainFunction) -> tuple[Trap, int]:
    """An error of the interface, for the end of a block that is not reached."""
    kind, lines = next(iter(function.interface.errors.items()))
    return kind, lines[0]


def _fold(body: Body, lengths: dict[Value, int]) -> None:
    new: dict[Value, Value] = {}
    builder = Builder(body.constants)
    for operation in body.operations:
        if operation.type is not BOOLEAN:
            continue
        made: Value | None = None
        outcome = _outcome(operation, lengths)
        if outcome is not None:
            made = builder.constant(BOOLEAN, int(outcome))
        elif operation.name in ("any", "all", "none"):
            given = tuple([new.get(each, each) for each in operation.arguments])
            if given != operation.arguments:
                made = simplify(builder, operation.name, operation.static, given, BOOLEAN)
        if made is not None:
            new[operation] = made
    substitute(body.blocks, new)


def _outcome(operation: Operation, lengths: dict[Value, int]) -> bool | None:
    """The outcome of a comparison of a length with a number that no length is; None if it is none."""
    if operation.name != "compare" or operation.static[0] is not I64:
        return None
    condition = operation.fact(1, Condition)
    left, right = operation.arguments
    if isinstance(left, Parameter):
        left, right, condition = right, left, _SWAPPED.get(condition, condition)
    if not isinstance(left, Constant) or right not in lengths:
        return None
    longest, may_be_equal = _longest(lengths[right]), condition in (Condition.GE_U, Condition.LT_U)
    if left.bits > longest or (left.bits == longest and may_be_equal):
        return _OF_LARGER.get(condition)
    return None
