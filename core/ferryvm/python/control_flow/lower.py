# SPDX-License-Identifier: Apache-2.0
"""From the syntax tree of a function to its control-flow graph: statements."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from typing import NamedTuple

from ferryvm.python.control_flow.compared import ComparedFloats
from ferryvm.python.control_flow.counter import counters
from ferryvm.python.control_flow.divergence import divergent_blocks
from ferryvm.python.control_flow.expression import Expressions
from ferryvm.python.control_flow.graph import (
    Assign,
    Block,
    Branch,
    Clause,
    Delete,
    DeleteItem,
    Handler,
    InPlace,
    IsInstance,
    Known,
    Raise,
    RaiseAgain,
    Return,
    Store,
    find_live,
)
from ferryvm.python.control_flow.graph_builder import GraphBuilder, like, name_of
from ferryvm.python.control_flow.pattern import match as match_pattern
from ferryvm.python.definition.source import Source
from ferryvm.python.fault import NotCompilableError

_STATEMENTS = {
    ast.With: "with; open files and take locks in the caller",
    ast.FunctionDef: "a function in a function with a decorator, or whose name is assigned twice",
    ast.AsyncFunctionDef: "an async function; write an ordinary one",
    ast.ClassDef: "a class; define it outside, and pass its numbers",
    ast.TryStar: "except*; write except",
    ast.Global: "an assignment to a global; return the value instead",
    ast.Nonlocal: "nonlocal of a variable of a function that is not compiled; return the value instead",
    ast.Import: "an import; import outside the function",
    ast.ImportFrom: "an import; import outside the function",
    ast.AsyncFor: "async for; write an ordinary function",
    ast.AsyncWith: "async with; write an ordinary function",
}


class _Loop(NamedTuple):
    """A loop whose body is being lowered."""

    again: Block
    """The target of `continue`."""
    over: Block
    """The target of `break`."""
    finals: int
    """The number of `finally` clauses around it."""


class _Final(NamedTuple):
    """A `finally` clause around the statement that is being lowered."""

    body: Sequence[ast.stmt]
    handlers: list[Handler]
    """The handlers around it."""
    handled: list[str]
    """The exceptions that are being handled around it."""


class Lowering:
    """The graph of a function."""

    def __init__(self, source: Source) -> None:
        """Raises NotCompilableError for what cannot be compiled."""
        self._source = source
        self.graph = GraphBuilder()
        self.expressions = Expressions(source, self.graph)
        self._loops: list[_Loop] = []
        self._finals: list[_Final] = []
        self._lower()
        self.blocks = self.graph.blocks
        """The first one is where the function begins."""
        find_live(self.blocks)
        self.compared = ComparedFloats(self.blocks, source.parameters)
        self.counters = counters(self.blocks, source.parameters, source.hidden)
        """Variables that are ints from 0 on."""

    def _lower(self) -> None:
        node = self._source.node
        if isinstance(node, ast.Lambda):
            self._return(node.body, self.expressions.value(node.body))
        else:
            self._body(node.body)
            self._return(node, Known(None, node))

    @functools.cached_property
    def divergent(self) -> frozenset[int]:
        """The numbers of the blocks behind which items of one group may go on differently."""
        varying = self._source.varying
        return frozenset() if varying is None else divergent_blocks(self.blocks, varying)

    @property
    def captured(self) -> dict[str, object]:
        """Values of the free names that it uses."""
        return self.expressions.captured

    @property
    def uses_lists(self) -> bool:
        """True if the function makes lists."""
        return self.expressions.uses_lists

    # --- statements -------------------------------------------------------------------------

    def _body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self.graph.block is None:
                return
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr():
                self.expressions.evaluate(node)
            case ast.FunctionDef(decorator_list=[]) if node.name in self._source.inner:
                self.expressions.define(node, node.name)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda()) if (
                name in self._source.inner
            ):
                self.expressions.define(node, name)
            case ast.Assign():
                self._assign(node)
            case ast.AnnAssign():
                if node.value is not None:
                    self.expressions.assign_to(
                        node, node.target, self.expressions.value(node.value)
                    )
            case ast.AugAssign():
                self._augmented(node)
            case ast.Return():
                value = (
                    Known(None, node) if node.value is None else self.expressions.value(node.value)
                )
                if self._finals:
                    value = self.expressions.saved(value)
                    self._run_finals(0)
                self._return(node, value)
            case ast.Try():
                self._try(node)
            case ast.If():
                self._if(node)
            case ast.Match():
                match_pattern(self.expressions, node, self._body)
            case ast.While():
                self._while(node)
            case ast.For():
                self._for(node)
            case ast.Break() | ast.Continue():
                loop = self._loops[-1]
                self._run_finals(loop.finals)
                self.graph.jump(node, loop.over if isinstance(node, ast.Break) else loop.again)
            case ast.Assert():
                passed, failed = self.graph.new(), self.graph.new()
                self.expressions.condition(node.test, passed, failed)
                self.graph.block = failed
                self._raise_call(node, AssertionError, [] if node.msg is None else [node.msg])
                self.graph.block = passed
            case ast.Raise():
                self._raise(node)
            case ast.Delete():
                for target in node.targets:
                    self._delete(node, target)
            case ast.Nonlocal() if {*node.names} <= {*self._source.assigned}:
                pass
            case _:
                what = _STATEMENTS.get(type(node), f"the statement {type(node).__name__}")
                raise NotCompilableError(node, f"cannot compile {what}")

    def _return(self, node: ast.AST, value: ast.expr) -> None:
        """End the function with a value, and the variables around it that it has assigned."""
        if self._source.assigned:
            assigned = [name_of(name, node) for name in self._source.assigned]
            value = like(node, ast.Tuple([value, *assigned], ast.Load()))
        self.graph.end(Return(node, value))

    def _delete(self, node: ast.Delete, target: ast.expr) -> None:
        match target:
            case ast.Name() if target.id in self._source.assigned:
                raise NotCompilableError(node, "cannot compile del of a nonlocal variable")
            case ast.Name():
                self.graph.add(Delete(node, target.id))
            case ast.Tuple() | ast.List():
                for each in target.elts:
                    self._delete(node, each)
            case ast.Subscript():
                self.expressions.uses_lists = True
                of, index = self.expressions.values([target.value, target.slice])
                of = self.expressions.saved(of)
                self.graph.add(DeleteItem(node, of, index))
            case _:
                raise NotCompilableError(node, "cannot compile del of an attribute")

    def _assign(self, node: ast.Assign) -> None:
        expressions = self.expressions
        first = node.targets[0]
        if (
            len(node.targets) == 1
            and isinstance(first, ast.Tuple | ast.List)
            and isinstance(node.value, ast.Tuple)
            and len(first.elts) == len(node.value.elts)
        ):
            values = [expressions.saved(each) for each in expressions.values(node.value.elts)]
            for target, value in zip(first.elts, values, strict=True):
                expressions.assign_to(node, target, value)
            return
        value = expressions.value(node.value)
        if len(node.targets) > 1:
            value = expressions.saved(value)
        for target in node.targets:
            expressions.assign_to(node, target, value)

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            before = name_of(target.id, target)
            if self.expressions.has_control(node.value):
                before = self.expressions.saved(before)  # type: ignore[assignment]  # a variable is a name, too
            changed = InPlace(before, node.op, self.expressions.value(node.value))
            self.graph.add(Assign(node, target.id, ast.copy_location(changed, node)))
        elif isinstance(target, ast.Subscript):
            array, index = (
                self.expressions.saved(each)
                for each in self.expressions.values([target.value, target.slice])
            )
            element: ast.expr = ast.copy_location(ast.Subscript(array, index, ast.Load()), target)
            if self.expressions.has_control(node.value):
                element = self.expressions.saved(element)
            value = ast.BinOp(element, node.op, self.expressions.value(node.value))
            self.graph.add(Store(target, array, index, ast.copy_location(value, node)))
        else:
            raise NotCompilableError(target, "cannot compile an assignment to an attribute")

    def _if(self, node: ast.If) -> None:
        yes, no, after = self.graph.new(), self.graph.new(), self.graph.new()
        self.expressions.condition(node.test, yes, no)
        for block, body in ((yes, node.body), (no, node.orelse)):
            self.graph.block = block
            self._body(body)
            self.graph.jump(node, after)
        self.graph.block = after

    def _loop(self, again: Block, body: Sequence[ast.stmt], over: Block, node: ast.AST) -> None:
        self._loops.append(_Loop(again, over, len(self._finals)))
        self._body(body)
        self._loops.pop()
        self.graph.jump(node, again)

    def _while(self, node: ast.While) -> None:
        head, body, otherwise, over = (
            self.graph.new(),
            self.graph.new(),
            self.graph.new(),
            self.graph.new(),
        )
        self.graph.jump(node, head)
        self.graph.block = head
        self.expressions.condition(node.test, body, otherwise)
        self.graph.block = body
        self._loop(head, node.body, over, node)
        self.graph.block = otherwise
        self._body(node.orelse)
        self.graph.jump(node, over)
        self.graph.block = over

    def _for(self, node: ast.For) -> None:
        over = self.graph.new()
        head, otherwise = self.expressions.begin_loop(node.iter, node.target)
        self._loop(head, node.body, over, node)
        self.graph.block = otherwise
        self._body(node.orelse)
        self.graph.jump(node, over)
        self.graph.block = over

    def _raise(self, node: ast.Raise) -> None:
        error, handled = node.exc, self.graph.handled
        if error is None or (isinstance(error, ast.Name) and error.id in self._source.variables):
            name = error.id if isinstance(error, ast.Name) else None
            if name is None and not handled:
                raise NotCompilableError(node, "raise without an exception outside of except")
            cause = self._cause(node)
            self.graph.end(RaiseAgain(node, name or handled[-1], cause, name is not None))
            return
        call = error if isinstance(error, ast.Call) else None
        type_ = self.expressions.constant(error if call is None else call.func)
        if not isinstance(type_, type) or not issubclass(type_, BaseException):
            wanted = "raise takes a type of exceptions, or a call of one, as ValueError('text')"
            raise NotCompilableError(node, wanted)
        if call is None:
            self.graph.end(Raise(node, type_, Known(type_, error), self._cause(node)))
        else:
            self._raise_call(node, type_, call.args, call.keywords)

    def _raise_call(
        self,
        node: ast.Raise | ast.Assert,
        type_: type[BaseException],
        arguments: Sequence[ast.expr],
        keywords: Sequence[ast.keyword] = (),
    ) -> None:
        """Raise an exception of a type with some arguments, which CPython makes."""
        values = self.expressions.values([*arguments, *(each.value for each in keywords)])
        count = len(arguments)
        named = [
            ast.keyword(each.arg, value)
            for each, value in zip(keywords, values[count:], strict=True)
        ]
        call = like(node, ast.Call(Known(type_, node), values[:count], named))
        cause = self._cause(node) if isinstance(node, ast.Raise) else None
        self.graph.end(Raise(node, type_, call, cause))

    def _cause(self, node: ast.Raise) -> ast.expr | None:
        return None if node.cause is None else self.expressions.value(node.cause)

    # --- exceptions -------------------------------------------------------------------------

    def _try(self, node: ast.Try) -> None:
        if node.finalbody:
            self._try_finally(node)
        else:
            self._try_except(node)

    def _protected(self, node: ast.AST, body: Sequence[ast.stmt], handler: Handler) -> None:
        """Lower statements whose exceptions go to a handler."""
        self.graph.handlers.append(handler)
        inside = self.graph.new()
        self.graph.jump(node, inside)
        self.graph.block = inside
        self._body(body)
        self.graph.handlers.pop()
        outside = self.graph.new()
        self.graph.jump(node, outside)
        self.graph.block = outside

    def _new_handler(self, clauses: list[Clause]) -> Handler:
        return Handler(self.graph.new(), self.graph.temporary(), clauses)

    def _try_except(self, node: ast.Try) -> None:
        clauses = [self._clause(each) for each in node.handlers]
        handler, after = self._new_handler(clauses), self.graph.new()
        self._protected(node, node.body, handler)
        self._body(node.orelse)
        self.graph.jump(node, after)
        self.graph.block = handler.block
        for clause, kind in zip(node.handlers, clauses, strict=True):
            others = self.graph.new()
            self.graph.handled.append(handler.name)
            body = self.graph.new()
            test = IsInstance(handler.name, kind, clause)
            self.graph.end(Branch(clause, test, body, others))
            self.graph.block = body
            if clause.name:
                self.graph.add(Assign(clause, clause.name, name_of(handler.name, clause)))
            self._body(clause.body)
            if clause.name:  # the Python Language Reference, section 8.4.1
                self.graph.add(Assign(clause, clause.name, Known(None, clause)))
                self.graph.add(Delete(clause, clause.name))
            self.graph.handled.pop()
            self.graph.jump(clause, after)
            self.graph.block = others
        self.graph.end(RaiseAgain(node, handler.name))
        self.graph.block = after

    def _clause(self, node: ast.ExceptHandler) -> Clause:
        types_ = (BaseException,) if node.type is None else self._exception_types(node.type)
        parts = [each for statement in node.body for each in ast.walk(statement)]
        is_observer = any(
            isinstance(each, ast.Raise | ast.Assert)
            or (isinstance(each, ast.Name) and each.id == node.name)
            for each in parts
        )
        return Clause(types_, is_observer)

    def _exception_types(self, node: ast.expr) -> tuple[type[BaseException], ...]:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        found = tuple(self.expressions.constant(part) for part in parts)
        for each in found:
            if not (isinstance(each, type) and issubclass(each, BaseException)):
                raise NotCompilableError(node, "except takes types of exceptions")
        return found  # type: ignore[return-value]  # checked

    def _try_finally(self, node: ast.Try) -> None:
        handler = self._new_handler([Clause((BaseException,), True)])
        self._finals.append(_Final(node.finalbody, [*self.graph.handlers], [*self.graph.handled]))
        rest = ast.Try(node.body, node.handlers, node.orelse, [])
        body = [like(node, rest)] if node.handlers else [*node.body, *node.orelse]
        self._protected(node, body, handler)
        self._finals.pop()
        after = self.graph.new()
        self._body(node.finalbody)
        self.graph.jump(node, after)
        self.graph.block = handler.block
        self.graph.handled.append(handler.name)
        inside = self.graph.new()
        self.graph.jump(node, inside)
        self.graph.block = inside
        self._body(node.finalbody)
        self.graph.end(RaiseAgain(node, handler.name))
        self.graph.handled.pop()
        self.graph.block = after

    def _run_finals(self, count: int) -> None:
        """Lower the `finally` clauses that control leaves, from the innermost one on, down to so
        many."""
        graph = self.graph
        before = self._finals, graph.handlers, graph.handled
        finals = self._finals
        for number in range(len(finals) - 1, count - 1, -1):
            if graph.block is None:
                break
            final = finals[number]
            self._finals = finals[:number]
            graph.handlers, graph.handled = [*final.handlers], [*final.handled]
            inside = graph.new()
            graph.jump(self._source.node, inside)
            graph.block = inside
            self._body(final.body)
        self._finals, graph.handlers, graph.handled = before
