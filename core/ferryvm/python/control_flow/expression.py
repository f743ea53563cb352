# SPDX-License-Identifier: Apache-2.0
"""Expressions, conditions and targets of assignments in a control-flow graph.

What has control flow inside an expression (`and`, `or`, a conditional, a chain of comparisons,
`min`) and calls of compiled functions become statements. Operands to their left are kept in
temporary variables, so that all is evaluated in the order of the Python Language Reference, section
6.16.
"""

from __future__ import annotations

import ast
import math
import types
from collections.abc import Iterator, Sequence
from typing import Any

from ferryvm.python.control_flow.array_call import creates, normalised
from ferryvm.python.control_flow.builtin_call import as_function, folded, missing_method
from ferryvm.python.control_flow.graph import (
    Assign,
    Block,
    Branch,
    Call,
    IsInstance,
    Iterate,
    Known,
    Method,
    Next,
    Raise,
    Store,
    Unpack,
)
from ferryvm.python.control_flow.graph_builder import GraphBuilder, like, name_of
from ferryvm.python.control_flow.kernel_call import KernelCalls
from ferryvm.python.control_flow.sequence import has_star, is_generated
from ferryvm.python.definition.source import MISSING, InnerFunction, Source
from ferryvm.python.fault import NO_DICT, NO_SET, NotCompilableError
from ferryvm.python.hosted.builtin import contains, in_range, replacement
from ferryvm.python.hosted.builtin_text import CHARACTER_TESTS, TEXT_METHODS
from ferryvm.python.hosted.refused_call import advice, is_of_numpy, refused_call
from ferryvm.python.hosted.work_item import is_index

