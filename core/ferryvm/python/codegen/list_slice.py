# SPDX-License-Identifier: Apache-2.0
"""Slices of lists: read, assigned, deleted; and slices of tuples, whose bounds are written out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ferryvm.isa.type import I64
from ferryvm.python.codegen import list_code, list_function
from ferryvm.python.codegen.known import known_integer
from ferryvm.python.codegen.mixed_item import misfit
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.hosted import builtin_list
from ferryvm.python.value.kind import INT, INTEGERS, NONE, Kind, List, Tuple, united

if TYPE_CHECKING:
    from ferryvm.build import Local
    from ferryvm.python.codegen.code import Code


def of_tuple(node: ast.Slice, kind: Tuple) -> list[int]:
    """The numbers of the items of a tuple in a slice. Raises NotCompilableError."""
    bounds = []
    for part in (node.lower, node.upper, node.step):
        is_none = part is None or getattr(part, "value", part) is None
        number = None if is_none or part is None else known_integer(part)
        if number is None and not is_none:
            message = "the bounds of a slice of a tuple must be numbers that are written out"
            raise NotCompilableError(node, message)
        bounds.append(number)
    if bounds[2] == 0:
        raise NotCompilableError(node, "slice step cannot be zero")
    return [*range(len(kind.items))[slice(*bounds)]]


def _step(node: ast.Slice) -> int:
    if node.step is None or getattr(node.step, "value", node.step) is None:
        return 1
    step = known_integer(node.step)
    if not step:
        message = "the step of a slice must be a number that is written out, and not 0"
        raise NotCompilableError(node, message)
    return step


def _is_plain(node: ast.Slice) -> bool:
    """True for a slice without a step, or with one that is written out."""
    step = node.step
    return step is None or getattr(step, "value", step) is None or bool(known_integer(step))


def _push_parts(b: Code, node: ast.Slice) -> list[Kind]:
    """Push the bounds and the step of a slice, each an int or None; their kinds."""
    kinds: list[Kind] = []
    for part in (node.lower, node.upper, node.step):
        if part is None or b.kind(part) == NONE:
            kinds.append(NONE)
        else:
            b.push_as(part, INT)
            kinds.append(INT)
    if kinds[-1] == NONE:
        b.f.i64_const(1)
        kinds[-1] = INT
    return kinds


def check(b: Code, node: ast.Slice) -> None:
    """Raise NotCompilableError for bounds that are no integers."""
    for part in (node.lower, node.upper, node.step):
        if part is not None and getattr(part, "value", part) is not None:
            kind = b.kind(part)
            if kind not in INTEGERS and (kind != NONE or _is_plain(node)):
                raise NotCompilableError(part, f"a bound of a slice must be an int, found {kind}")


def push(b: Code, node: ast.Subscript, of: Local, kind: List) -> None:
    """Push a new list of the items in a slice."""
    f = b.f
    assert isinstance(node.slice, ast.Slice)
    if not _is_plain(node.slice):
        f.local_get(of)
        kinds = [kind, *_push_parts(b, node.slice)]
        b.call_hosted(node, builtin_list.sliced, kinds, kind)
        return
    step = _step(node.slice)
    start, stop = _bounds(b, node, node.slice, of)
    f.local_get(of)
    f.local_get(start)
    if step != 1:
        f.local_get(stop)
        f.i64_const(step)
        b.call_hosted(node, builtin_list.stepped, [kind, INT, INT, INT], kind)
        return
    _push_count(b, start, stop)
    b.at(node)
    f.call(list_function.part(b, list_code.layout(kind)))


def store(
    b: Code, node: ast.AST, bounds: ast.Slice, of: Local, kind: List, value: ast.expr
) -> None:
    """Replace the items in a slice by those of another list."""
    f, found = b.f, b.kind(value)
    if not isinstance(found, List):
        raise NotCompilableError(
            node, f"cannot store {found} into a slice of a list; make it a list"
        )
    if united(found, kind) != kind:
        message = f"cannot store {found} into a {kind}; convert the items of one of them"
        raise misfit(node, message, kind, found)
    (other,) = b.locals("%spliced", kind)
    list_code.adapt(b, node, b.push(value), kind)
    f.local_set(other)
    if not _is_plain(bounds) or _step(bounds) != 1:
        f.local_get(of)
        kinds: list[Kind] = [kind, *_push_parts(b, bounds), kind]
        f.local_get(other)
        b.call_hosted(node, builtin_list.store_slice, kinds, NONE)
        return
    _begin(b, node, bounds, of)
    f.local_get(other)
    list_code.splice(b, node, kind)


def delete(b: Code, node: ast.AST, bounds: ast.Slice, of: Local, kind: List) -> None:
    """Delete the items in a slice."""
    if not _is_plain(bounds) or _step(bounds) != 1:
        b.f.local_get(of)
        kinds: list[Kind] = [kind, *_push_parts(b, bounds)]
        b.call_hosted(node, builtin_list.delete_slice, kinds, NONE)
        return
    _begin(b, node, bounds, of)
    list_code.new(b)
    list_code.splice(b, node, kind)


def _begin(b: Code, node: ast.AST, bounds: ast.Slice, of: Local) -> None:
    """Push a list, the start of a slice, and the number of items in it."""
    start, stop = _bounds(b, node, bounds, of)
    b.f.local_get(of)
    b.f.local_get(start)
    _push_count(b, start, stop)


def _push_count(b: Code, start: Local, stop: Local) -> None:
    f, count = b.f, b.spare(I64)
    f.local_get(stop)
    f.local_get(start)
    f.i64_sub()
    f.local_set(count)
    f.local_get(count)
    f.i64_const(0)
    f.local_get(count)
    f.i64_const(0)
    f.i64_gt_s()
    f.select()


def _bounds(b: Code, node: ast.AST, part: ast.Slice, of: Local) -> tuple[Local, Local]:
    """Locals with start and stop of a slice (the Python data model: `slice.indices`)."""
    f, step = b.f, _step(part)
    name = f"%slice {getattr(node, 'lineno', 0)} {getattr(node, 'col_offset', 0)} {id(part)}"
    start, stop = b.scratch(f"{name} start"), b.scratch(f"{name} stop")
    for bound, local, is_start in ((part.lower, start, True), (part.upper, stop, False)):
        if bound is None or getattr(bound, "value", bound) is None:
            if is_start == (step > 0):
                f.i64_const(0 if step > 0 else -1)
            else:
                list_code.length(b, of)
                if step < 0:
                    f.i64_const(1)
                    f.i64_sub()
        else:
            b.push_as(bound, INT)
            list_code.length(b, of)
            function = builtin_list.clipped if step > 0 else builtin_list.clipped_backwards
            kinds: list[Kind] = [INT, INT]
            b.call_hosted(node, function, kinds, INT)
        f.local_set(local)
    return start, stop
