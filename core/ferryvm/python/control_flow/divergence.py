# SPDX-License-Identifier: Apache-2.0
"""Blocks of a kernel behind which items of one group may go on differently.

A variable is uniform if all items of a group have the same value in it. Not uniform are indices of
items, elements of arrays, results of calls, what is computed from them, and what is assigned where
only some items come. (Karrenberg and Hack: Improving Performance of OpenCL on CPUs, CC 2012,
section 4.)
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from ferryvm.python.control_flow.graph import (
    Assign,
    Atomic,
    Block,
    Branch,
    Call,
    CallValue,
    Iterate,
    Method,
    Next,
    Statement,
    Unpack,
    expressions,
    read,
    reads,
    writes,
)


def divergent_blocks(blocks: Sequence[Block], varying: Iterable[str]) -> frozenset[int]:
    """The numbers of the blocks whose ends lead items of a group to different blocks. `varying`:
    the parameters that are not uniform."""
    found = {*varying}
    after = _postdominators(blocks)
    while True:
        before = len(found)
        ranges = {
            statement.name
            for block in blocks
            for statement in block.statements
            if isinstance(statement, Iterate) and _is_range(statement.value)
        }
        divergent = [block for block in blocks if _diverges(block, found)]
        apart = set[int]().union(*(_apart(block, after[block.number]) for block in divergent))
        for block in blocks:
            for statement in block.statements:
                if block.number in apart or _varies(statement, found):
                    found |= writes(statement)
            end = block.end
            if isinstance(end, Next) and (
                block.number in apart or end.iterator in found or end.iterator not in ranges
            ):
                found.add(end.name)
        if len(found) == before:
            return frozenset(block.number for block in divergent)


def _diverges(block: Block, varying: set[str]) -> bool:
    end = block.end
    if isinstance(end, Branch):
        return bool(reads(end) & varying) or _loads(end.condition)
    return isinstance(end, Next) and end.iterator in varying


def _varies(statement: Statement, varying: set[str]) -> bool:
    """True if what a statement assigns may differ from item to item."""
    match statement:
        case Call() | CallValue() | Method() | Atomic() | Unpack():
            return True
        case Iterate():
            return bool(read(statement.value) & varying)
        case Assign():
            return bool(reads(statement) & varying) or any(map(_loads, expressions(statement)))
    return False


def _loads(node: ast.expr) -> bool:
    """True if an expression has elements of arrays in it."""
    return any(
        isinstance(each, ast.Subscript) and getattr(each.value, "attr", None) != "shape"
        for each in ast.walk(node)
    )


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "value", None) is range


def _postdominators(blocks: Sequence[Block]) -> dict[int, set[int]]:
    """The blocks through which every path from each one to the end goes, itself included."""
    everything = {block.number for block in blocks}
    found = {
        block.number: set(everything) if block.successors() else {block.number} for block in blocks
    }
    has_changed = True
    while has_changed:
        has_changed = False
        for block in reversed(blocks):
            behind = [found[each.number] for each in block.successors()]
            if behind:
                now = {block.number}.union(set.intersection(*behind))
                has_changed |= now != found[block.number]
                found[block.number] = now
    return found


def _apart(block: Block, after: set[int]) -> set[int]:
    """The blocks to which only some items of a group may come from the end of one, up to where all
    paths meet."""
    meeting = after - {block.number}
    found: set[int] = set()
    waiting = [each for each in block.successors() if each.number not in meeting]
    while waiting:
        each = waiting.pop()
        if each.number not in found:
            found.add(each.number)
            waiting += [to for to in each.successors() if to.number not in meeting]
    return found
