# SPDX-License-Identifier: Apache-2.0
"""A Python function as a control-flow graph over its syntax tree.

Expressions are trees of the syntax without control flow and without calls of compiled functions:
those are statements, with temporary variables (`%1`) for their values.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ferryvm import record
from ferryvm.python.control_flow.kernel_source import KernelFunction
from ferryvm.python.definition.site import EXCEPTIONS
from ferryvm.python.definition.source import InnerFunction


class Known(ast.expr):
    """An expression whose value is known: of a free name, or a default argument."""

    _fields = ()

    def __init__(self, value: object, node: ast.AST) -> None:
        super().__init__()
        self.value = value
        ast.copy_location(self, node)

    def __deepcopy__(self, _memo: object) -> Known:
        """Itself: it does not change, and has no parts."""
        return self


class IsInstance(ast.expr):
    """The test if the exception in a variable is of one of some types."""

    _fields = ()

    def __init__(self, name: str, clause: Clause, node: ast.AST) -> None:
        super().__init__()
        self.name, self.clause = name, clause
        ast.copy_location(self, node)


class Captured(ast.expr):
    """A variable that the function in a variable uses, by its number."""

    _fields = ()

    def __init__(self, name: str, number: int, node: ast.AST) -> None:
        super().__init__()
        self.name, self.number = name, number
        ast.copy_location(self, node)


class InPlace(ast.BinOp):
    """The value of a variable after an augmented assignment, such as `x += 1`: of a list, the list
    itself would change."""


@record.dataclass
class Assign:
    """`name = value`."""

    node: ast.AST
    name: str
    value: ast.expr


@record.dataclass
class Unpack:
    """`names = value`, of a tuple, a list or an array; the value is a variable."""

    node: ast.AST
    names: list[str]
    value: ast.expr
    starred: int | None = None
    """The number of the name that gets a list of all items that the others do not get."""


@record.dataclass
class Store:
    """`array[index] = value`; the operands are evaluated in the order value, array, index."""

    node: ast.AST
    array: ast.expr
    index: ast.expr
    value: ast.expr


@record.dataclass
class Method:
    """`name = of.method(arguments)`, of the object in a variable."""

    node: ast.AST
    name: str
    of: str
    method: str
    arguments: list[ast.expr]
    owners: tuple[str, ...] = ()
    """The list whose item the object is, if it is one; the one whose item that is; and so on."""


@record.dataclass
class DeleteItem:
    """`del list[index]`."""

    node: ast.AST
    list: ast.expr
    index: ast.expr


@record.dataclass
class Delete:
    """`del name`, of a variable."""

    node: ast.AST
    name: str


@record.dataclass
class Host:
    """A statement that CPython executes, such as `print(...)`, with the variables that it reads."""

    node: ast.AST
    statement: ast.stmt


@record.dataclass
class Evaluate:
    """An expression whose value is not used."""

    node: ast.AST
    value: ast.expr


@record.dataclass
class Call:
    """`name = function(arguments)`, of a function that is compiled, too."""

    node: ast.AST
    name: str
    function: types.FunctionType | InnerFunction | KernelFunction
    arguments: list[ast.expr]
    captured: AbstractSet[str] = frozenset()
    """The variables that inner functions among the arguments may use."""


@record.dataclass
class CallValue:
    """`name = of(arguments)`, of the function in a variable."""

    node: ast.AST
    name: str
    of: str
    arguments: list[ast.expr]
    keywords: tuple[str, ...]
    """The names of the last arguments."""
    captured: AbstractSet[str]
    """The variables that inner functions may use."""


@record.dataclass
class Iterate:
    """`name = iter(value)`."""

    node: ast.AST
    name: str
    value: ast.expr


@record.dataclass
class Atomic:
    """`name = function(array, index, values)`, an atomic update of an element."""

    node: ast.AST
    name: str | None
    """None if the former value is not used."""
    function: Callable[..., object]
    arguments: list[ast.expr]


@record.dataclass
class Barrier:
    """Wait for the other items of the group."""

    node: ast.AST


@record.dataclass
class GroupOperation:
    """`name = function(value)`, of the values of all items of a group."""

    node: ast.AST
    name: str
    function: Callable[..., object]
    arguments: list[ast.expr]
    """The value; of a broadcast the number of the item, too."""
    number: ast.expr
    """The number of the item in its group."""


@record.dataclass
class Launch:
    """Call a function for each item, with an index below each of some sizes, then the arguments."""

    node: ast.AST
    function: KernelFunction
    sizes: list[ast.expr]
    arguments: list[ast.expr]


Statement = (
    Assign
    | Unpack
    | Store
    | Method
    | DeleteItem
    | Delete
    | Host
    | Evaluate
    | Call
    | CallValue
    | Iterate
    | Atomic
    | Barrier
    | GroupOperation
    | Launch
)


@record.dataclass
class Jump:
    """Go on at a block."""

    node: ast.AST
    to: Block


@record.dataclass
class Branch:
    """Go on at one of two blocks, by a condition."""

    node: ast.AST
    condition: ast.expr
    yes: Block
    no: Block


@record.dataclass
class Next:
    """`name = next(iterator)`, and go on at a block; at another one if there is none."""

    node: ast.AST
    iterator: str
    name: str
    body: Block
    end: Block


@record.dataclass
class Return:
    """Return a value."""

    node: ast.AST
    value: ast.expr


@record.dataclass
class Raise:
    """`raise exception from cause`, of a type."""

    node: ast.AST
    type: type[BaseException]
    exception: ast.expr
    """The type, or its call."""
    cause: ast.expr | None = None


@record.dataclass
class RaiseAgain:
    """Raise the exception in a variable."""

    node: ast.AST
    name: str
    cause: ast.expr | None = None
    is_named: bool = False
    """True if the statement names it, and so appears in the traceback."""


Terminator = Jump | Branch | Next | Return | Raise | RaiseAgain


class Clause(NamedTuple):
    """An `except` clause."""

    types: tuple[type[BaseException], ...]
    is_observer: bool
    """True if it uses the exception itself: names it, or raises one, which refers to it. Then
    CPython raises the exception, and goes on with the clause."""


@record.dataclass(eq=False)
class Handler:
    """The target of exceptions in a block."""

    block: Block
    name: str
    """The variable that gets the exception."""
    clauses: list[Clause]
    """The first one that matches gets an exception; none: the handler around this one."""

    @functools.cached_property
    def taken(self) -> tuple[frozenset[type[BaseException]], frozenset[type[BaseException]]]:
        """The built-in exceptions that clauses of this handler and those around it get in compiled
        code; and those that pass all of them."""
        around = self.block.handler
        outer, passing = around.taken if around is not None else (frozenset(), None)
        found, left = set(), set()
        for type_ in EXCEPTIONS:
            clause = next((c for c in self.clauses if issubclass(type_, c.types)), None)
            if clause is None:
                if type_ in outer:
                    found.add(type_)
                elif passing is None or type_ in passing:
                    left.add(type_)
            elif not clause.is_observer:
                found.add(type_)
        return frozenset(found), frozenset(left)


@record.dataclass(eq=False)
class Block:
    """Statements, and what ends them."""

    number: int
    statements: list[Statement] = record.field(default_factory=list)
    end: Terminator | None = None
    handler: Handler | None = None
    handled: str | None = None
    """The variable with the exception that is being handled, to which others refer."""
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


def read(expression: ast.expr | ast.stmt | None) -> set[str]:
    """The names that an expression, or a statement that assigns nothing, reads."""
    if expression is None:
        return set()
    tested = {expression.name} if isinstance(expression, IsInstance) else set()
    return tested | {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}


def expressions(step: Statement | Terminator) -> list[ast.expr]:
    """The expressions that a statement, or the end of a block, evaluates."""
    match step:
        case Assign() | Unpack() | Evaluate() | Return():
            return [step.value]
        case Store():
            return [step.array, step.index, step.value]
        case Call() | CallValue() | Method() | Atomic():
            return step.arguments
        case GroupOperation():
            return [*step.arguments, step.number]
        case Launch():
            return [*step.sizes, *step.arguments]
        case Branch():
            return [step.condition]
    return []


def reads(step: Statement | Terminator) -> frozenset[str]:
    """The names that a statement, or the end of a block, may read. Steps do not change, so it is
    found once."""
    known: frozenset[str] | None = vars(step).get("_names_read")
    if known is None:
        captured = step.captured if isinstance(step, Call | CallValue) else frozenset()
        known = vars(step)["_names_read"] = needs(step) | captured
    return known


def needs(step: Statement | Terminator) -> frozenset[str]:
    """The names that a statement, or the end of a block, reads whatever functions do that it
    calls."""
    known: frozenset[str] | None = vars(step).get("_names_needed")
    if known is None:
        known = vars(step)["_names_needed"] = frozenset(_needs(step))
    return known


def _needs(step: Statement | Terminator) -> set[str]:
    found: set[str] = set().union(*map(read, expressions(step)))
    match step:
        case Iterate():
            return read(step.value)
        case DeleteItem():
            return read(step.list) | read(step.index)
        case Method():
            return found | {step.of, *step.owners}
        case Host():
            return read(step.statement)
        case Next():
            return {step.iterator}
        case Raise():
            return read(step.exception) | read(step.cause)
        case RaiseAgain():
            return {step.name} | read(step.cause)
        case Delete():
            return {step.name}
        case Call() if isinstance(step.function, InnerFunction):
            return found | {step.function.name}
        case CallValue():
            return found | {step.of}
    return found


def writes(statement: Statement) -> set[str]:
    """The variables that a statement assigns."""
    match statement:
        case Assign() | Call() | CallValue() | Iterate() | Method() | Delete() | GroupOperation():
            return {statement.name}
        case Atomic():
            return set() if statement.name is None else {statement.name}
        case Unpack():
            return set(statement.names)
        case Store() | Evaluate() | DeleteItem() | Host() | Barrier() | Launch():
            return set()


def _before(statement: Statement, after: set[str], caught: set[str]) -> set[str]:
    """The variables that are live before a statement; `caught`: those where its exception goes."""
    return (after - writes(statement)) | reads(statement) | caught


def _caught(block: Block) -> set[str]:
    """The variables that are live where exceptions of a block go, and the one that they refer
    to."""
    handler = block.handler
    handled = set() if block.handled is None else {block.handled}
    return handled if handler is None else handled | set(handler.block.live) - {handler.name}


def _at_end(block: Block) -> set[str]:
    """The variables that are live before the end of a block."""
    end = block.end
    if isinstance(end, Next):
        after = (set(end.body.live) - {end.name}) | end.end.live
    else:
        after = set().union(*(each.live for each in block.successors()))
    after |= _caught(block)
    return after if end is None else after | reads(end)


def find_live(blocks: list[Block]) -> None:
    """Determine the live variables at the start of each block: iterated to the fixed point (Aho,
    Lam, Sethi and Ullman, Compilers, section 9.2.5)."""
    has_changed = True
    while has_changed:
        has_changed = False
        for block in reversed(blocks):
            live = live_after(block, 0)
            if live != block.live:
                block.live, has_changed = live, True


def live_after(block: Block, index: int) -> frozenset[str]:
    """The variables that are live before the statement of a block with that number, or its end."""
    live, caught = _at_end(block), _caught(block)
    for statement in reversed(block.statements[index:]):
        live = _before(statement, live, caught)
    return frozenset(live)