METHODS = frozenset(
    {
        *("append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "fill"),
        *("reverse", "sort", "join", *CHARACTER_TESTS, *TEXT_METHODS),
    }
)
"""The methods of lists, tuples, texts and arrays."""
_EXPRESSIONS = {
    ast.SetComp: f"a set{NO_SET}",
    ast.Set: f"a set{NO_SET}",
    ast.Dict: f"a dict{NO_DICT}",
    ast.DictComp: f"a dict{NO_DICT}",
    ast.GeneratorExp: "a generator expression here; write a loop",
    ast.Await: "await; write an ordinary function",
    ast.Yield: "yield; return a list",
    ast.YieldFrom: "yield; return a list",
    ast.Starred: "a starred expression; name each value",
}


class Expressions(KernelCalls):
    """The lowering of the expressions of one function."""

    def __init__(self, source: Source, graph: GraphBuilder) -> None:
        super().__init__(source, graph)
        self.captured: dict[str, object] = {}
        """Values of the free names that it uses."""
        self.attributes: dict[tuple[types.ModuleType, str], object] = {}
        """Values of the attributes of modules that it uses."""

    # --- targets ----------------------------------------------------------------------------

    def assign_to(self, node: ast.AST, target: ast.expr, value: ast.expr) -> None:
        """Assign a value to a target."""
        match target:
            case ast.Name():
                self.graph.add(Assign(node, target.id, value))
            case ast.Tuple() | ast.List():
                self.unpack(node, target.elts, value)
            case ast.Subscript():
                value = self.saved(value)
                array, index = self.values([target.value, target.slice])
                self.graph.add(Store(target, array, index, value))
            case ast.Attribute():
                raise NotCompilableError(target, "cannot compile an assignment to an attribute")
            case _:
                raise NotCompilableError(target, "cannot compile this target of an assignment")

    def define(self, node: ast.AST, name: str) -> None:
        """State that an inner function is defined here. Calls compile it; the variable says that it
        is there."""
        self.graph.add(Assign(node, name, Known(self._source.inner[name], node)))

    def begin_loop(self, iterable: ast.expr, target: ast.expr) -> tuple[Block, Block]:
        """Begin the body of a loop over an iterable: the head of the loop, and the block after
        it."""
        generator = self.generator_of(iterable)
        if generator is not None:
            return self.begin_generated(generator, target)
        head, body, after = self.graph.new(), self.graph.new(), self.graph.new()
        iterator = self.graph.temporary()
        self.graph.add(Iterate(iterable, iterator, self.value(iterable)))
        self.graph.jump(iterable, head)
        self.graph.block = head
        name = target.id if isinstance(target, ast.Name) else self.graph.temporary()
        self.graph.end(Next(iterable, iterator, name, body, after))
        self.graph.block = body
        if not isinstance(target, ast.Name):
            self.assign_to(target, target, name_of(name, target))
        return head, after

    # --- conditions -------------------------------------------------------------------------

    def condition(self, node: ast.expr, yes: Block, no: Block) -> None:
        """Go on at a block by the boolean value of an expression."""
        match node:
            case ast.BoolOp():
                for value in node.values[:-1]:
                    rest = self.graph.new()
                    if isinstance(node.op, ast.And):
                        self.condition(value, rest, no)
                    else:
                        self.condition(value, yes, rest)
                    self.graph.block = rest
                self.condition(node.values[-1], yes, no)
            case ast.UnaryOp(op=ast.Not()):
                self.condition(node.operand, no, yes)
            case ast.Compare() if len(node.ops) > 1:
                for each in self._links(node):
                    rest = self.graph.new()
                    _mark_condition(each)
                    self.graph.end(Branch(node, each, rest, no))
                    self.graph.block = rest
                self.graph.jump(node, yes)
            case _:
                value = self.value(node)
                if isinstance(value, ast.Tuple):
                    value = self.saved(value)
                _mark_condition(value)
                self.graph.end(Branch(node, value, yes, no))

    def _links(self, node: ast.Compare) -> Iterator[ast.expr]:
        """The comparisons of a chain; what is between two of them is evaluated once, when the first
        of them is."""
        left = node.left
        if self.has_control(node.comparators[0]):
            left = self.saved(self.value(left))
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            left_value = self.value(left)
            right = self.value(comparator)
            if comparator is not node.comparators[-1]:
                if not isinstance(left_value, ast.Name | ast.Constant | Known):
                    left_value = self.saved(left_value)
                right = self.saved(right)
            yield ast.copy_location(ast.Compare(left_value, [op], [right]), node)
            left = right

    # --- expressions ------------------------------------------------------------------------

    def saved(self, value: ast.expr) -> ast.expr:
        """A value in a temporary variable, unless it cannot change."""
        if isinstance(value, ast.Constant | Known):
            return value
        if isinstance(value, ast.Name) and value.id.startswith("%"):
            return value
        if isinstance(value, ast.Tuple):
            return like(value, ast.Tuple([self.saved(item) for item in value.elts], ast.Load()))
        name = self.graph.temporary()
        self.graph.add(Assign(value, name, value))
        return name_of(name, value)

    def evaluated(self, value: ast.expr) -> ast.expr:
        """A value of which code may use the kind alone, or a part: what may raise is in
        variables."""
        match value:
            case ast.Constant() | Known() | ast.Name():
                return value
            case ast.Attribute():
                return like(
                    value, ast.Attribute(self.evaluated(value.value), value.attr, value.ctx)
                )
        return self.saved(value)

    def values(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """The values of expressions that are evaluated in this order."""
        found = []
        for number, node in enumerate(nodes):
            value = self.value(node)
            if any(map(self.has_control, nodes[number + 1 :])):
                value = self.saved(value)
            found.append(value)
        return found

    def value(self, node: ast.expr) -> ast.expr:
        """An expression without control flow that has the value of another one."""
        match node:
            case ast.Constant() | Known() | IsInstance():
                return node
            case ast.Name():
                return self._undefined(node) if self._is_undefined(node) else self._name(node)
            case ast.Attribute():
                known = self.constant(node)
                if known is not MISSING:
                    return Known(known, node)
                return like(node, ast.Attribute(self.value(node.value), node.attr, ast.Load()))
            case ast.BinOp():
                left, right = self.values([node.left, node.right])
                return folded(like(node, ast.BinOp(left, node.op, right)))
            case ast.UnaryOp():
                return like(node, ast.UnaryOp(node.op, self.value(node.operand)))
            case ast.Compare(ops=[ast.In() | ast.NotIn()]):
                return self._contained(node)
            case ast.Compare() if len(node.ops) == 1:
                left, right = self.values([node.left, node.comparators[0]])
                if isinstance(node.ops[0], ast.Is | ast.IsNot):
                    left, right = self.evaluated(left), self.evaluated(right)
                return like(node, ast.Compare(left, node.ops, [right]))
            case ast.Compare():
                return self._chain(node)
            case ast.BoolOp():
                return self._selected(node)
            case ast.IfExp():
                return self._conditional(node)
            case ast.NamedExpr():
                self.graph.add(Assign(node, node.target.id, self.value(node.value)))
                return name_of(node.target.id, node)
            case ast.Subscript():
                array, index = self.values([node.value, node.slice])
                if isinstance(array, ast.Tuple | ast.Subscript):
                    array = self.saved(array)
                return like(node, ast.Subscript(array, index, ast.Load()))
            case ast.Tuple() | ast.List() if has_star(node):
                return self.value(self.joined(node))
            case ast.Tuple():
                return like(node, ast.Tuple(self.values(node.elts), ast.Load()))
            case ast.Slice():
                parts = [node.lower, node.upper, node.step]
                values = iter(self.values([part for part in parts if part is not None]))
                return like(node, ast.Slice(*(part and next(values) for part in parts)))
            case ast.List():
                self.uses_lists = True
                return like(node, ast.List(self.values(node.elts), ast.Load()))
            case ast.ListComp():
                return self.comprehension(node)
            case ast.JoinedStr():
                return like(node, ast.JoinedStr([self._part(part) for part in node.values]))
            case ast.Call():
                return self._call(node)
            case ast.Lambda():
                return self.lambda_value(node)
        what = _EXPRESSIONS.get(type(node), f"the expression {type(node).__name__}")
        raise NotCompilableError(node, f"cannot compile {what}")

    def _part(self, node: ast.expr) -> ast.expr:
        """A part of an f-string."""
        if not isinstance(node, ast.FormattedValue):
            return node
        form = node.format_spec
        spec = None if form is None else self.value(form)
        return like(node, ast.FormattedValue(self.value(node.value), node.conversion, spec))

    def _name(self, node: ast.Name) -> ast.expr:
        if node.id in self._source.inner:
            return self.inner_value(node)
        if node.id in self._source.variables or node.id.startswith("%"):
            return node
        value = self._source.value(node.id)
        if node.id not in self._source.given:
            self.captured[node.id] = value
        return Known(value, node)

    def _undefined(self, node: ast.Name) -> ast.expr:
        """The value of a name that is not defined: Python raises NameError as it comes there."""
        words = ast.Constant(f"name {node.id!r} is not defined"), ast.Constant(node.id)
        text, name = (like(node, word) for word in words)
        call = ast.Call(Known(NameError, node), [text], [ast.keyword("name", name)])
        self.graph.end(Raise(node, NameError, like(node, call)))
        self.graph.block = self.graph.new()
        return Known(None, node)

    def _is_undefined(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Name) or node.id in self._source.inner:
            return False
        return getattr(self._name(node), "value", None) is MISSING

    def constant(self, node: ast.expr) -> object:
        """The value of a free name, or of an attribute of a module; MISSING for others."""
        if isinstance(node, Known):
            return node.value
        if isinstance(node, ast.Name):
            if node.id in self._source.inner:
                return MISSING
            found = self._name(node)
            return found.value if isinstance(found, Known) else MISSING
        if isinstance(node, ast.Attribute):
            module = self.constant(node.value)
            if isinstance(module, types.ModuleType):
                value = getattr(module, node.attr, MISSING)
                if value is MISSING:
                    raise NotCompilableError(node, f"module {module.__name__} has no {node.attr!r}")
                self.attributes[module, node.attr] = value
                return value
        return MISSING

    def _choice(self, node: ast.AST) -> tuple[str, Block]:
        """A variable for a value that is assigned on several paths, and the block after them."""
        return self.graph.temporary(), self.graph.new()

    def _conditional(self, node: ast.IfExp) -> ast.expr:
        name, after = self._choice(node)
        yes, no = self.graph.new(), self.graph.new()
        self.condition(node.test, yes, no)
        for block, value in ((yes, node.body), (no, node.orelse)):
            self.graph.block = block
            self.graph.add(Assign(value, name, self.value(value)))
            self.graph.jump(node, after)
        self.graph.block = after
        return name_of(name, node)

    def _selected(self, node: ast.BoolOp) -> ast.expr:
        """The value of `and` or `or`: the first one that decides, or the last one."""
        name, after = self._choice(node)
        for value in node.values:
            self.graph.add(Assign(value, name, self.value(value)))
            if value is not node.values[-1]:
                rest = self.graph.new()
                targets = (rest, after) if isinstance(node.op, ast.And) else (after, rest)
                self.graph.end(Branch(value, name_of(name, value), *targets))
                self.graph.block = rest
        self.graph.jump(node, after)
        self.graph.block = after
        return name_of(name, node)

    def _chain(self, node: ast.Compare) -> ast.expr:
        name, after = self._choice(node)
        links = self._links(node)
        for number, link in enumerate(links):
            self.graph.add(Assign(link, name, link))
            if number < len(node.ops) - 1:
                rest = self.graph.new()
                self.graph.end(Branch(link, name_of(name, link), rest, after))
                self.graph.block = rest
        self.graph.jump(node, after)
        self.graph.block = after
        return name_of(name, node)

    def _contained(self, node: ast.Compare) -> ast.expr:
        """The value of `in`: a comparison with each item, or with the ends of a range."""
        values, name = node.comparators[0], self.graph.temporary()
        function: Any = contains
        arguments = [node.left, values]
        if isinstance(values, ast.Call) and self._callee(values) is range and not values.keywords:
            start = [Known(0, node)] if len(values.args) == 1 else []
            step = [Known(1, node)] if len(values.args) < 3 else []
            function, arguments = in_range, [node.left, *start, *values.args, *step]
        self.graph.add(Call(node, name, function, self.values(arguments)))
        found = name_of(name, node)
        if isinstance(node.ops[0], ast.In):
            return found
        return like(node, ast.UnaryOp(ast.Not(), found))

    def _method(self, node: ast.Call) -> ast.expr | None:
        """The value of a method of an object; None if it is no method that one has."""
        of = node.func
        if not isinstance(of, ast.Attribute) or of.attr not in METHODS:
            return None
        if self.constant(of) is not MISSING:
            return None
        if of.attr == "sort":
            return self.sort(node, of.value)
        if node.keywords:
            raise NotCompilableError(node, f"cannot compile the method {of.attr!r} with keywords")
        self.uses_lists = True
        if len(node.args) == 1 and is_generated(node.args[0]):
            if of.attr == "extend":
                return self.extend(node, of.value)
            listed = like(node, ast.Call(Known(list, node), node.args, []))
            node = like(node, ast.Call(of, [listed], []))
        object_, *arguments = self.values([of.value, *node.args])
        name, owners = self.owned(object_)
        result = self.graph.temporary()
        self.graph.add(Method(node, result, name, of.attr, arguments, owners))
        return name_of(result, node)

    def _call(self, node: ast.Call) -> ast.expr:
        method = self._method(node)
        if method is not None:
            return method
        is_inner = isinstance(node.func, ast.Name) and node.func.id in self._source.inner
        if not is_inner and self._is_undefined(node.func):
            return self.value(node.func)
        if not is_inner and self.constant(node.func) is MISSING:
            node = as_function(node)
        rewritten = None if is_inner else self.rewritten(node, self.constant(node.func))
        if rewritten is not None:
            return rewritten
        function = self._callee(node)
        if function is print:
            return self.printed(node)
        if function is enumerate and [each.arg for each in node.keywords] == ["start"]:
            node = like(node, ast.Call(node.func, [*node.args, node.keywords[0].value], []))
        if function is zip and _is_strict(node):
            values = self.values(node.args)
            return like(node, ast.Call(Known(zip, node.func), values, node.keywords))
        if creates(function):
            arguments = normalised(node, function, lambda: Known(None, node))
            return like(node, ast.Call(Known(function, node.func), self.values(arguments), []))
        if is_of_numpy(function):
            raise NotCompilableError(node, refused_call(function))
        if isinstance(function, types.FunctionType | InnerFunction):
            name = self.graph.temporary()
            self.graph.add(Call(node, name, *self.called(node, function), self._captured))
            if isinstance(function, InnerFunction) and function.assigned:
                name = self._assigned(node, name, function)
            return name_of(name, node)
        if function is MISSING and not isinstance(node.func, ast.Attribute):
            return self.value_called(node)
        if node.keywords and function is not MISSING:
            message = refused_call(function)
            if not advice(function):
                message += " with keywords; pass values by position"
            raise NotCompilableError(node, message)
        if function is MISSING:
            assert isinstance(node.func, ast.Attribute)
            raise NotCompilableError(node, missing_method(node.func.attr))
        arguments = self.values(node.args)
        if function is len or function is type:  # their code does not evaluate it
            arguments = [self.evaluated(each) for each in arguments]
        return like(node, ast.Call(Known(function, node.func), arguments, []))

    def _assigned(self, node: ast.Call, name: str, function: InnerFunction) -> str:
        """Assign the variables that a call of an inner function has assigned; the variable with its
        value."""
        if self.graph.handlers:
            message = (
                f"cannot compile a call of {function.name}, which assigns variables of this function, in try;"
                " return the values instead"
            )
            raise NotCompilableError(node, message)
        found = self.graph.temporary()
        names = [found, *function.assigned]
        self.graph.add(Unpack(node, names, name_of(name, node)))
        return found

    def _callee(self, node: ast.Call) -> object:
        """The function that a call is of; MISSING if that is not known."""
        if isinstance(node.func, ast.Name) and node.func.id in self._source.inner:
            return self._source.inner[node.func.id]
        function = self.constant(node.func)
        if not isinstance(function, types.FunctionType):  # one may be said to wrap another
            function = getattr(function, "__ferryvm_function__", function)
        return replacement(function, len(node.args) + len(node.keywords)) or function

    def has_control(self, node: ast.expr) -> bool:
        """True if statements are needed for an expression."""
        for each in ast.walk(node):
            match each:
                case ast.BoolOp() | ast.IfExp() | ast.NamedExpr() | ast.ListComp():
                    return True
                case ast.GeneratorExp() | ast.Starred() | ast.Lambda():
                    return True
                case ast.Name() if self._is_undefined(each):
                    return True
                case ast.Compare():
                    if len(each.ops) > 1 or isinstance(each.ops[0], ast.In | ast.NotIn):
                        return True
                case ast.Call():
                    function = self._callee(each)
                    if creates(function) or is_index(function):
                        continue
                    is_extreme = function is min or function is max
                    if (
                        function is MISSING
                        or is_extreme
                        or function is list
                        or function is isinstance
                        or function is sorted
                        or function is print
                        or function is math.hypot
                        or (function in (len, type) and not _is_plain(each.args))
                        or isinstance(function, types.FunctionType | InnerFunction)
                    ):
                        return True
        return False


def _mark_condition(node: ast.expr) -> None:
    """State that only the boolean value of a comparison is used."""
    if isinstance(node, ast.Compare):
        node.is_condition = True  # type: ignore[attr-defined]  # see `sequence_comparison`


def _is_plain(nodes: Sequence[ast.expr]) -> bool:
    """True for names and constants, whose evaluation needs no statement."""
    return all(isinstance(node, ast.Name | ast.Constant) for node in nodes)


def _is_strict(node: ast.Call) -> bool:
    """True for a call of `zip` with `strict=True`."""
    values = {each.arg: each.value for each in node.keywords}
    strict = values.get("strict")
    return len(values) == 1 and isinstance(strict, ast.Constant) and strict.value is True
