# SPDX-License-Identifier: Apache-2.0
"""CPython goes on with Python functions that were stopped, from their statements and variables.

It executes the statements of the graph (`ferryvm.python.control_flow.graph`), each compiled by
CPython itself, so results and exceptions are its own. A frame that called another one goes on with
the value of the call.
"""

from __future__ import annotations

import ast
import functools
import types
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from ferryvm.python.compiled.pause import PausedFrame
from ferryvm.python.control_flow.graph import (
    Assign,
    Atomic,
    Block,
    Branch,
    Call,
    CallValue,
    Delete,
    DeleteItem,
    Evaluate,
    GroupOperation,
    Host,
    Iterate,
    Jump,
    Known,
    Method,
    Next,
    Raise,
    RaiseAgain,
    Return,
    Statement,
    Store,
    Unpack,
)
from ferryvm.python.control_flow.graph_builder import name_of
from ferryvm.python.control_flow.lower import Lowering
from ferryvm.python.control_flow.statement import Statements
from ferryvm.python.definition.raised import STORED, add_values, without_ours
from ferryvm.python.definition.site import UNASSIGNED, UNASSIGNED_OUTSIDE
from ferryvm.python.definition.source import InnerFunction, Source
from ferryvm.python.hosted.builtin import ORIGINAL
from ferryvm.python.hosted.hosted import is_hosted
from ferryvm.python.value.result import BoundFunction

_VALUE = "%value"
"""The variable for the value of an expression."""


def resume(frames: Sequence[PausedFrame], raised: BaseException | None = None) -> Any:
    """The value of the outermost of these frames, which are given innermost first; `raised`: an
    exception that the innermost one raises. Raises what the functions raise, with their lines alone
    in the traceback."""
    # A function in place of a built-in one has no effects: CPython calls the built-in one again.
    first = next(n for n, each in enumerate(frames) if not _stands_for_another(each))
    try:
        return _resumed(frames[first:], len(frames) - first - 1, raised)
    except BaseException as error:
        add_values(error)
        error.__traceback__ = without_ours(error.__traceback__)
        raise


def raise_at(frames: Sequence[PausedFrame]) -> None:
    """Raise what the statement raises in front of which the innermost of these frames stands, with
    their lines in the traceback; return if it raises nothing, or calls a compiled function."""
    first = next(n for n, each in enumerate(frames) if not _stands_for_another(each))
    error = _Frame(frames[first].source, frames[first].variables).raised(
        frames[first].block, frames[first].number
    )
    if error is not None:
        add_values(error)
        resume(frames[first:], error.with_traceback(None))


def _stands_for_another(frame: PausedFrame) -> bool:
    return is_hosted(frame.source.function)


def _resumed(frames: Sequence[PausedFrame], number: int, raised: BaseException | None) -> Any:
    frame = frames[number]
    called: Callable[[], Any] | None = lambda: _resumed(frames, number - 1, raised)
    if number == 0:
        called = None if raised is None else functools.partial(_raise, raised)
    return _Frame(frame.source, frame.variables).run(frame.block, frame.number, called)


def _raise(error: BaseException) -> Any:
    raise error


def _raise_again(error: BaseException) -> NoReturn:
    """Raise an exception that was raised before, with the context of then, which `raise` replaces
    by what a caller handles."""
    context = error.__context__
    try:
        raise error
    finally:
        if context is not None:  # otherwise it is the one that a caller handles
            error.__context__ = context


class _Code(NamedTuple):
    """The code of a function's statements, for all of its frames."""

    statements: Statements
    compiled: dict[int, tuple[object, types.CodeType]]
    """By the address of a node, which is alive as long as its code."""


_inner: weakref.WeakKeyDictionary[InnerFunction, Block] = weakref.WeakKeyDictionary()
"""The first blocks of inner functions that CPython calls."""


def _inner_call(function: InnerFunction, *arguments: Any) -> Any:
    """The value of an inner function; its last arguments are the captured variables."""
    return _inner_value(function, dict(zip(function.source.parameters, arguments, strict=True)))


def _inner_value(function: InnerFunction, variables: dict[str, Any]) -> Any:
    """The value of an inner function with these parameters and captured variables."""
    source = function.source
    first = _inner.get(function)
    if first is None:
        first = _inner[function] = Lowering(source).blocks[0]
    return _Frame(source, variables).run(first, 0)


class _InnerValue:
    """An inner function as a value."""

    def __init__(self, function: InnerFunction, variables: Mapping[str, Any]) -> None:
        """`variables`: those of the function around it, as they are at a call."""
        self._function, self._variables = function, variables

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        bound = self._function.signature.bind(*arguments, **named)
        bound.apply_defaults()
        given, captured = self._variables, self._function.captured
        found = {name: given[name] for name in captured if name in given}
        return _inner_value(self._function, {**found, **bound.arguments})


