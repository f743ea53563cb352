# SPDX-License-Identifier: Apache-2.0
"""The arguments of calls of functions that are compiled, too, in the order of their parameters."""

from __future__ import annotations

import ast
import inspect
import types

from ferryvm.python.control_flow.graph import Known
from ferryvm.python.control_flow.graph_builder import GraphBuilder, name_of
from ferryvm.python.control_flow.sequence import Sequences
from ferryvm.python.definition.source import InnerFunction, Source
from ferryvm.python.fault import NotCompilableError


class CallArguments(Sequences):
    """The lowering of such arguments in one function."""

    def __init__(self, source: Source, graph: GraphBuilder) -> None:
        super().__init__(graph)
        self._source = source

    def arguments_of(
        self, node: ast.Call, function: types.FunctionType | InnerFunction
    ) -> list[ast.expr]:
        """The arguments of a call of a compiled function, in the order of its parameters."""
        keywords = {each.arg: each.value for each in node.keywords}
        if None in keywords or any(isinstance(each, ast.Starred) for each in node.args):
            raise NotCompilableError(node, "cannot compile a call with * or **; pass each argument")
        values = self.values([*node.args, *keywords.values()])
        given = values[: len(node.args)]
        named = dict(zip(map(str, keywords), values[len(node.args) :], strict=True))
        inner = function if isinstance(function, InnerFunction) else None
        signature = inner.signature if inner else inspect.signature(function, follow_wrapped=False)  # type: ignore[arg-type]  # a Python function
        try:
            bound = signature.bind(*given, **named)
        except TypeError as error:
            name = inner.name if inner else getattr(function, "__name__", "")
            raise NotCompilableError(node, f"{name}: {error}") from None
        for each in signature.parameters.values():
            if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
                message = "the function takes any number of arguments; name each"
                raise NotCompilableError(node, message)
        captured = inner.captured if inner else ()
        return [
            bound.arguments[name] if name in bound.arguments else Known(parameter.default, node)
            for name, parameter in signature.parameters.items()
        ] + [name_of(name, node) for name in captured]

    def used_names(self, node: ast.expr) -> set[str]:
        """The variables that an expression uses, also through inner functions."""
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        inner = [self._source.inner[name] for name in names if name in self._source.inner]
        return names.union(*(each.captured for each in inner))
