# SPDX-License-Identifier: Apache-2.0
"""Calls of built-in functions for which other expressions, or loops, stand: `min` with a key,
generator expressions, `math.hypot` of several numbers."""

from __future__ import annotations

import abc
import ast
import math
import operator
import types
from collections.abc import Sequence

from ferryvm.python.control_flow.comprehension import Comprehensions
from ferryvm.python.control_flow.graph import Assign, Branch, Call, Host, Known, Raise
from ferryvm.python.control_flow.graph_builder import like, name_of, renamed
from ferryvm.python.fault import NO_DICT, NO_SET, NotCompilableError
from ferryvm.python.hosted.number_function import METHODS, norm


def _message_of_empty(name: str) -> str:
    """The message of `min` or `max` of nothing in this Python."""
    nothing: list[int] = []
    try:
        return str({"min": min, "max": max}[name](nothing))
    except ValueError as error:
        return str(error)


_EMPTY = {name: _message_of_empty(name) for name in ("min", "max")}
_METHOD_HINTS = {
    "hex": "; a text cannot be made, print the number",
    "as_integer_ratio": "; write math.frexp(x)",
    "fromhex": "; write the number",
    "item": "; write int(x) or float(x)",
    "astype": "; write a type of NumPy, such as numpy.float32(x)",
    "sum": "; write sum(xs)",
    "mean": "; write sum(xs) / len(xs)",
    "min": "; write min(xs)",
    "max": "; write max(xs)",
    "split": "; loop over the characters, or split the text in the caller, and pass the numbers",
    "format": "; print(f'{x}') prints, and so does raise ValueError(f'{x}')",
    "tolist": "; write list(xs)",
    "__getitem__": "; write lambda i: xs[i]",
    **dict.fromkeys(("reshape", "ravel", "flatten", "transpose"), "; do that in the caller"),
    **dict.fromkeys(("dot", "std", "var", "cumsum", "round", "clip", "sort"), "; write a loop"),
    **dict.fromkeys(("any", "all"), "; write it as a function"),
    **dict.fromkeys(
        ("argmax", "argmin"), "; write max(range(len(xs)), key=lambda i: xs[i]), or min"
    ),
    **dict.fromkeys(
        ("get", "items", "keys", "values", "setdefault", "update"), f" of a dict{NO_DICT}"
    ),
    **dict.fromkeys(("add", "discard", "union", "intersection"), f" of a set{NO_SET}"),
}
"""Code that does what a method would, by the names of methods."""
_PARSED = (float, int, complex)
_OPERATORS: dict[object, type[ast.operator]] = {
    pow: ast.Pow,
    operator.add: ast.Add,
    operator.sub: ast.Sub,
    operator.mul: ast.Mult,
    operator.truediv: ast.Div,
    operator.floordiv: ast.FloorDiv,
    operator.mod: ast.Mod,
    operator.pow: ast.Pow,
    operator.and_: ast.BitAnd,
    operator.or_: ast.BitOr,
    operator.xor: ast.BitXor,
    operator.lshift: ast.LShift,
    operator.rshift: ast.RShift,
}
"""Functions of two values that do what an operator does."""
_OF_ITEMS = (sum, min, max, math.prod, math.fsum)


