# SPDX-License-Identifier: Apache-2.0
"""CPython goes on with Python functions that were stopped, from their statements and variables.

It executes the statements of the graph (`ferryvm.python.graph`), each compiled by CPython itself, so
results and exceptions are its own. A frame that called another one goes on with the value of the
call.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ferryvm.python.graph import (
    Append,
    Assign,
    Block,
    Branch,
    Call,
    Evaluate,
    Host,
    Iterate,
    Jump,
    Known,
    Next,
    Pop,
    Raise,
    RaiseAgain,
    Return,
    Statement,
    Store,
    Unpack,
)
from ferryvm.python.lower import Lowering
from ferryvm.python.pause import PausedFrame
from ferryvm.python.source import InnerFunction, Source
from ferryvm.python.statement import Statements

_HERE = str(Path(__file__).parent)
_VALUE = "%value"
"""The variable for the value of an expression."""


def resume(frames: Sequence[PausedFrame]) -> Any:
    """The value of the outermost of these frames, which are given innermost first. Raises what the
    functions raise, with their lines alone in the traceback."""
    try:
        return _resumed(frames, len(frames) - 1)
    except BaseException as error:
        error.__traceback__ = _without_ours(error.__traceback__)
        raise


def _resumed(frames: Sequence[PausedFrame], number: int) -> Any:
    frame = frames[number]
    run = _Frame(frame.source, frame.variables)
    index = frame.number
    if number > 0:
        statement = frame.block.statements[index]
        assert isinstance(statement, Call)
        inner = run.in_line(statement.node, lambda: _resumed(frames, number - 1))
        run.variables[statement.name] = inner
        index += 1
    return run.run(frame.block, index)


def _without_ours(trace: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without the frames of this package."""
    others = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_HERE):
            others.append(trace)
        trace = trace.tb_next
    found: types.TracebackType | None = None
    for each in reversed(others):
        found = types.TracebackType(found, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return found


def _inner_call(function: InnerFunction, *arguments: Any) -> Any:
    """The value of an inner function; its last arguments are the captured variables."""
    source = function.source
    variables = dict(zip(source.parameters, arguments, strict=True))
    return _Frame(source, variables).run(Lowering(source).blocks[0], 0)


class _Frame:
    """One call of a function, executed statement by statement."""

    def __init__(self, source: Source, variables: dict[str, Any]) -> None:
        self._source, self.variables = source, variables
        self._statements = Statements(source)
        self._code: dict[int, types.CodeType] = {}

    def run(self, block: Block, index: int) -> Any:
        """The value of the function, from a statement of a block on."""
        while True:
            handler = block.handler
            try:
                for statement in block.statements[index:]:
                    self._execute(statement)
                if isinstance(block.end, Return):
                    return self._value(block.end.value)
                block = self._next(block)
            except Exception as error:
                if handler is None:
                    raise
                self.variables[handler.name] = error
                block = handler.block
            index = 0

    def _next(self, block: Block) -> Block:
        """The block after one, whose end is executed."""
        end = block.end
        assert end is not None
        match end:
            case Jump():
                return end.to
            case Branch():
                return end.yes if self._value(end.condition) else end.no
            case Next():
                item = next(self.variables[end.iterator], self)
                if item is self:
                    return end.end
                self.variables[end.name] = item
                return end.body
            case Raise():
                arguments = [] if end.argument is None else [end.argument]
                call = ast.Call(Known(end.type, end.node), arguments, [])
                raised = ast.Raise(ast.copy_location(call, end.node))
                self._do(end, ast.copy_location(raised, end.node))
            case RaiseAgain():
                raise self.variables[end.name]
        raise AssertionError("a block ends with a jump")

    def in_line(self, node: ast.AST, action: Any) -> Any:
        """The result of an action that appears in a traceback as a call in the line of a node."""
        call = ast.Call(Known(action, node), [], [])
        return self._value(ast.copy_location(call, node))

    def _execute(self, statement: Statement) -> None:
        match statement:
            case Assign():
                self.variables[statement.name] = self._value(statement.value)
            case Evaluate():
                self._value(statement.value)
            case Unpack():
                value = self._value(statement.value)
                self.variables.update(zip(statement.names, value, strict=True))
            case Iterate():
                self.variables[statement.name] = iter(self._value(statement.value))
            case Store():
                target = ast.Subscript(statement.array, statement.index, ast.Store())
                store = ast.Assign([ast.copy_location(target, statement.node)], statement.value)
                self._do(statement, ast.copy_location(store, statement.node))
            case Host():
                self._do(statement, statement.statement)
            case Append():
                self.variables[statement.list].append(self._value(statement.value))
            case Pop():
                pop = ast.Attribute(ast.Name(statement.list, ast.Load()), "pop", ast.Load())
                call = ast.copy_location(ast.Call(pop, [], []), statement.node)
                self.variables[statement.name] = self._value(call, id(statement))
            case Call():
                called: Any = statement.function
                if isinstance(called, InnerFunction):
                    called = functools.partial(_inner_call, called)
                call = ast.Call(Known(called, statement.node), statement.arguments, [])
                found = self._value(ast.copy_location(call, statement.node), id(statement))
                self.variables[statement.name] = found

    def _value(self, node: ast.expr, key: int | None = None) -> Any:
        """The value of an expression."""
        key = id(node) if key is None else key
        if key not in self._code:
            assign = ast.Assign([ast.Name(_VALUE, ast.Store())], node)
            self._compile(key, ast.fix_missing_locations(ast.copy_location(assign, node)))
        exec(self._code[key], self._statements.known, self.variables)  # noqa: S102  # the user's own code
        return self.variables.pop(_VALUE)

    def _do(self, step: object, node: ast.stmt) -> None:
        """Execute a statement."""
        if id(step) not in self._code:
            self._compile(id(step), node)
        exec(self._code[id(step)], self._statements.known, self.variables)  # noqa: S102  # the user's own code

    def _compile(self, key: int, node: ast.stmt) -> None:
        self._code[key] = self._statements.compiled(node)
