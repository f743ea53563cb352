# SPDX-License-Identifier: Apache-2.0
"""Calls of functions that are values: the kind of a variable determines the function.

    f = math.sin if c else math.cos       f: math.sin here, math.cos there
    integrate(lambda x: x * k, a, b)      the lambda is an argument, with the value of `k`

So a call is one of a known function, in a version of the code for each.
"""

from __future__ import annotations

import ast
import types
from typing import TYPE_CHECKING

from ferryvm.python.control_flow.call_argument import bound_arguments
from ferryvm.python.control_flow.graph import (
    Assign,
    Call,
    CallValue,
    Captured,
    Host,
    Known,
    Method,
    Raise,
    Return,
    Store,
    expressions,
    needs,
)
from ferryvm.python.control_flow.graph_builder import name_of
from ferryvm.python.control_flow.kernel_source import needs_item
from ferryvm.python.definition.source import InnerFunction
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.hosted.builtin import replacement
from ferryvm.python.value.kind import Closure, Constant, Kind, Tuple

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code
    from ferryvm.python.control_flow.graph import Statement, Terminator

MOST_CLOSURES = 8
"""Closures in one another, as a recursion makes them that passes on a lambda which calls the one
before."""


def is_inner(kind: Kind) -> bool:
    """True for an inner function, and for a tuple with one."""
    if isinstance(kind, Tuple):
        return any(map(is_inner, kind.items))
    return isinstance(kind, Closure) or (
        isinstance(kind, Constant) and isinstance(kind.value, InnerFunction)
    )


def _argument_kind(b: Code, node: ast.expr) -> Kind:
    """The kind of an argument of a compiled function: an inner function comes with the variables
    that it uses. Raises NotCompilableError."""
    return _passed(b, node, b.kind(node))


def _passed(b: Code, node: ast.expr, kind: Kind) -> Kind:
    if isinstance(kind, Tuple) and is_inner(kind):
        message = "cannot pass a tuple with a function; pass the function by itself"
        raise NotCompilableError(node, message)
    if not isinstance(kind, Constant) or not isinstance(kind.value, InnerFunction):
        return kind
    check_captured(b, node, kind.value)
    found = (_passed(b, node, b.env[name]) for name in kind.value.captured)
    closure = Closure(kind.value, tuple(found))
    if closure.depth > MOST_CLOSURES:
        message = f"more than {MOST_CLOSURES} functions that use one another are passed"
        raise NotCompilableError(node, message)
    return closure


def argument_kinds(b: Code, step: Call) -> tuple[Kind, ...]:
    """The kinds of the arguments of a call. Raises NotCompilableError."""
    found = tuple(_argument_kind(b, each) for each in step.arguments)
    assigned = step.function.assigned if isinstance(step.function, InnerFunction) else ()
    for kind in found if assigned else ():
        if isinstance(kind, Closure) and not _names_in(kind).isdisjoint(assigned):
            name = assigned[0]  # the function would not see the new value
            message = f"cannot pass {kind}, which uses {name!r}, to a function that assigns it"
            raise NotCompilableError(step.node, message)
    return found


def _names_in(kind: Closure) -> set[str]:
    """The variables that a function uses, also through others."""
    inner = (_names_in(each) for each in kind.items if isinstance(each, Closure))
    return set(kind.function.captured).union(*inner)


def push_argument(b: Code, node: ast.expr) -> None:
    """Push an argument of a compiled function."""
    if _argument_kind(b, node) == b.kind(node):
        b.push(node)
    else:
        _push_passed(b, b.kind(node))


def _push_passed(b: Code, kind: Kind) -> None:
    assert isinstance(kind, Constant)
    for name in kind.value.captured:
        each = b.env[name]
        if isinstance(each, Constant) and isinstance(each.value, InnerFunction):
            _push_passed(b, each)
        else:
            b.get(name, each)


def captured_kind(b: Code, node: Captured) -> Kind:
    """The kind of a variable that a function in a variable uses."""
    of = b.env[node.name]
    assert isinstance(of, Closure)
    return of.items[node.number]


def push_captured(b: Code, node: Captured) -> Kind:
    """Push the value of such a variable."""
    of = b.env[node.name]
    assert isinstance(of, Closure)
    first = sum(len(each.slots) for each in of.items[: node.number])
    kind = of.items[node.number]
    for local in b.locals(node.name, of)[first : first + len(kind.slots)]:
        b.f.local_get(local)
    return kind


def resolved(b: Code, step: CallValue) -> Call | Assign:
    """The call of the function that the variable holds. Raises NotCompilableError."""
    kind, node = b.env[step.of], step.node
    assert isinstance(node, ast.Call)
    function = kind.value if isinstance(kind, Constant) else None
    if not isinstance(function, types.FunctionType):
        function = getattr(function, "__ferryvm_function__", function)
    function = replacement(function, len(step.arguments)) or function
    if isinstance(kind, Closure):
        arguments = bound_arguments(node, kind.function, step.arguments, step.keywords)
        captured = [Captured(step.of, number, node) for number in range(len(kind.items))]
        return Call(node, step.name, kind.function, [*arguments, *captured], step.captured)
    if isinstance(function, InnerFunction):
        check_captured(b, node, function)
        arguments = bound_arguments(node, function, step.arguments, step.keywords)
        variables = [name_of(name, node) for name in function.captured]
        return Call(node, step.name, function, [*arguments, *variables], step.captured)
    if isinstance(function, types.FunctionType):
        if needs_item(function):
            message = "a function that asks for its item is called by its name"
            raise NotCompilableError(node, message)
        arguments = bound_arguments(node, function, step.arguments, step.keywords)
        return Call(node, step.name, function, arguments, step.captured)
    if not callable(function) or step.keywords:
        what = f"a call of {kind}" + (" with keywords" if step.keywords else "")
        raise NotCompilableError(node, f"cannot compile {what}")
    call = ast.Call(Known(function, node.func), step.arguments, [])
    return Assign(node, step.name, ast.copy_location(call, node))


def check_captured(b: Code, node: ast.AST, function: InnerFunction) -> None:
    """Refuse a call of an inner function with a variable that has no value: it may not use it."""
    for name in function.captured:
        if name not in b.env:
            message = f"{name!r}, which {function.name} uses, is not assigned on a path to here"
            raise NotCompilableError(node, message)


def check_uses(b: Code, step: Statement | Terminator) -> None:
    """Refuse an inner function that is returned, stored or printed: in CPython it is an object."""
    if not isinstance(step, Return | Store | Method | Host | Raise):
        return
    kinds = [b.env[name] for name in sorted(needs(step)) if name in b.env]
    if any(map(is_inner, kinds)) and (
        isinstance(step, Host | Raise) or any(is_inner(b.kind(each)) for each in expressions(step))
    ):
        message = (
            "cannot compile a function that is returned, stored or printed; call it here, or pass it to"
            " a function"
        )
        raise NotCompilableError(step.node, message)
