# SPDX-License-Identifier: Apache-2.0
"""Statements of the graph as code of CPython, on their lines of the file."""

from __future__ import annotations

import ast
import builtins
import itertools
import operator
import types
from typing import Any

from ferryvm.python.control_flow.graph import InPlace, IsInstance, Known
from ferryvm.python.definition.source import Source

_IN_PLACE: dict[type[ast.operator], Any] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.MatMult: operator.imatmul,
}


class Statements:
    """The statements of a function that CPython executes."""

    def __init__(self, source: Source) -> None:
        self._source, self._numbers = source, itertools.count()
        self.known: dict[str, Any] = {"__builtins__": builtins}
        """The global variables of their code: known values."""

    def compiled(self, node: ast.stmt) -> types.CodeType:
        """The code of a statement, for `exec` with `known` and the variables."""
        tree = ast.fix_missing_locations(ast.Module([self._in_file(node)], []))
        code = compile(tree, self._source.file, "exec")
        name = self._source.name
        return code.replace(co_name=name, co_qualname=name)

    def _in_file(self, node: Any) -> Any:
        """A copy of a part of a tree: lines are those of the file, and known values have names."""
        if isinstance(node, list):
            return [self._in_file(each) for each in node]
        if not isinstance(node, ast.AST):
            return node
        if isinstance(node, Known):
            name = f"%known {next(self._numbers)}"
            self.known[name] = node.value
            made: ast.AST = ast.Name(name, ast.Load())
        elif isinstance(node, InPlace):
            change = _IN_PLACE.get(type(node.op))
            assert change is not None
            arguments = [node.left, node.right]
            made = self._in_file(ast.Call(Known(change, node), arguments, []))
        elif isinstance(node, IsInstance):
            arguments = [ast.Name(node.name, ast.Load()), Known(node.clause.types, node)]
            made = self._in_file(ast.Call(Known(isinstance, node), arguments, []))
        else:
            made = type(node)()
            for field in node._fields:
                setattr(made, field, self._in_file(getattr(node, field, None)))
        ast.copy_location(made, node)
        for name in ("lineno", "end_lineno"):
            line = getattr(made, name, None)
            if line is not None:
                setattr(made, name, line + self._source.first - 1)
        return made
