# SPDX-License-Identifier: Apache-2.0
"""Smaller Python functions that are still of interest: statements go, expressions become their
operands or constants, as long as a predicate holds.

It works on the syntax tree, as the other reductions work on listings; candidates that Python itself
refuses, that do not end or whose numbers grow without bound are never of interest.
"""

from __future__ import annotations

import ast
import copy
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

_MOST_LINES = 20_000
_MOST_BITS = 20_000
_MOST_TRIALS = 3_000
_CONSTANTS = (0, 1, 0.0)


class EndlessError(BaseException):
    """A call takes too many lines, or its numbers grow too far. No `except Exception` takes it."""


def bounded(function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call. Raises EndlessError if it takes too long."""
    lines = 0

    def watch(frame: types.FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += 1
        if lines > _MOST_LINES:
            raise EndlessError
        if event == "line":
            for value in frame.f_locals.values():
                if isinstance(value, int) and value.bit_length() > _MOST_BITS:
                    raise EndlessError
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        return function(*arguments)
    finally:
        sys.settrace(before)


def reduced(
    text: str, call: str, is_interesting: Callable[[str, str], bool], progress: Callable[[], object]
) -> tuple[str, str]:
    """The text of functions and of the arguments of a call, made smaller.

    `is_interesting`: true for texts that still show what is looked for. `progress` is called before
    each of at most 3,000 trials.
    """
    trials = 0
    best = ast.unparse(ast.parse(text)), ast.unparse(ast.parse(call))
    if not is_interesting(*best):
        return text, call
    is_smaller = True
    while is_smaller:
        is_smaller = False
        start = 0
        while True:
            for number, candidate in enumerate(_candidates(*best)):
                if number < start or candidate == best:
                    continue
                trials += 1
                if trials > _MOST_TRIALS:
                    return best
                progress()
                if is_interesting(*candidate):
                    best, start, is_smaller = candidate, number, True
                    break
            else:
                break
    return best


def _candidates(text: str, call: str) -> Iterator[tuple[str, str]]:
    for smaller in _smaller_modules(ast.parse(text)):
        yield ast.unparse(ast.fix_missing_locations(smaller)), call
    yield from _without_parameter(text, call)
    for smaller in _with_smaller_expressions(ast.parse(call)):
        yield text, ast.unparse(smaller)


def _smaller_modules(tree: ast.Module) -> Iterator[ast.AST]:
    """Without statements, from many to one; then with smaller expressions."""
    for number, node in enumerate(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            statements = getattr(node, name, None)
            if not isinstance(statements, list):
                continue
            size = len(statements)
            while size:
                for first in range(0, len(statements), size):
                    yield _cut(tree, number, name, slice(first, first + size), [])
                size //= 2
            for place, each in enumerate(statements):
                for inner in ("body", "orelse", "finalbody"):
                    found = getattr(each, inner, None)
                    if isinstance(each, ast.stmt) and found and not _is_definition(each):
                        yield _cut(tree, number, name, slice(place, place + 1), found)
    yield from _with_smaller_expressions(tree)


def _is_definition(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef)


def _cut(
    tree: ast.Module, number: int, name: str, where: slice, instead: list[ast.stmt]
) -> ast.Module:
    """The tree with other statements in a place of the node of a number."""
    smaller = copy.deepcopy(tree)
    node = _at(smaller, number)
    statements = getattr(node, name)
    statements[where] = copy.deepcopy(instead)
    if not statements and name == "body":
        statements.append(ast.Pass())
    return smaller


def _at(tree: ast.AST, number: int) -> ast.AST:
    return next(node for place, node in enumerate(ast.walk(tree)) if place == number)


def _with_smaller_expressions(tree: ast.Module) -> Iterator[ast.Module]:
    for number, node in enumerate(ast.walk(tree)):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr):
                for other in _smaller(value, node):
                    smaller = copy.deepcopy(tree)
                    setattr(_at(smaller, number), name, copy.deepcopy(other))
                    yield smaller
            elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                for place, each in enumerate(value):
                    for instead in (None, *_smaller(each, node)):
                        smaller = copy.deepcopy(tree)
                        found = getattr(_at(smaller, number), name)
                        found[place : place + 1] = (
                            [] if instead is None else [copy.deepcopy(instead)]
                        )
                        yield smaller


def _smaller(node: ast.expr, parent: ast.AST) -> Iterator[ast.expr]:
    """Operands of an expression, and constants."""
    if isinstance(node, ast.Constant | ast.Slice) or isinstance(
        getattr(node, "ctx", None), ast.Store
    ):
        return
    if isinstance(parent, ast.JoinedStr | ast.FormattedValue) and isinstance(
        node, ast.FormattedValue | ast.JoinedStr
    ):
        return  # a part of a formatted text, in whose place no other expression may stand
    for constant in _CONSTANTS:
        yield ast.Constant(constant)
    is_exponent = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Pow | ast.LShift)
    if is_exponent:
        return  # whose operands are bounded by their form
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and not isinstance(child, ast.Slice):
            yield child


def _without_parameter(text: str, call: str) -> Iterator[tuple[str, str]]:
    """Without a parameter of the last function that is not used."""
    tree, arguments = ast.parse(text), ast.parse(call, mode="eval").body
    function = tree.body[-1]
    if not isinstance(function, ast.FunctionDef) or not isinstance(arguments, ast.Tuple):
        return
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    for place, parameter in enumerate(function.args.args):
        if parameter.arg not in used and place < len(arguments.elts):
            smaller, fewer = copy.deepcopy(tree), copy.deepcopy(arguments)
            del smaller.body[-1].args.args[place], fewer.elts[place]  # type: ignore[attr-defined]  # a definition
            yield ast.unparse(smaller), ast.unparse(fewer)
