# SPDX-License-Identifier: Apache-2.0
"""Calls of functions that are compiled, too: arguments in the order of parameters, and functions as
values."""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Sequence

from ferryvm.python.control_flow.graph import Assign, CallValue, Known
from ferryvm.python.control_flow.graph_builder import GraphBuilder, name_of, renamed
from ferryvm.python.control_flow.sequence import Sequences
from ferryvm.python.definition.source import InnerFunction, Source, names_of
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.hosted.builtin import ORIGINAL
from ferryvm.python.hosted.refused_call import name_of_function


class CallArguments(Sequences):
    """The lowering of such arguments in one function."""

    def __init__(self, source: Source, graph: GraphBuilder) -> None:
        super().__init__(graph)
        self._source = source
        self._captured: set[str] = set()
        """The variables that inner functions use which are values."""

    def arguments_of(
        self, node: ast.Call, function: types.FunctionType | InnerFunction
    ) -> list[ast.expr]:
        """The arguments of a call of a compiled function, in the order of its parameters."""
        _check_plain(node)
        keywords = {each.arg: each.value for each in node.keywords}
        values = self.values([*node.args, *keywords.values()])
        found = bound_arguments(node, function, values, tuple(map(str, keywords)))
        captured = function.captured if isinstance(function, InnerFunction) else ()
        return found + [name_of(name, node) for name in captured]

    def value_called(self, node: ast.Call) -> ast.expr:
        """The value of a call of a function that is a value itself."""
        _check_plain(node)
        keywords = tuple(str(each.arg) for each in node.keywords)
        parts = [node.func, *node.args, *(each.value for each in node.keywords)]
        of, *arguments = self.values(parts)
        if not isinstance(of, ast.Name):
            of = self.saved(of)
        if not isinstance(of, ast.Name):
            raise NotCompilableError(node, "cannot compile a call of a value; call a function")
        name = self.graph.temporary()
        self.graph.add(CallValue(node, name, of.id, arguments, keywords, self._captured))
        return name_of(name, node)

    def inner_value(self, node: ast.Name) -> ast.expr:
        """An inner function as a value."""
        inner = self._source.inner[node.id]
        return self._value_of(node, inner)

    def lambda_value(self, node: ast.Lambda) -> ast.expr:
        """A lambda as a value."""
        names = names_of(node)
        others = {name: _as_written(name) for name in names if name.startswith("%")}
        if not all(others.values()):
            raise NotCompilableError(node, "cannot compile a lambda in a key; write a function")
        written = renamed(node, others) if others else None
        return self._value_of(node, InnerFunction(self._source, node, "<lambda>", written))

    def _value_of(self, node: ast.expr, inner: InnerFunction) -> ast.expr:
        if inner.assigned:
            name = inner.assigned[0]
            message = (
                f"cannot compile {inner.name}, which assigns {name!r}, as a value; call it here"
            )
            raise NotCompilableError(node, message)
        self._captured.update(inner.captured)
        if isinstance(node, ast.Name) and node.id in self._source.variables:
            return node
        name = self.graph.temporary()
        self.graph.add(Assign(node, name, Known(inner, node)))
        return name_of(name, node)

    def used_names(self, node: ast.expr) -> set[str]:
        """The variables that an expression uses, also through inner functions."""
        names = names_of(node)
        inner = [self._source.inner[name] for name in names if name in self._source.inner]
        return names.union(*(each.captured for each in inner))


def _check_plain(node: ast.Call) -> None:
    """Refuse a call with * or **."""
    named = (each.arg for each in node.keywords)
    if None in named or any(isinstance(each, ast.Starred) for each in node.args):
        raise NotCompilableError(node, "cannot compile a call with * or **; pass each argument")


def _as_written(name: str) -> str:
    """The name of a variable of a comprehension in the source; empty for other temporary
    variables."""
    while name.startswith("%"):
        name = name[1:].rpartition(" ")[0]
    return name


def bound_arguments(
    node: ast.Call,
    function: types.FunctionType | InnerFunction,
    values: Sequence[ast.expr],
    keywords: tuple[str, ...],
) -> list[ast.expr]:
    """An argument for each parameter of a function, defaults included. `keywords`: the names of the
    last values."""
    count = len(values) - len(keywords)
    inner = function if isinstance(function, InnerFunction) else None
    signature = inner.signature if inner else inspect.signature(function, follow_wrapped=False)  # type: ignore[arg-type]  # a Python function
    try:
        bound = signature.bind(*values[:count], **dict(zip(keywords, values[count:], strict=True)))
    except TypeError as error:
        name = inner.name if inner else name_of_function(ORIGINAL.get(function, function))
        raise NotCompilableError(node, f"{name}: {error}") from None
    for each in signature.parameters.values():
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            message = "the function takes any number of arguments; name each"
            raise NotCompilableError(node, message)
    return [
        bound.arguments[name] if name in bound.arguments else Known(parameter.default, node)
        for name, parameter in signature.parameters.items()
    ]
