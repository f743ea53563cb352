# SPDX-License-Identifier: Apache-2.0
"""Variables of a function that are never negative: numbers of ranges from 0 on, indices of items,
and what is computed from them. As indices they need not be counted from the end.

Each assignment is assumed to be of such a number, until one is found that is not: by induction over
the assignments that are executed, the rest never become negative. A sum that leaves 64 bits traps.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from ferryvm.python.control_flow.graph import Assign, Block, Iterate, Next, writes
from ferryvm.python.hosted.raw import Unchecked

_CLOSED = (
    *(ast.Add, ast.Mult, ast.FloorDiv, ast.Mod, ast.RShift),
    *(ast.BitAnd, ast.BitOr, ast.BitXor),
)
"""Operators of ints from 0 on whose values are such."""


def counters(
    blocks: Iterable[Block], parameters: Iterable[str], hidden: Collection[str]
) -> frozenset[str]:
    """The variables that hold nothing but ints from 0 on. `hidden`: parameters that are such."""
    values: dict[str, list[ast.expr]] = {}
    ranges: dict[str, ast.expr] = {}
    items: dict[str, list[str]] = {}
    others = {*parameters} - {*hidden}
    for block in blocks:
        for statement in block.statements:
            match statement:
                case Assign():
                    values.setdefault(statement.name, []).append(statement.value)
                case Iterate():
                    ranges[statement.name] = statement.value
                case _:
                    others |= writes(statement)
        if isinstance(block.end, Next):
            items.setdefault(block.end.name, []).append(block.end.iterator)
    found = {*values, *items, *hidden} - others
    while True:
        left = {
            name
            for name in found
            if all(is_from_zero(each, found) for each in values.get(name, ()))
            and all(_counts_up(ranges.get(each), found) for each in items.get(name, ()))
        }
        if left == found:
            return frozenset(found)
        found = left


def _counts_up(node: ast.expr | None, names: Collection[str]) -> bool:
    """True for a call of `range` that begins at 0 or above, and goes up."""
    if not isinstance(node, ast.Call) or getattr(node.func, "value", None) is not range:
        return False
    start = node.args[0] if len(node.args) > 1 else None
    step = node.args[2] if len(node.args) > 2 else None
    return all(each is None or is_from_zero(each, names) for each in (start, step))


def is_from_zero(node: ast.expr, names: Collection[str]) -> bool:
    """True for an int that is 0 or above: one that is written out, or computed from variables that
    are such."""
    match node:
        case ast.Constant():
            return type(node.value) is int and node.value >= 0
        case ast.Name():
            return node.id in names
        case ast.BinOp(op=op) if isinstance(op, _CLOSED):
            return is_from_zero(node.left, names) and is_from_zero(node.right, names)
        case ast.Call(func=func) if isinstance(getattr(func, "value", None), Unchecked):
            return all(is_from_zero(each, names) for each in node.args)
    return False
