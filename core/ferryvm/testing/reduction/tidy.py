# SPDX-License-Identifier: Apache-2.0
"""Removal of unused labels, lines, functions, locals and statics from a listing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ferryvm.isa import Flow, Immediate
from ferryvm.listing import ClauseListing, FunctionListing, Item, Label, Line, Listing
from ferryvm.testing.reduction.cut import plain

_ENDS = (Flow.JUMP, Flow.TABLE, Flow.RETURN, Flow.STOP, Flow.THROW)


def targets(items: Iterator[Item]) -> set[str]:
    """Labels that lines jump to."""
    found: set[str] = set()
    for item in items:
        if isinstance(item, Line):
            if isinstance(item.operand, tuple):
                found.update(item.operand)
            elif item.row.immediate is Immediate.TARGET:
                found.add(str(item.operand))
    return found


def reachable(items: list[Item], clauses: Sequence[ClauseListing] = ()) -> list[Item]:
    """The items without unreachable lines and unused labels."""
    handlers = {clause.handler for clause in clauses}
    bounds = {name for clause in clauses for name in (clause.start, clause.end)}
    while True:
        used = targets(iter(items)) | handlers
        result: list[Item] = []
        goes_on = True
        for item in items:
            if isinstance(item, Label):
                if item.name in used:
                    result.append(item)
                    goes_on = True
                elif item.name in bounds:
                    result.append(item)
            elif goes_on:
                result.append(item)
                goes_on = item.row.flow not in _ENDS
        if goes_on:
            result.append(plain("halt"))
        if len(result) == len(items):
            return result
        items = result


def without_steps(items: list[Item], jumps: Sequence[Item]) -> list[Item]:
    """The items without those of these jumps that go to the instruction after them."""
    found: list[Item] = []
    for at, item in enumerate(items):
        if isinstance(item, Line) and any(item is jump for jump in jumps):
            after = itertools.takewhile(lambda it: isinstance(it, Label), items[at + 1 :])
            if any(isinstance(label, Label) and label.name == item.operand for label in after):
                continue
        found.append(item)
    return found


def covering(clauses: Sequence[ClauseListing], items: Sequence[Item]) -> list[ClauseListing]:
    """The clauses that cover a line."""
    lines, at = 0, dict[str, int]()
    for item in items:
        if isinstance(item, Label):
            at[item.name] = lines
        else:
            lines += 1
    return [clause for clause in clauses if at[clause.start] < at[clause.end]]


def called(
    functions: dict[str, FunctionListing], main: str, table: list[str]
) -> list[FunctionListing]:
    """The functions that can be called, in their order."""
    found, worklist = {main}, [main]
    while worklist:
        function = functions[worklist.pop()]
        names = [
            item.operand
            for item in function.items
            if isinstance(item, Line) and item.row.immediate in (Immediate.FUNCTION, Immediate.ITEM)
        ]
        names += table if uses_table(function) else []
        for name in names:
            if isinstance(name, str) and name not in found:
                found.add(name)
                worklist.append(name)
    return [function for name, function in functions.items() if name in found]


def uses_table(function: FunctionListing) -> bool:
    return any(
        isinstance(item, Line) and item.row.flow is Flow.CALL_INDIRECT for item in function.items
    )


def uses_host(functions: list[FunctionListing], name: str) -> bool:
    return any(
        isinstance(item, Line) and item.row.flow is Flow.HOST and item.operand == name
        for function in functions
        for item in function.items
    )


def uses_tags(function: FunctionListing) -> bool:
    """True if the function throws or catches: then all tags remain, since records have numbers."""
    return bool(function.clauses) or any(
        isinstance(item, Line) and item.row.flow is Flow.THROW for item in function.items
    )


def without_locals(function: FunctionListing, flags: list[int]) -> None:
    """Remove locals (not parameters) that are neither used nor flagged."""
    first = len(function.signature.parameters)
    numbers = _renumbered([function], Immediate.LOCAL, [1] * first + flags)
    function.locals = tuple(
        t for number, t in enumerate(function.locals, first) if number in numbers
    )


def without_statics(listing: Listing, flags: list[int]) -> None:
    """Remove statics that are neither used nor flagged."""
    numbers = _renumbered(listing.functions, Immediate.STATIC, flags)
    listing.statics = [static for at, static in enumerate(listing.statics) if at in numbers]


def _renumbered(
    functions: list[FunctionListing], kind: Immediate, flags: list[int]
) -> dict[int, int]:
    """New numbers of the variables that are used or flagged, and use them."""
    lines = [
        (function, at, item)
        for function in functions
        for at, item in enumerate(function.items)
        if isinstance(item, Line) and item.row.immediate is kind
    ]
    used = {item.operand for _, _, item in lines}
    result = [number for number, flag in enumerate(flags) if flag or number in used]
    numbers = {old: new for new, old in enumerate(result)}
    for function, at, item in lines:
        assert isinstance(item.operand, int)
        function.items[at] = Line(item.row, numbers[item.operand])
    return numbers
