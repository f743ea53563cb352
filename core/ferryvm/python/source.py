# SPDX-License-Identifier: Apache-2.0
"""The syntax tree of a Python function, and what its free names refer to."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
import types
from typing import Any

from ferryvm.errors import Position
from ferryvm.python.fault import NotCompilableError, UnsupportedError

MISSING = object()
"""Stands for the value of a name that is not defined."""


class Source:
    """A Python function as it was written."""

    def __init__(self, function: types.FunctionType) -> None:
        """Raises UnsupportedError if there is no source."""
        self.function = function
        self.name = function.__qualname__.rpartition("<locals>.")[2]
        code = function.__code__
        self.file = code.co_filename
        try:
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError):
            at = Position(self.file, code.co_firstlineno, 1)
            raise UnsupportedError(
                "its source is not available; define it in a file or in a notebook, or pass its"
                " text to ferryvm.function",
                at,
                self.name,
            ) from None
        self.first = max(first, 1)
        self.node = self._node(textwrap.dedent("".join(lines)))
        self.parameters = self._parameters()
        self.variables = frozenset(code.co_varnames) | frozenset(code.co_cellvars)
        """Names that are variables of the function itself."""
        self._cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))

    def _node(self, text: str) -> ast.FunctionDef | ast.Lambda:
        """The definition in a text. A lambda is part of a statement, which may be cut off."""
        is_lambda = self.function.__name__ == "<lambda>"
        tree: ast.AST
        try:
            tree = ast.parse(text)
        except SyntaxError:
            found = _lambda_in(text) if is_lambda else None
            if found is None:
                raise self._no_definition() from None
            tree = found
        wanted = self.function.__code__
        for node in ast.walk(tree):
            if is_lambda and isinstance(node, ast.Lambda) and _has_parameters(node, wanted):
                return node
            if isinstance(node, ast.FunctionDef) and node.name == self.function.__name__:
                return node
        raise self._no_definition()

    def _no_definition(self) -> UnsupportedError:
        message = "its definition is not found in the source; give it a name and lines of its own"
        return UnsupportedError(message, Position(self.file, self.first, 1), self.name)

    def _parameters(self) -> list[str]:
        arguments = self.node.args
        for extra in (arguments.vararg, arguments.kwarg):
            if extra is not None:
                message = f"it takes any number of arguments (*{extra.arg}); name each"
                raise UnsupportedError(message, self.position(extra), self.name)
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        return [argument.arg for argument in given]

    def position(self, node: ast.AST) -> Position:
        """The position of a node."""
        line = getattr(node, "lineno", 1) + self.first - 1
        return Position(self.file, line, getattr(node, "col_offset", 0) + 1)

    def unsupported(self, refusal: NotCompilableError) -> UnsupportedError:
        """The error for a refusal."""
        return UnsupportedError(refusal.message, self.position(refusal.node), self.name)

    def value(self, name: str) -> Any:
        """The present value of a free name: of a closure, the module, or built in; MISSING."""
        cell = self._cells.get(name)
        if cell is not None:
            try:
                return cell.cell_contents
            except ValueError:
                return MISSING
        found = self.function.__globals__.get(name, MISSING)
        return found if found is not MISSING else getattr(builtins, name, MISSING)


def _has_parameters(node: ast.Lambda, code: types.CodeType) -> bool:
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    return names == list(code.co_varnames[: code.co_argcount])


def _lambda_in(text: str) -> ast.AST | None:
    """The tree of the first lambda in a text that is no statement by itself."""
    start = text.find("lambda")
    for end in range(len(text), start, -1):
        try:
            return ast.parse(text[start:end].strip(), mode="eval")
        except SyntaxError:
            continue
    return None
