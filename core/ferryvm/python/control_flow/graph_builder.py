# SPDX-License-Identifier: Apache-2.0
"""A control-flow graph under construction."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import TypeVar

from ferryvm.python.control_flow.graph import Block, Handler, Jump, Statement, Terminator

_N = TypeVar("_N", bound=ast.AST)
_E = TypeVar("_E", bound=ast.expr)


class GraphBuilder:
    """The blocks of a function, of which one is being filled."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.handlers: list[Handler] = []
        """The handlers of exceptions around the present place, the innermost one last."""
        self.handled: list[str] = []
        """Variables with the exceptions that are being handled at the present place, likewise."""
        self._temporaries = 0
        self.block: Block | None = self.new()
        """The block that is being filled; None where control does not come."""

    def new(self) -> Block:
        """A new block, with the innermost handler."""
        block = Block(
            len(self.blocks),
            handler=self.handlers[-1] if self.handlers else None,
            handled=self.handled[-1] if self.handled else None,
        )
        self.blocks.append(block)
        return block

    def add(self, statement: Statement) -> None:
        """Append a statement, unless control does not come here."""
        if self.block is not None:
            self.block.statements.append(statement)

    def end(self, end: Terminator) -> None:
        """End the block, unless control does not come here."""
        if self.block is not None:
            self.block.end = end
        self.block = None

    def jump(self, node: ast.AST, to: Block) -> None:
        """End the block with a jump."""
        self.end(Jump(node, to))

    def temporary(self) -> str:
        """The name of a new variable, which no variable of Python has."""
        self._temporaries += 1
        return f"%{self._temporaries}"


def name_of(name: str, node: ast.AST) -> ast.Name:
    """An expression that reads a variable, at the place of a node."""
    return ast.copy_location(ast.Name(name, ast.Load()), node)


def like(node: ast.AST, made: _N) -> _N:
    """A new node, at the place of another one."""
    return ast.copy_location(made, node)


class _Renaming(ast.NodeTransformer):
    """Replaces names of variables."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:  # as `ast` calls it
        """The node, with its new name."""
        name = self._names.get(node.id, node.id)
        return ast.copy_location(ast.Name(name, node.ctx), node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:  # as `ast` calls it
        """The node, whose parameters have their names, and hide others in its body."""
        arguments = self.visit(node.args)
        plain = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        extra = (each for each in (arguments.vararg, arguments.kwarg) if each is not None)
        own = {each.arg for each in (*plain, *extra)}
        inside = _Renaming({old: new for old, new in self._names.items() if old not in own})
        return ast.copy_location(ast.Lambda(arguments, inside.visit(node.body)), node)


def renamed(node: _E, names: Mapping[str, str]) -> _E:
    """A copy of an expression with other names of variables."""
    found: _E = _Renaming(names).visit(copy.deepcopy(node))
    return found
