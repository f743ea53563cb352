# SPDX-License-Identifier: Apache-2.0
"""Methods of texts and bytes, and sums of them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ferryvm.build import Function, Program
from ferryvm.isa.type import I64
from ferryvm.python.codegen import text_code
from ferryvm.python.hosted import builtin_text
from ferryvm.python.value.kind import BOOL, INT, Kind, Text, text_of

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code


class _Rule(NamedTuple):
    """A method, which is a Python function of the subset."""

    function: Callable[..., Any]
    result: Kind | None
    """None: a text."""
    is_of_bytes: bool
    """True if bytes have it, too; the argument is bytes then."""
    arguments: int
    """The number of its arguments, which are texts."""


_METHODS = {
    "find": _Rule(builtin_text.find, INT, True, 1),
    "index": _Rule(builtin_text.index, INT, True, 1),
    "count": _Rule(builtin_text.count, INT, True, 1),
    "startswith": _Rule(builtin_text.startswith, BOOL, True, 1),
    "endswith": _Rule(builtin_text.endswith, BOOL, True, 1),
    "upper": _Rule(builtin_text.upper, None, False, 0),
    "lower": _Rule(builtin_text.lower, None, False, 0),
    "strip": _Rule(builtin_text.strip, None, False, 0),
    "lstrip": _Rule(builtin_text.lstrip, None, False, 0),
    "rstrip": _Rule(builtin_text.rstrip, None, False, 0),
}
assert _METHODS.keys() == builtin_text.TEXT_METHODS


def result_kind(b: Code, of: Kind, method: str, arguments: list[ast.expr]) -> Kind | None:
    """The kind of the value of a method of a text; None if code has no such method."""
    text, rule = text_of(of), _METHODS.get(method)
    if text is None or rule is None or len(arguments) != rule.arguments:
        return None
    if text.type is bytes and not rule.is_of_bytes:
        return None
    if any(text_of(b.kind(each)) != text for each in arguments):
        return None
    return rule.result or text


def push(b: Code, node: ast.AST, of: ast.expr, method: str, arguments: list[ast.expr]) -> None:
    """Push the value of a method of a text."""
    rule = _METHODS[method]
    kinds: list[Kind] = [text_code.push(b, each) for each in (of, *arguments)]
    b.call_hosted(node, rule.function, kinds, rule.result or kinds[0])


def push_sum(b: Code, node: ast.BinOp, kind: Text) -> None:
    """Push the text of one behind another."""
    f = b.f
    for each in (node.left, node.right):
        text_code.push(b, each)
    b.at(node)
    f.call(b.shared(f"sum of {kind}", lambda program, name: _sum(program, name, kind)))
    (array,) = b.locals("%sum", kind)[:1]
    f.local_set(array)
    f.local_get(array)
    f.i64_const(0)
    f.local_get(array)
    f.array_length()
    f.i64_const(1)


def _sum(program: Program, name: str, kind: Text) -> Function:
    """slots of two texts -> array: a new one with the characters of both."""
    element = kind.array.element
    slots = {f"slot {n}": slot for n, slot in enumerate((*kind.slots, *kind.slots))}
    f = program.function(name, slots, [element.array])
    first, second = f.parameters[:4], f.parameters[4:]
    made, to = f.local("made", element.array), f.local("to", I64)
    at = f.local("at", I64)
    f.local_get(first[2])
    f.local_get(second[2])
    f.i64_add()
    getattr(f, f"array_new_default_{element}")()
    f.local_set(made)
    for array, start, length, step in (first, second):
        f.i64_const(0)
        f.local_set(at)
        with f.block() as done, f.loop() as again:
            f.local_get(at)
            f.local_get(length)
            f.i64_ge_s()
            f.br_if(done)
            f.local_get(made)
            f.local_get(to)
            f.local_get(array)
            f.local_get(start)
            f.local_get(at)
            f.local_get(step)
            f.i64_mul()
            f.i64_add()
            getattr(f, f"array_get_{element}")()
            getattr(f, f"array_set_{element}")()
            for local in (at, to):
                f.local_get(local)
                f.i64_const(1)
                f.i64_add()
                f.local_set(local)
            f.br(again)
    f.local_get(made)
    return f
