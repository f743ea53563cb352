# SPDX-License-Identifier: Apache-2.0
"""Operators of lists: `xs + ys`, `xs * n`, and both in place."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ferryvm.python.codegen import list_code, list_function
from ferryvm.python.codegen.mixed_item import misfit
from ferryvm.python.control_flow.graph import InPlace
from ferryvm.python.fault import NotCompilableError, UnknownItemsError
from ferryvm.python.value.kind import BOOL, INT, Kind, List, united

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code


def result_kind(b: Code, node: ast.BinOp, left: Kind, right: Kind) -> Kind:
    """The kind of an operator's value, of which an operand is a list. Raises NotCompilableError."""
    if isinstance(node.op, ast.Mult):
        of, number = (left, right) if isinstance(left, List) else (right, left)
        if isinstance(of, List) and number in (INT, BOOL):
            if of.item is None:
                raise UnknownItemsError(node.left if of is left else node.right, "it is empty")
            return of
    if isinstance(node.op, ast.Add) and isinstance(left, List) and isinstance(right, List):
        both = united(left, right)
        if both is None:
            message = f"cannot add {right} to {left}; convert the items of one of them"
            raise misfit(node, message, left, right)
        if both == List(None):
            raise UnknownItemsError(node.left, "it is empty")
        return both
    symbol = {ast.Mult: "*", ast.Add: "+"}.get(type(node.op), "with this operator")
    raise NotCompilableError(node, f"cannot compile {left} {symbol} {right}")


def push(b: Code, node: ast.BinOp, kind: List) -> None:
    """Push the value of an operator that is a list; in place, it is the left operand."""
    if isinstance(node.op, ast.Mult):
        _repeat(b, node, kind)
    else:
        _add(b, node, kind)


def _add(b: Code, node: ast.BinOp, kind: List) -> None:
    f, layout = b.f, list_code.layout(kind)
    name = f"{node.lineno} {node.col_offset} {node.end_col_offset}"
    (left,) = b.locals(f"%left {name}", kind)
    (right,) = b.locals(f"%right {name}", kind)
    for each, local in ((node.left, left), (node.right, right)):
        list_code.adapt(b, node, b.push(each), kind)
        f.local_set(local)
    if not isinstance(node, InPlace):
        f.local_get(left)
        f.i64_const(0)
        list_code.length(b, left)
        b.at(node)
        f.call(list_function.part(b, layout))
        f.local_set(left)
    else:
        b.changes(kind)
    f.local_get(left)
    list_code.length(b, left)
    f.i64_const(0)
    f.local_get(right)
    f.i64_const(kind.number)
    b.at(node)
    f.call(list_function.splice(b, layout))
    f.local_get(left)


def _repeat(b: Code, node: ast.BinOp, kind: List) -> None:
    f = b.f
    is_left = isinstance(b.kind(node.left), List)
    of, number = (node.left, node.right) if is_left else (node.right, node.left)
    (list_,) = b.locals(f"%repeated {node.lineno} {node.col_offset} {node.end_col_offset}", kind)
    times = b.scratch("%times")
    if is_left:
        b.push(of)
        f.local_set(list_)
        b.push_as(number, INT)
    else:
        b.push_as(number, INT)
        f.local_set(times)
        b.push(of)
        f.local_set(list_)
        f.local_get(times)
    f.local_set(times)
    f.local_get(list_)
    f.local_get(times)
    b.at(node)
    f.call(list_function.repeat(b, list_code.layout(kind)))
    if not isinstance(node, InPlace):
        return
    (made,) = b.locals("%made", kind)
    f.local_set(made)
    f.local_get(list_)
    f.i64_const(0)
    list_code.length(b, list_)
    f.local_get(made)
    f.i64_const(kind.number)
    f.call(list_function.splice(b, list_code.layout(kind)))
    f.local_get(list_)
    b.changes(kind)