class BuiltinCalls(Comprehensions):
    """The lowering of such calls in one function."""

    @abc.abstractmethod
    def evaluated(self, value: ast.expr) -> ast.expr:
        """A value of which code may use the kind alone: what may raise is in variables."""

    @abc.abstractmethod
    def values(self, nodes: Sequence[ast.expr]) -> list[ast.expr]:
        """The values of expressions that are evaluated in this order."""

    def rewritten(self, node: ast.Call, function: object) -> ast.expr | None:
        """The value of a call that other expressions stand for; None for others."""
        first = node.args[0] if node.args else None
        generator = None if first is None or len(node.args) > 2 else self.generator_of(first)
        if generator is not None and (
            isinstance(first, ast.GeneratorExp) or _takes_items(function)
        ):
            return self._generated(node, generator, function)
        if function is min or function is max:
            return self._extreme(node, function is min)
        if (
            any(function is each for each in _PARSED)
            and isinstance(first, ast.Constant)
            and isinstance(first.value, str)
        ):
            return self._parsed(node, function)
        if function is list and first is not None and len(node.args) == 1:
            return self.listed(node, first)
        if node.keywords:
            return None
        if function is isinstance and len(node.args) == 2:
            types_ = Known(self._types(node.args[1]), node)
            value = self.evaluated(self.value(node.args[0]))
            return like(node, ast.Call(Known(isinstance, node.func), [value, types_], []))
        if isinstance(function, types.BuiltinFunctionType) and len(node.args) == 2:
            symbol = _OPERATORS.get(function)
            if symbol is not None:
                return self.value(like(node, ast.BinOp(node.args[0], symbol(), node.args[1])))
        if function is math.hypot:
            name = self.graph.temporary()
            assert isinstance(norm, types.FunctionType)
            coordinates = self.value(like(node, ast.Tuple(node.args, ast.Load())))
            self.graph.add(Call(node, name, norm, [coordinates]))
            return name_of(name, node)
        if (function is math.gcd or function is math.lcm) and len(node.args) != 2:
            return self.value(_folded(node, 0 if function is math.gcd else 1))
        return None

    def _types(self, node: ast.expr) -> tuple[type, ...]:
        """The types that the second argument of `isinstance` names."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return self._types(node.left) + self._types(node.right)
        if isinstance(node, ast.Tuple):
            return tuple(each for item in node.elts for each in self._types(item))
        found = self.constant(node)
        if isinstance(found, type):
            return (found,)
        if found is None or (isinstance(node, ast.Constant) and node.value is None):
            return (type(None),)
        args = found if isinstance(found, tuple) else getattr(found, "__args__", ())
        if args and all(isinstance(each, type) for each in args):
            return tuple(args)
        raise NotCompilableError(node, "isinstance takes types, such as (int, float)")

    def _parsed(self, node: ast.Call, function: object) -> ast.expr:
        """A number of a text that is written out."""
        if not all(isinstance(each, ast.Constant) for each in node.args):
            raise NotCompilableError(node, "texts are not parsed; pass the number")
        arguments = [getattr(each, "value", None) for each in node.args]
        try:
            return like(node, ast.Constant(function(*arguments)))  # type: ignore[operator]  # a type
        except (TypeError, ValueError) as error:
            raise NotCompilableError(node, str(error)) from None

    def _generated(self, node: ast.Call, of: ast.GeneratorExp, function: object) -> ast.expr:
        """The value of a function of the items of a generator expression."""
        if function is any or function is all:
            return self.any_or_all(of, function is any)
        items = like(of, ast.ListComp(of.elt, of.generators))
        if function is list:
            return self.comprehension(items)
        if all(function is not each for each in _OF_ITEMS):
            raise NotCompilableError(of, "cannot compile a generator expression here; write a loop")
        return self.value(like(node, ast.Call(node.func, [items, *node.args[1:]], node.keywords)))

    # --- print ------------------------------------------------------------------------------

    def printed(self, node: ast.Call) -> ast.expr:
        """A call that CPython makes, with the values of the variables in its arguments."""
        values = self.values([*node.args, *(each.value for each in node.keywords)])
        count = len(node.args)
        keywords = [
            ast.keyword(each.arg, value)
            for each, value in zip(node.keywords, values[count:], strict=True)
        ]
        call = like(node, ast.Call(Known(print, node), values[:count], keywords))
        self.graph.add(Host(node, like(node, ast.Expr(call))))
        return Known(None, node)

    # --- min and max ------------------------------------------------------------------------

    def _extreme(self, node: ast.Call, is_min: bool) -> ast.expr | None:
        """The value of `min` or `max` of several values, or with a key, or a default; None for that
        of the items of one value alone."""
        given = {each.arg: each.value for each in node.keywords}
        key, default = given.pop("key", None), given.pop("default", None)
        if given or not node.args or (default is not None and len(node.args) > 1):
            name = "min" if is_min else "max"
            raise NotCompilableError(
                node, f"{name} takes values, key, and default for one iterable"
            )
        if isinstance(key, ast.Constant) and key.value is None:
            key = None
        if len(node.args) > 1:
            return self._extreme_of_values(node, is_min, key)
        if key is None and default is None:
            return None
        return self._extreme_of_items(node, is_min, key, default)

    def _extreme_of_values(self, node: ast.Call, is_min: bool, key: ast.expr | None) -> ast.expr:
        """The first value, and each that is less, or greater."""
        values = [self.saved(value) for value in self.values(node.args)]
        best, measure = self.graph.temporary(), self.graph.temporary()
        for number, value in enumerate(values):
            measured = self.measured(key, value)
            if number:
                better, after = self.graph.new(), self.graph.new()
                self._compare(node, is_min, measured, name_of(measure, node), better, after)
                self.graph.block = better
            self.graph.add(Assign(node, best, value))
            self.graph.add(Assign(node, measure, measured))
            if number:
                self.graph.jump(node, after)
                self.graph.block = after
        return name_of(best, node)

    def _extreme_of_items(
        self, node: ast.Call, is_min: bool, key: ast.expr | None, default: ast.expr | None
    ) -> ast.expr:
        """The item whose measure is the least, or greatest; the first one of several."""
        iterable = node.args[0]
        if default is not None:
            iterable, default = (self.saved(each) for each in self.values([iterable, default]))
        best, measure, item = (self.graph.temporary() for _ in range(3))
        for name in (best, measure):
            self.graph.add(Assign(node, name, Known(None, node)))
        again, over = self.begin_loop(
            iterable, ast.copy_location(ast.Name(item, ast.Store()), node)
        )
        measured = self.measured(key, name_of(item, node))
        others, better = self.graph.new(), self.graph.new()
        self._branch_on_none(node, measure, better, others)
        self.graph.block = others
        self._compare(node, is_min, measured, name_of(measure, node), better, again)
        self.graph.block = better
        self.graph.add(Assign(node, best, name_of(item, node)))
        self.graph.add(Assign(node, measure, measured))
        self.graph.jump(node, again)
        self.graph.block = over
        empty, after = self.graph.new(), self.graph.new()
        self._branch_on_none(node, measure, empty, after)
        self.graph.block = empty
        if default is None:
            message = Known(_EMPTY["min" if is_min else "max"], node)
            error = ast.Call(Known(ValueError, node), [message], [])
            self.graph.end(Raise(node, ValueError, like(node, error)))
        else:
            self.graph.add(Assign(node, best, default))
            self.graph.jump(node, after)
        self.graph.block = after
        return name_of(best, node)

    def measured(self, key: ast.expr | None, value: ast.expr) -> ast.expr:
        """The value of a key for an item, which is a variable."""
        if key is None:
            return value
        if not isinstance(key, ast.Lambda):
            return self.saved(self.value(like(key, ast.Call(key, [value], []))))
        if len(key.args.args) != 1 or not isinstance(value, ast.Name):
            raise NotCompilableError(key, "a key is a function of one argument")
        return self.saved(self.value(renamed(key.body, {key.args.args[0].arg: value.id})))

    def _compare(
        self,
        node: ast.Call,
        is_min: bool,
        one: ast.expr,
        other: ast.expr,
        better: object,
        otherwise: object,
    ) -> None:
        test = ast.Compare(one, [ast.Lt() if is_min else ast.Gt()], [other])
        self.graph.end(Branch(node, like(node, test), better, otherwise))  # type: ignore[arg-type]  # blocks

    def _branch_on_none(self, node: ast.AST, name: str, yes: object, no: object) -> None:
        """Go on by the test if there is no item yet, which kinds determine."""
        test = ast.Compare(name_of(name, node), [ast.Is()], [Known(None, node)])
        self.graph.end(Branch(node, ast.copy_location(test, node), yes, no))  # type: ignore[arg-type]  # blocks


def _takes_items(function: object) -> bool:
    """True for a function of one iterable."""
    return any(function is each for each in (*_OF_ITEMS, any, all, list))


def _folded(node: ast.Call, neutral: int) -> ast.expr:
    """Calls of two arguments for one of any number."""
    found: ast.expr = like(node, ast.Constant(neutral))
    for argument in node.args:
        found = like(node, ast.Call(node.func, [found, argument], []))
    return found


def folded(node: ast.BinOp) -> ast.expr:
    """A complex number that is written out, as 1 + 2j; other expressions as they are."""
    left, right = (getattr(each, "value", None) for each in (node.left, node.right))
    is_sum = isinstance(node.op, ast.Add | ast.Sub) and isinstance(node.right, ast.Constant)
    if not is_sum or not isinstance(node.left, ast.Constant) or type(right) is not complex:
        return node
    if not isinstance(left, int | float) or isinstance(left, bool):
        return node
    value = left + right if isinstance(node.op, ast.Add) else left - right
    return like(node, ast.Constant(value))


def missing_method(name: str) -> str:
    """The error for a method that cannot be compiled."""
    return f"cannot compile the method {name!r}{_METHOD_HINTS.get(name, '')}"


def as_function(node: ast.Call) -> ast.Call:
    """The call of a method of a number as one of a function; other calls as they are."""
    of = node.func
    if not isinstance(of, ast.Attribute) or of.attr not in METHODS or node.keywords:
        return node
    method = Known(METHODS[of.attr], of)
    return like(node, ast.Call(method, [of.value, *node.args], []))