def _deletion(statement: Delete) -> ast.stmt:
    name = ast.copy_location(ast.Name(statement.name, ast.Del()), statement.node)
    return ast.copy_location(ast.Delete([name]), statement.node)


class _Frame:
    """One call of a function, executed statement by statement."""

    def __init__(self, source: Source, variables: dict[str, Any]) -> None:
        self._source = source
        self.variables = variables
        for name, value in variables.items():
            variables[name] = self._as_object(value)
        if source.continued is None:
            source.continued = _Code(Statements(source), {})
        self._statements, self._code = source.continued

    def _as_object(self, value: Any) -> Any:
        """The value of a variable, in which functions can be called."""
        if isinstance(value, InnerFunction):
            return _InnerValue(value, self.variables)
        if isinstance(value, BoundFunction):
            captured = map(self._as_object, value.captured)
            names = value.function.captured
            return _InnerValue(value.function, dict(zip(names, captured, strict=True)))
        if type(value) is tuple:
            return tuple(map(self._as_object, value))
        return value

    def run(self, block: Block, index: int, called: Callable[[], Any] | None = None) -> Any:
        """The value of the function, from a statement of a block on. `called` has the value of the
        call in that statement, or raises."""
        while True:
            handler = block.handler
            try:
                inner, called = called, None
                follows = self._handling(block, index, inner)
                if follows is None:
                    return self.variables.pop(_VALUE)
                block = follows
            except BaseException as error:  # for a clause of the function
                if handler is None:
                    raise
                error.__traceback__ = without_ours(error.__traceback__)
                self.variables[handler.name] = error
                block = handler.block
            index = 0

    def raised(self, block: Block, index: int) -> BaseException | None:
        """The exception that the statement of a block raises, or its end; None if there is none."""
        try:
            if index == len(block.statements):
                if isinstance(block.end, Return):
                    self._value(block.end.value)
                else:
                    self._next(block)
            elif not isinstance(block.statements[index], Call | CallValue):
                self._execute(block.statements[index])
        except BaseException as error:  # noqa: BLE001  # the statement's
            return error
        return None

    def _handling(self, block: Block, index: int, called: Callable[[], Any] | None) -> Block | None:
        """The block after one, as of `_run`; its exceptions refer to the one that is being
        handled."""
        handled = self.variables.get(block.handled) if block.handled is not None else None
        if handled is None:
            return self._run(block, index, called)
        trace = handled.__traceback__
        try:
            _raise_again(handled)
        except BaseException:  # noqa: BLE001  # it is the one that was raised
            handled.__traceback__ = trace
            return self._run(block, index, called)

    def _run(self, block: Block, index: int, called: Callable[[], Any] | None) -> Block | None:
        """The block after one, which is executed from a statement on; None for the end of the
        function, whose value is in a variable then."""
        if called is not None:
            step = (*block.statements, block.end)[index]
            assert step is not None
            found = self._in_line(step.node, called)
            assert isinstance(step, Call | CallValue)
            self.variables[step.name] = found
            index += 1
        for statement in block.statements[index:]:
            self._execute(statement)
        if isinstance(block.end, Return):
            self.variables[_VALUE] = self._value(block.end.value)
            return None
        return self._next(block)

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
                raised = ast.Raise(end.exception, end.cause)
                self._do(end, ast.copy_location(raised, end.node))
            case RaiseAgain(is_named=True):
                raised = ast.Raise(name_of(end.name, end.node), end.cause)
                self._do(end, ast.copy_location(raised, end.node))
            case RaiseAgain():
                _raise_again(self.variables[end.name])
        raise AssertionError("a block ends with a jump")

    def _in_line(self, node: ast.AST, action: Any) -> Any:
        """The result of an action that appears in a traceback as a call in the line of a node."""
        call = ast.copy_location(ast.Call(Known(action, node), [], []), node)
        statements = Statements(self._source)  # the action belongs to this frame alone
        self._run_code(statements.compiled(_assigned(call)), statements)
        return self.variables.pop(_VALUE)

    def _execute(self, statement: Statement) -> None:
        match statement:
            case Assign(value=Known(value=InnerFunction() as function)):
                self.variables[statement.name] = _InnerValue(function, self.variables)
            case Assign():
                self.variables[statement.name] = self._value(statement.value)
            case Evaluate():
                self._value(statement.value)
            case Unpack():
                names: list[ast.expr] = [ast.Name(name, ast.Store()) for name in statement.names]
                if statement.starred is not None:
                    names[statement.starred] = ast.Starred(names[statement.starred], ast.Store())
                assign = ast.Assign([ast.Tuple(names, ast.Store())], statement.value)
                node = ast.fix_missing_locations(ast.copy_location(assign, statement.node))
                self._do(statement, node)
            case Iterate():
                self.variables[statement.name] = iter(self._value(statement.value))
            case Store():
                value = ast.copy_location(ast.Name(STORED, ast.Store()), statement.node)
                target = ast.Subscript(statement.array, statement.index, ast.Store())
                targets: list[ast.expr] = [value, ast.copy_location(target, statement.node)]
                store = ast.Assign(targets, statement.value)
                self.variables.pop(STORED, None)
                self._do(statement, ast.copy_location(store, statement.node))
            case Delete():
                self._do(statement, _deletion(statement))
            case Host():
                self._do(statement, statement.statement)
            case DeleteItem():
                item = ast.Subscript(statement.list, statement.index, ast.Del())
                delete = ast.Delete([ast.copy_location(item, statement.node)])
                self._do(statement, ast.copy_location(delete, statement.node))
            case Method():
                of = ast.Name(statement.of, ast.Load())
                method = ast.Attribute(of, statement.method, ast.Load())
                arguments, keywords = statement.arguments, list[ast.keyword]()
                if statement.method == "sort":
                    arguments, keywords = [], [ast.keyword("reverse", arguments[0])]
                call = ast.copy_location(ast.Call(method, arguments, keywords), statement.node)
                self.variables[statement.name] = self._value(call, statement)
            case GroupOperation():
                for each in statement.arguments:
                    self._value(each)
            case Atomic():
                update = ast.Call(
                    Known(statement.function, statement.node), statement.arguments, []
                )
                found = self._value(ast.copy_location(update, statement.node), statement)
                if statement.name is not None:
                    self.variables[statement.name] = found
            case CallValue():
                count = len(statement.arguments) - len(statement.keywords)
                arguments, named = statement.arguments[:count], statement.arguments[count:]
                keywords = [
                    ast.keyword(name, value)
                    for name, value in zip(statement.keywords, named, strict=True)
                ]
                of = name_of(statement.of, statement.node)
                call = ast.copy_location(ast.Call(of, arguments, keywords), statement.node)
                self.variables[statement.name] = self._value(call, statement)
            case Call():
                called = ORIGINAL.get(statement.function, statement.function)
                if isinstance(called, InnerFunction):
                    name = called.name
                    if name in self._source.variables and name not in self.variables:
                        unbound = UnboundLocalError(UNASSIGNED.format(name))
                        self._in_line(statement.node, functools.partial(_raise, unbound))
                    called = functools.partial(_inner_call, called)
                call = ast.Call(Known(called, statement.node), statement.arguments, [])
                found = self._value(ast.copy_location(call, statement.node), statement)
                self.variables[statement.name] = found

    def _value(self, node: ast.expr, of: object = None) -> Any:
        """The value of an expression; `of`: the statement that it belongs to, where each frame
        makes a node of its own."""
        self._do(node if of is None else of, node)
        return self.variables.pop(_VALUE)

    def _do(self, step: object, node: ast.stmt | ast.expr) -> None:
        """Execute a statement, or store the value of an expression."""
        found = self._code.get(id(step))
        if found is None:
            statement = _assigned(node) if isinstance(node, ast.expr) else node
            found = self._code[id(step)] = step, self._statements.compiled(statement)
        self._run_code(found[1], self._statements)

    def _run_code(self, code: types.CodeType, statements: Statements) -> None:
        try:
            exec(code, statements.known, self.variables)  # noqa: S102  # the user's own code
            return
        except NameError as error:
            trace = error.__traceback__
            is_here = trace is not None and trace.tb_next is not None and not trace.tb_next.tb_next
            if not is_here or error.name not in self._source.variables:
                raise
            is_outside = error.name in self._source.code.co_freevars
            kind, text = UnboundLocalError, UNASSIGNED
            if is_outside:
                kind, text = NameError, UNASSIGNED_OUTSIDE  # type: ignore[assignment]  # the base of the other one
            unbound = kind(text.format(error.name)).with_traceback(trace and trace.tb_next)
        raise unbound  # outside of the clause: its context is the exception that is handled


def _assigned(node: ast.expr) -> ast.stmt:
    assign = ast.Assign([ast.Name(_VALUE, ast.Store())], node)
    return ast.fix_missing_locations(ast.copy_location(assign, node))
