# SPDX-License-Identifier: Apache-2.0
"""From the syntax tree of a function to its control-flow graph.

What has control flow inside an expression (`and`, `or`, a conditional, a chain of comparisons, `min`)
and calls of compiled functions become statements. Operands to their left are kept in temporary
variables, so that all is evaluated in the order of the Python Language Reference, section 6.16.
"""

from __future__ import annotations

import ast
import builtins
import copy
import inspect
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ferryvm.python.builtin import replacement
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.graph import (
    Append,
    Assign,
    Block,
    Branch,
    Call,
    Evaluate,
    Handler,
    IsInstance,
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
    Terminator,
    Unpack,
    find_live,
    writes,
)
from ferryvm.python.source import MISSING, Source

_N = TypeVar("_N", bound=ast.AST)


_STATEMENTS = {
    ast.With: "with",
    ast.FunctionDef: "a function inside a function; define it outside",
    ast.ClassDef: "a class",
    ast.Global: "an assignment to a global; return the value instead",
    ast.Nonlocal: "an assignment to a variable of another function; return the value instead",
    ast.Import: "an import; import outside the function",
    ast.ImportFrom: "an import; import outside the function",
    ast.Delete: "del",
    ast.Match: "match; write if and elif",
    ast.AsyncFor: "async",
    ast.AsyncWith: "async",
}
_EXPRESSIONS = {
    ast.SetComp: "a set",
    ast.Set: "a set",
    ast.Dict: "a dict",
    ast.DictComp: "a dict",
    ast.GeneratorExp: "a generator expression; write a loop",
    ast.Lambda: "a lambda inside a function; define a function outside",
    ast.Await: "await",
    ast.Yield: "yield; a generator cannot be compiled",
    ast.YieldFrom: "yield; a generator cannot be compiled",
    ast.Starred: "a starred expression; name each value",
    ast.JoinedStr: "an f-string",
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


class Lowering:
    """The graph of a function."""

    def __init__(self, source: Source) -> None:
        """Raises NotCompilableError for what cannot be compiled."""
        self._source = source
        self.blocks: list[Block] = []
        self.captured: dict[str, object] = {}
        """Values of the free names that it uses."""
        self._loops: list[_Loop] = []
        self._temporaries = 0
        self._comprehensions = 0
        self.uses_lists = False
        self._handlers: list[Handler] = []
        self._finals: list[_Final] = []
        self._caught: list[str] = []
        """Variables with the exceptions that are being handled."""
        self._block: Block | None = self._new()
        node = source.node
        if isinstance(node, ast.Lambda):
            self._end(Return(node.body, self._value(node.body)))
        else:
            self._body(node.body)
            self._end(Return(node, Known(None, node)))
        find_live(self.blocks)
        self.counters = frozenset(self._found_counters())
        """Variables that hold nothing but numbers from 0 on, of a range."""

    # --- blocks -----------------------------------------------------------------------------

    def _new(self) -> Block:
        block = Block(len(self.blocks), handler=self._handlers[-1] if self._handlers else None)
        self.blocks.append(block)
        return block

    def _add(self, statement: Statement) -> None:
        if self._block is not None:
            self._block.statements.append(statement)

    def _end(self, end: Terminator) -> None:
        """End the block, unless the place cannot be reached."""
        if self._block is not None:
            self._block.end = end
        self._block = None

    def _jump(self, node: ast.AST, to: Block) -> None:
        self._end(Jump(node, to))

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"%{self._temporaries}"

    def _found_counters(self) -> set[str]:
        ranges = {
            statement.name
            for block in self.blocks
            for statement in block.statements
            if isinstance(statement, Iterate) and _counts_from_zero(statement.value)
        }
        steps = [block.end for block in self.blocks if isinstance(block.end, Next)]
        counters = {step.name for step in steps if step.iterator in ranges}
        others = {step.name for step in steps if step.iterator not in ranges}
        for block in self.blocks:
            others = others.union(*map(writes, block.statements))
        return counters - others - set(self._source.parameters)

    # --- statements -------------------------------------------------------------------------

    def _body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if self._block is None:
                return
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr():
                self._add(Evaluate(node, self._value(node.value)))
            case ast.Assign():
                self._assign(node)
            case ast.AnnAssign():
                if node.value is not None:
                    self._assign_to(node, node.target, self._value(node.value))
            case ast.AugAssign():
                self._augmented(node)
            case ast.Return():
                value = Known(None, node) if node.value is None else self._value(node.value)
                if self._finals:
                    value = self._saved(value)
                    self._run_finals(0)
                self._end(Return(node, value))
            case ast.Try():
                self._try(node)
            case ast.If():
                self._if(node)
            case ast.While():
                self._while(node)
            case ast.For():
                self._for(node)
            case ast.Break() | ast.Continue():
                loop = self._loops[-1]
                self._run_finals(loop.finals)
                self._jump(node, loop.over if isinstance(node, ast.Break) else loop.again)
            case ast.Assert():
                passed, failed = self._new(), self._new()
                self._condition(node.test, passed, failed)
                self._block = failed
                message = None if node.msg is None else self._value(node.msg)
                self._end(Raise(node, AssertionError, message))
                self._block = passed
            case ast.Raise():
                self._raise(node)
            case _:
                what = _STATEMENTS.get(type(node), f"the statement {type(node).__name__}")
                raise NotCompilableError(node, f"cannot compile {what}")

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1:
            target = node.targets[0]
            pair = isinstance(target, ast.Tuple | ast.List) and isinstance(node.value, ast.Tuple)
            if pair and len(target.elts) == len(node.value.elts):  # type: ignore[attr-defined]  # a pair of tuples
                values = [self._saved(value) for value in self._values(node.value.elts)]  # type: ignore[attr-defined]  # likewise
                for each, value in zip(target.elts, values, strict=True):  # type: ignore[attr-defined]  # likewise
                    self._assign_to(node, each, value)
                return
        value = self._value(node.value)
        if len(node.targets) > 1:
            value = self._saved(value)
        for target in node.targets:
            self._assign_to(node, target, value)

    def _assign_to(self, node: ast.AST, target: ast.expr, value: ast.expr) -> None:
        match target:
            case ast.Name():
                self._add(Assign(node, target.id, value))
            case ast.Tuple() | ast.List():
                names = [
                    each.id if isinstance(each, ast.Name) else self._temporary()
                    for each in target.elts
                ]
                self._add(Unpack(node, names, self._saved(value)))
                for each, name in zip(target.elts, names, strict=True):
                    if not isinstance(each, ast.Name):
                        self._assign_to(node, each, _name(name, each))
            case ast.Subscript():
                value = self._saved(value)
                array, index = self._values([target.value, target.slice])
                self._add(Store(target, array, index, value))
            case ast.Attribute():
                raise NotCompilableError(target, "cannot compile an assignment to an attribute")
            case _:
                raise NotCompilableError(target, "cannot compile this target of an assignment")

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            before = _name(target.id, target)
            if self._has_control(node.value):
                before = self._saved(before)  # type: ignore[assignment]  # a variable is a name, too
            value = ast.BinOp(before, node.op, self._value(node.value))
            self._add(Assign(node, target.id, ast.copy_location(value, node)))
        elif isinstance(target, ast.Subscript):
            array, index = (
                self._saved(each) for each in self._values([target.value, target.slice])
            )
            element: ast.expr = ast.copy_location(ast.Subscript(array, index, ast.Load()), target)
            if self._has_control(node.value):
                element = self._saved(element)
            value = ast.BinOp(element, node.op, self._value(node.value))
            self._add(Store(target, array, index, ast.copy_location(value, node)))
        else:
            raise NotCompilableError(target, "cannot compile an assignment to an attribute")

    def _if(self, node: ast.If) -> None:
        yes, no, after = self._new(), self._new(), self._new()
        self._condition(node.test, yes, no)
        for block, body in ((yes, node.body), (no, node.orelse)):
            self._block = block
            self._body(body)
            self._jump(node, after)
        self._block = after

    def _loop(self, again: Block, body: Sequence[ast.stmt], over: Block, node: ast.AST) -> None:
        self._loops.append(_Loop(again, over, len(self._finals)))
        self._body(body)
        self._loops.pop()
        self._jump(node, again)

    def _while(self, node: ast.While) -> None:
        head, body, otherwise, over = self._new(), self._new(), self._new(), self._new()
        self._jump(node, head)
        self._block = head
        self._condition(node.test, body, otherwise)
        self._block = body
        self._loop(head, node.body, over, node)
        self._block = otherwise
        self._body(node.orelse)
        self._jump(node, over)
        self._block = over

    def _begin_loop(self, iterable: ast.expr, target: ast.expr) -> tuple[Block, Block]:
        """Begin the body of a loop over an iterable: the head of the loop, and the block after it."""
        head, body, after = self._new(), self._new(), self._new()
        iterator = self._temporary()
        self._add(Iterate(iterable, iterator, self._value(iterable)))
        self._jump(iterable, head)
        self._block = head
        name = target.id if isinstance(target, ast.Name) else self._temporary()
        self._end(Next(iterable, iterator, name, body, after))
        self._block = body
        if not isinstance(target, ast.Name):
            self._assign_to(target, target, _name(name, target))
        return head, after

    def _for(self, node: ast.For) -> None:
        over = self._new()
        head, otherwise = self._begin_loop(node.iter, node.target)
        self._loop(head, node.body, over, node)
        self._block = otherwise
        self._body(node.orelse)
        self._jump(node, over)
        self._block = over

    def _raise(self, node: ast.Raise) -> None:
        error = node.exc
        if error is None or (isinstance(error, ast.Name) and error.id in self._source.variables):
            name = error.id if isinstance(error, ast.Name) else None
            if name is None and not self._caught:
                raise NotCompilableError(node, "raise without an exception outside of except")
            self._end(RaiseAgain(node, name or self._caught[-1]))
            return
        arguments: list[ast.expr] = []
        if isinstance(error, ast.Call) and not error.keywords:
            arguments, error = error.args, error.func
        type_ = self._constant(error)
        is_type = isinstance(type_, type) and issubclass(type_, BaseException)
        if not is_type or type_ not in vars(builtins).values() or len(arguments) > 1:
            raise NotCompilableError(
                node, "raise takes a built-in exception with at most one argument"
            )
        assert isinstance(type_, type)
        argument = self._value(arguments[0]) if arguments else None
        self._end(Raise(node, type_, argument))

    # --- exceptions -------------------------------------------------------------------------

    def _try(self, node: ast.Try) -> None:
        if node.finalbody:
            self._try_finally(node)
        else:
            self._try_except(node)

    def _protected(self, node: ast.AST, body: Sequence[ast.stmt], handler: Handler) -> None:
        """Lower statements whose exceptions go to a handler."""
        self._handlers.append(handler)
        inside = self._new()
        self._jump(node, inside)
        self._block = inside
        self._body(body)
        self._handlers.pop()
        outside = self._new()
        self._jump(node, outside)
        self._block = outside

    def _new_handler(self) -> Handler:
        return Handler(self._new(), self._temporary())

    def _try_except(self, node: ast.Try) -> None:
        handler, after = self._new_handler(), self._new()
        self._protected(node, node.body, handler)
        self._body(node.orelse)
        self._jump(node, after)
        self._block = handler.block
        for clause in node.handlers:
            body, others = self._new(), self._new()
            if clause.type is None:
                self._jump(clause, body)
            else:
                types_ = self._exception_types(clause.type)
                test = IsInstance(handler.name, types_, clause.type)
                self._end(Branch(clause, test, body, others))
            self._block = body
            if clause.name:
                self._add(Assign(clause, clause.name, _name(handler.name, clause)))
            self._caught.append(handler.name)
            self._body(clause.body)
            self._caught.pop()
            self._jump(clause, after)
            self._block = others
        self._end(RaiseAgain(node, handler.name))
        self._block = after

    def _exception_types(self, node: ast.expr) -> tuple[type[BaseException], ...]:
        parts = node.elts if isinstance(node, ast.Tuple) else [node]
        found = tuple(self._constant(part) for part in parts)
        for each in found:
            if not (isinstance(each, type) and issubclass(each, BaseException)):
                raise NotCompilableError(node, "except takes types of exceptions")
        return found  # type: ignore[return-value]  # checked

    def _try_finally(self, node: ast.Try) -> None:
        handler = self._new_handler()
        self._finals.append(_Final(node.finalbody, [*self._handlers]))
        rest = ast.Try(node.body, node.handlers, node.orelse, [])
        body = [_like(node, rest)] if node.handlers else [*node.body, *node.orelse]
        self._protected(node, body, handler)
        self._finals.pop()
        after = self._new()
        self._body(node.finalbody)
        self._jump(node, after)
        self._block = handler.block
        self._body(node.finalbody)
        self._end(RaiseAgain(node, handler.name))
        self._block = after

    def _run_finals(self, count: int) -> None:
        """Lower the `finally` clauses that control leaves, from the innermost one on, down to so
        many."""
        finals, handlers = self._finals, self._handlers
        for number in range(len(finals) - 1, count - 1, -1):
            if self._block is None:
                break
            self._finals, self._handlers = finals[:number], [*finals[number].handlers]
            inside = self._new()
            self._jump(self._source.node, inside)
            self._block = inside
            self._body(finals[number].body)
        self._finals, self._handlers = finals, handlers

    # --- conditions -------------------------------------------------------------------------

    def _condition(self, node: ast.expr, yes: Block, no: Block) -> None:
        """Go on at a block by the boolean value of an expression."""
        match node:
            case ast.BoolOp():
                for value in node.values[:-1]:
                    rest = self._new()
                    if isinstance(node.op, ast.And):
                        self._condition(value, rest, no)
                    else:
                        self._condition(value, yes, rest)
                    self._block = rest
                self._condition(node.values[-1], yes, no)
            case ast.UnaryOp(op=ast.Not()):
                self._condition(node.operand, no, yes)
            case ast.Compare() if len(node.ops) > 1:
                for each in self._links(node):
                    rest = self._new()
                    self._end(Branch(node, each, rest, no))
                    self._block = rest
                self._jump(node, yes)
            case _:
                self._end(Branch(node, self._value(node), yes, no))

    def _links(self, node: ast.Compare) -> Iterator[ast.expr]:
        """The comparisons of a chain; what is between two of them is evaluated once, when the first
        of them is."""
        left = node.left
        if self._has_control(node.comparators[0]):
            left = self._saved(self._value(left))
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            left_value = self._value(left)
            right = self._value(comparator)
            if comparator is not node.comparators[-1]:
                if not isinstance(left_value, ast.Name | ast.Constant | Known):
                    left_value = self._saved(left_value)
                right = self._saved(right)
            yield ast.copy_location(ast.Compare(left_value, [op], [right]), node)
            left = right

    # --- expressions ------------------------------------------------------------------------

    def _saved(self, value: ast.expr) -> ast.expr:
        """A value in a temporary variable, unless it cannot change."""
        if isinstance(value, ast.Constant | Known):
            return value
        if isinstance(value, ast.Name) and value.id.startswith("%"):
            return value
        if isinstance(value, ast.Tuple):
            return _like(value, ast.Tuple([self._saved(item) for item in value.elts], ast.Load()))
        name = self._temporary()
        self._add(Assign(value, name, value))
        return _name(name, value)

    def _values(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """The values of expressions that are evaluated in this order."""
        found = []
        for number, node in enumerate(nodes):
            value = self._value(node)
            if any(map(self._has_control, nodes[number + 1 :])):
                value = self._saved(value)
            found.append(value)
        return found

    def _value(self, node: ast.expr) -> ast.expr:
        """An expression without control flow that has the value of another one."""
        match node:
            case ast.Constant() | Known() | IsInstance():
                return node
            case ast.Name():
                return self._name(node)
            case ast.Attribute():
                known = self._constant(node)
                if known is not MISSING:
                    return Known(known, node)
                return _like(node, ast.Attribute(self._value(node.value), node.attr, ast.Load()))
            case ast.BinOp():
                left, right = self._values([node.left, node.right])
                return _like(node, ast.BinOp(left, node.op, right))
            case ast.UnaryOp():
                return _like(node, ast.UnaryOp(node.op, self._value(node.operand)))
            case ast.Compare() if len(node.ops) == 1:
                left, right = self._values([node.left, node.comparators[0]])
                return _like(node, ast.Compare(left, node.ops, [right]))
            case ast.Compare():
                return self._chain(node)
            case ast.BoolOp():
                return self._selected(node)
            case ast.IfExp():
                return self._conditional(node)
            case ast.NamedExpr():
                self._add(Assign(node, node.target.id, self._value(node.value)))
                return _name(node.target.id, node)
            case ast.Subscript():
                array, index = self._values([node.value, node.slice])
                return _like(node, ast.Subscript(array, index, ast.Load()))
            case ast.Tuple():
                return _like(node, ast.Tuple(self._values(node.elts), ast.Load()))
            case ast.Slice():
                parts = [node.lower, node.upper, node.step]
                values = iter(self._values([part for part in parts if part is not None]))
                return _like(node, ast.Slice(*(part and next(values) for part in parts)))
            case ast.List():
                self.uses_lists = True
                return _like(node, ast.List(self._values(node.elts), ast.Load()))
            case ast.ListComp():
                return self._comprehension(node)
            case ast.Call():
                return self._call(node)
        what = _EXPRESSIONS.get(type(node), f"the expression {type(node).__name__}")
        raise NotCompilableError(node, f"cannot compile {what}")

    def _name(self, node: ast.Name) -> ast.expr:
        if node.id in self._source.variables or node.id.startswith("%"):
            return node
        value = self._source.value(node.id)
        if value is MISSING:
            raise NotCompilableError(node, f"the name {node.id!r} is not defined")
        self.captured[node.id] = value
        return Known(value, node)

    def _constant(self, node: ast.expr) -> object:
        """The value of a free name, or of an attribute of a module; MISSING for others."""
        if isinstance(node, ast.Name):
            found = self._name(node)
            return found.value if isinstance(found, Known) else MISSING
        if isinstance(node, ast.Attribute):
            module = self._constant(node.value)
            if isinstance(module, types.ModuleType):
                value = getattr(module, node.attr, MISSING)
                if value is MISSING:
                    raise NotCompilableError(node, f"module {module.__name__} has no {node.attr!r}")
                return value
        return MISSING

    def _choice(self, node: ast.AST) -> tuple[str, Block]:
        """A variable for a value that is assigned on several paths, and the block after them."""
        return self._temporary(), self._new()

    def _conditional(self, node: ast.IfExp) -> ast.expr:
        name, after = self._choice(node)
        yes, no = self._new(), self._new()
        self._condition(node.test, yes, no)
        for block, value in ((yes, node.body), (no, node.orelse)):
            self._block = block
            self._add(Assign(value, name, self._value(value)))
            self._jump(node, after)
        self._block = after
        return _name(name, node)

    def _selected(self, node: ast.BoolOp) -> ast.expr:
        """The value of `and` or `or`: the first one that decides, or the last one."""
        name, after = self._choice(node)
        for value in node.values:
            self._add(Assign(value, name, self._value(value)))
            if value is not node.values[-1]:
                rest = self._new()
                targets = (rest, after) if isinstance(node.op, ast.And) else (after, rest)
                self._end(Branch(value, _name(name, value), *targets))
                self._block = rest
        self._jump(node, after)
        self._block = after
        return _name(name, node)

    def _chain(self, node: ast.Compare) -> ast.expr:
        name, after = self._choice(node)
        links = self._links(node)
        for number, link in enumerate(links):
            self._add(Assign(link, name, link))
            if number < len(node.ops) - 1:
                rest = self._new()
                self._end(Branch(link, _name(name, link), rest, after))
                self._block = rest
        self._jump(node, after)
        self._block = after
        return _name(name, node)

    def _comprehension(self, node: ast.ListComp) -> ast.expr:
        """A list that loops fill. Their variables have names of their own."""
        self.uses_lists = True
        self._comprehensions += 1
        name = self._temporary()
        self._add(Assign(node, name, _like(node, ast.List([], ast.Load()))))
        names = {
            each.id: f"%{each.id} {self._comprehensions}"
            for generator in node.generators
            for each in ast.walk(generator.target)
            if isinstance(each, ast.Name)
        }
        first = node.generators[0]

        def nest(generators: Sequence[ast.comprehension]) -> None:
            if not generators:
                self._add(Append(node.elt, name, self._value(_renamed(node.elt, names))))
                return
            generator, *others = generators
            if generator.is_async:
                raise NotCompilableError(node, "cannot compile async")
            iterable = _renamed(generator.iter, {} if generator is first else names)
            again, over = self._begin_loop(iterable, _renamed(generator.target, names))
            for test in generator.ifs:
                passed = self._new()
                self._condition(_renamed(test, names), passed, again)
                self._block = passed
            nest(others)
            self._jump(node, again)
            self._block = over

        nest(node.generators)
        return _name(name, node)

    def _method(self, node: ast.Call) -> ast.expr | None:
        """The value of a method of a list; None if it is no method that a list has."""
        of = node.func
        if not isinstance(of, ast.Attribute) or not isinstance(of.value, ast.Name):
            return None
        name = of.value.id
        if name not in self._source.variables or node.keywords:
            return None
        if of.attr == "append" and len(node.args) == 1:
            self._add(Append(node, name, self._value(node.args[0])))
            return Known(None, node)
        if of.attr == "pop" and not node.args:
            result = self._temporary()
            self._add(Pop(node, result, name))
            return _name(result, node)
        return None

    def _call(self, node: ast.Call) -> ast.expr:
        method = self._method(node)
        if method is not None:
            return method
        function = self._callee(node)
        if function is min or function is max:
            return self._extreme(node, function is min)
        if isinstance(function, types.FunctionType):
            name = self._temporary()
            arguments = self._arguments(node, function)
            self._add(Call(node, name, function, arguments))
            return _name(name, node)
        if node.keywords:
            raise NotCompilableError(node, "cannot compile a call of this function with keywords")
        if function is MISSING:
            if isinstance(node.func, ast.Attribute):
                raise NotCompilableError(node, f"cannot compile the method {node.func.attr!r}")
            raise NotCompilableError(
                node, "cannot compile a call of a value that may be any function"
            )
        call = ast.Call(Known(function, node.func), self._values(node.args), [])
        return _like(node, call)

    def _arguments(self, node: ast.Call, function: types.FunctionType) -> list[ast.expr]:
        """The arguments of a call of a compiled function, in the order of its parameters."""
        keywords = {each.arg: each.value for each in node.keywords}
        if None in keywords or any(isinstance(each, ast.Starred) for each in node.args):
            raise NotCompilableError(node, "cannot compile a call with * or **; pass each argument")
        values = self._values([*node.args, *keywords.values()])
        given = values[: len(node.args)]
        named = dict(zip(map(str, keywords), values[len(node.args) :], strict=True))
        signature = inspect.signature(function)
        try:
            bound = signature.bind(*given, **named)
        except TypeError as error:
            raise NotCompilableError(node, f"{function.__name__}: {error}") from None
        return [
            bound.arguments[name] if name in bound.arguments else Known(parameter.default, node)
            for name, parameter in signature.parameters.items()
        ]

    def _extreme(self, node: ast.Call, is_min: bool) -> ast.expr:
        """The value of `min` or `max`: the first argument, and each that is less, or greater."""
        if node.keywords or len(node.args) < 2:
            name = "min" if is_min else "max"
            raise NotCompilableError(
                node, f"{name} takes two or more values; write a loop over the others"
            )
        first, *others = (self._saved(value) for value in self._values(node.args))
        name, op = self._temporary(), ast.Lt() if is_min else ast.Gt()
        self._add(Assign(node, name, first))
        for value in others:
            better, after = self._new(), self._new()
            test = ast.Compare(value, [op], [_name(name, node)])
            self._end(Branch(node, _like(node, test), better, after))
            self._block = better
            self._add(Assign(node, name, value))
            self._jump(node, after)
            self._block = after
        return _name(name, node)

    def _callee(self, node: ast.Call) -> object:
        """The function that a call is of; MISSING if that is not known."""
        function = self._constant(node.func)
        function = getattr(function, "__ferryvm_function__", function)
        return replacement(function, len(node.args)) or function

    def _has_control(self, node: ast.expr) -> bool:
        """True if statements are needed for an expression."""
        for each in ast.walk(node):
            match each:
                case ast.BoolOp() | ast.IfExp() | ast.NamedExpr() | ast.ListComp():
                    return True
                case ast.Compare():
                    if len(each.ops) > 1:
                        return True
                case ast.Call():
                    function = self._callee(each)
                    is_method = function is MISSING and isinstance(each.func, ast.Attribute)
                    is_extreme = function is min or function is max
                    if is_method or is_extreme or isinstance(function, types.FunctionType):
                        return True
        return False


def _counts_from_zero(node: ast.expr) -> bool:
    """True for a call of `range` that begins at 0 or above, and goes up."""
    if not isinstance(node, ast.Call) or getattr(node.func, "value", None) is not range:
        return False
    start = node.args[0] if len(node.args) > 1 else None
    step = node.args[2] if len(node.args) > 2 else None
    return all(
        each is None
        or (isinstance(each, ast.Constant) and isinstance(each.value, int) and each.value >= 0)
        for each in (start, step)
    )


class _Renaming(ast.NodeTransformer):
    """Replaces names of variables."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:  # as `ast` calls it
        """The node, with its new name."""
        name = self._names.get(node.id, node.id)
        return ast.copy_location(ast.Name(name, node.ctx), node)


def _renamed(node: ast.expr, names: Mapping[str, str]) -> ast.expr:
    found = _Renaming(names).visit(copy.deepcopy(node))
    assert isinstance(found, ast.expr)
    return found


def _name(name: str, node: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(name, ast.Load()), node)


def _like(node: ast.AST, made: _N) -> _N:
    return ast.copy_location(made, node)
