# SPDX-License-Identifier: Apache-2.0
"""A Python function as a control-flow graph over its syntax tree.

Expressions are trees of the syntax without control flow and without calls of compiled functions:
those are statements, with temporary variables (`%1`) for their values.
"""

from __future__ import annotations

import ast
import dataclasses
import types


@dataclasses.dataclass
class Assign:
    """`name = value`."""

    node: ast.AST
    name: str
    value: ast.expr


@dataclasses.dataclass
class Unpack:
    """`names = value`, of a tuple; the value is a variable."""

    node: ast.AST
    names: list[str]
    value: ast.expr


@dataclasses.dataclass
class Store:
    """`array[index] = value`; the operands are evaluated in the order value, array, index."""

    node: ast.AST
    array: ast.expr
    index: ast.expr
    value: ast.expr


@dataclasses.dataclass
class Evaluate:
    """An expression whose value is not used."""

    node: ast.AST
    value: ast.expr


@dataclasses.dataclass
class Call:
    """`name = function(arguments)`, of a function that is compiled, too."""

    node: ast.AST
    name: str
    function: types.FunctionType
    arguments: list[ast.expr]


@dataclasses.dataclass
class Iterate:
    """`name = iter(value)`."""

    node: ast.AST
    name: str
    value: ast.expr


Statement = Assign | Unpack | Store | Evaluate | Call | Iterate


@dataclasses.dataclass
class Jump:
    """Go on at a block."""

    node: ast.AST
    to: Block


@dataclasses.dataclass
class Branch:
    """Go on at one of two blocks, by a condition."""

    node: ast.AST
    condition: ast.expr
    yes: Block
    no: Block


@dataclasses.dataclass
class Next:
    """`name = next(iterator)`, and go on at a block; at another one if there is none."""

    node: ast.AST
    iterator: str
    name: str
    body: Block
    end: Block


@dataclasses.dataclass
class Return:
    """Return a value."""

    node: ast.AST
    value: ast.expr


@dataclasses.dataclass
class Raise:
    """Raise an exception of a built-in type, with one argument or none."""

    node: ast.AST
    type: type[BaseException]
    argument: ast.expr | None


Terminator = Jump | Branch | Next | Return | Raise


@dataclasses.dataclass(eq=False)
class Block:
    """Statements, and what ends them."""

    number: int
    statements: list[Statement] = dataclasses.field(default_factory=list)
    end: Terminator | None = None
    live: frozenset[str] = frozenset()
    """Variables whose values at the start may be used."""

    def successors(self) -> list[Block]:
        """The blocks that may follow."""
        match self.end:
            case Jump():
                return [self.end.to]
            case Branch():
                return [self.end.yes, self.end.no]
            case Next():
                return [self.end.body, self.end.end]
        return []


def read(expression: ast.expr | None) -> set[str]:
    """The names that an expression reads."""
    if expression is None:
        return set()
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def reads(step: Statement | Terminator) -> set[str]:
    """The names that a statement, or the end of a block, reads."""
    match step:
        case Assign() | Unpack() | Evaluate() | Iterate() | Return():
            return read(step.value)
        case Store():
            return read(step.array) | read(step.index) | read(step.value)
        case Call():
            return set().union(*map(read, step.arguments))
        case Branch():
            return read(step.condition)
        case Next():
            return {step.iterator}
        case Raise():
            return read(step.argument)
        case Jump():
            return set()


def writes(statement: Statement) -> set[str]:
    """The variables that a statement assigns."""
    match statement:
        case Assign() | Call() | Iterate():
            return {statement.name}
        case Unpack():
            return set(statement.names)
        case Store() | Evaluate():
            return set()


def _before(statement: Statement, after: set[str]) -> set[str]:
    """The variables that are live before a statement."""
    return (after - writes(statement)) | reads(statement)


def _at_end(block: Block) -> set[str]:
    """The variables that are live before the end of a block."""
    end = block.end
    if isinstance(end, Next):
        after = set(end.body.live) - {end.name} | end.end.live
    else:
        after = set().union(*(each.live for each in block.successors()))
    return after if end is None else after | reads(end)


def find_live(blocks: list[Block]) -> None:
    """Determine the live variables at the start of each block: iterated to the fixed point (Aho, Lam,
    Sethi and Ullman, Compilers, section 9.2.5)."""
    has_changed = True
    while has_changed:
        has_changed = False
        for block in reversed(blocks):
            live = _at_end(block)
            for statement in reversed(block.statements):
                live = _before(statement, live)
            if live != block.live:
                block.live, has_changed = frozenset(live), True


def live_after(block: Block, index: int) -> frozenset[str]:
    """The variables that are live before the statement of a block with that number, or its end."""
    live = _at_end(block)
    for statement in reversed(block.statements[index:]):
        live = _before(statement, live)
    return frozenset(live)
