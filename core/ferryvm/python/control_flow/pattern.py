# SPDX-License-Identifier: Apache-2.0
"""The patterns of `match` as conditions and assignments (Python Language Reference, section 8.6).

    match value:                    %1 = value
        case [0, *rest] if rest:    isinstance(%1, (list, tuple)) and len(%1) >= 1
            ...                     %2, %3 = unpacked; %2 == 0; rest = %3; rest
        case int(n):                isinstance(%1, int); n = %1
            ...

Kinds determine the tests of types, so code is made for the cases that a value can come to. Names
are assigned when a whole pattern has matched, before the guard.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ferryvm.python.control_flow.graph import Assign, Block, Known, Unpack
from ferryvm.python.control_flow.graph_builder import like, name_of
from ferryvm.python.fault import NotCompilableError

if TYPE_CHECKING:
    from ferryvm.python.control_flow.expression import Expressions

_PY_TPFLAGS_SEQUENCE = 1 << 5
"""A flag of types (CPython, Type Object Structures)."""

_Names = dict[str, ast.expr]

_SELF_MATCHING = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Types whose one pattern by position is that of the value itself."""


def match(
    expressions: Expressions, node: ast.Match, lower: Callable[[Sequence[ast.stmt]], None]
) -> None:
    """Add a statement to the graph; `lower`: adds those of a case. Raises NotCompilableError."""
    graph = expressions.graph
    value = expressions.value(node.subject)
    if isinstance(value, ast.Tuple):
        items = [_named(expressions, each) for each in value.elts]
        subject: ast.expr = like(value, ast.Tuple(items, ast.Load()))
    else:
        subject = _named(expressions, value)
    after = graph.new()
    for case in node.cases:
        others = graph.new()
        names = _Pattern(expressions, others).test(case.pattern, subject)
        for name, found in names.items():
            graph.add(Assign(case.pattern, name, found))
        if case.guard is not None:
            body = graph.new()
            expressions.condition(case.guard, body, others)
            graph.block = body
        lower(case.body)
        graph.jump(node, after)
        graph.block = others
    graph.jump(node, after)
    graph.block = after


def _named(expressions: Expressions, value: ast.expr) -> ast.expr:
    """A value in a temporary variable, so that its kind is that of a name."""
    if isinstance(value, ast.Name) and value.id.startswith("%"):
        return value
    name = expressions.graph.temporary()
    expressions.graph.add(Assign(value, name, value))
    return name_of(name, value)


class _Pattern:
    """The test of one pattern, which goes on at a block where it does not match."""

    def __init__(self, expressions: Expressions, otherwise: Block) -> None:
        self._expressions, self._graph = expressions, expressions.graph
        self._otherwise = otherwise

    def test(self, node: ast.pattern, value: ast.expr) -> _Names:
        """Add the test of a pattern against a value, a variable or a tuple of them; the names that
        it assigns. Raises NotCompilableError."""
        match node:
            case ast.MatchAs():
                names = {} if node.pattern is None else self.test(node.pattern, value)
                return names if node.name is None else {**names, node.name: value}
            case ast.MatchValue():
                self._check(ast.Compare(value, [ast.Eq()], [node.value]), node)
                return {}
            case ast.MatchSingleton(value=None):
                self._check(ast.Compare(value, [ast.Is()], [Known(None, node)]), node)
                return {}
            case ast.MatchSingleton():
                self._check(_is_of(value, bool), node)
                self._check(value if node.value else ast.UnaryOp(ast.Not(), value), node)
                return {}
            case ast.MatchSequence():
                return self._items(node, value)
            case ast.MatchOr():
                return self._alternatives(node, value)
            case ast.MatchClass():
                return self._class(node, value)
            case ast.MatchMapping():
                raise NotCompilableError(node, "cannot compile a pattern of a mapping")
        raise NotCompilableError(node, f"cannot compile the pattern {type(node).__name__}")

    def _check(self, condition: ast.expr, node: ast.AST) -> None:
        yes = self._graph.new()
        condition = ast.fix_missing_locations(ast.copy_location(condition, node))
        self._expressions.condition(condition, yes, self._otherwise)
        self._graph.block = yes

    def _items(self, node: ast.MatchSequence, value: ast.expr) -> _Names:
        patterns = node.patterns
        stars = [n for n, each in enumerate(patterns) if isinstance(each, ast.MatchStar)]
        star = stars[0] if stars else None
        count = len(patterns) - len(stars)
        if isinstance(value, ast.Tuple) and star is None:
            if len(value.elts) != count:
                self._check(Known(False, node), node)
                return {}
            return self._all(patterns, value.elts)
        value = _named(self._expressions, value)
        self._check(_is_of(value, _sequences()), node)
        length = ast.Call(Known(len, node), [value], [])
        op = ast.Eq() if star is None else ast.GtE()
        self._check(ast.Compare(length, [op], [ast.Constant(count)]), node)
        if all(map(_is_wildcard, patterns)):
            return {}  # wildcards alone
        if star is not None and patterns[star].name is None:  # type: ignore[attr-defined]  # a star
            return self._ends(patterns, star, value)
        self._expressions.uses_lists |= star is not None
        names = [self._graph.temporary() for _ in patterns]
        self._graph.add(Unpack(node, names, value, star))
        return self._all(patterns, [name_of(name, node) for name in names])

    def _ends(self, patterns: Sequence[ast.pattern], star: int, value: ast.expr) -> _Names:
        """The patterns before and behind a star without a name."""
        places = [*range(star), *range(star + 1 - len(patterns), 0)]
        others = [each for each in patterns if not isinstance(each, ast.MatchStar)]
        names: _Names = {}
        for place, pattern in zip(places, others, strict=True):
            if not _is_wildcard(pattern):
                index = like(pattern, ast.Constant(place))
                item = like(pattern, ast.Subscript(value, index, ast.Load()))
                names |= self.test(pattern, _named(self._expressions, item))
        return names

    def _all(self, patterns: Sequence[ast.pattern], values: Sequence[ast.expr]) -> _Names:
        names: _Names = {}
        for pattern, value in zip(patterns, values, strict=True):
            if isinstance(pattern, ast.MatchStar):
                names |= {} if pattern.name is None else {pattern.name: value}
            else:
                names |= self.test(pattern, value)
        return names

    def _alternatives(self, node: ast.MatchOr, value: ast.expr) -> _Names:
        """The first of some patterns that matches; all of them assign the same names."""
        found, over = dict[str, str](), self._graph.new()
        for pattern in node.patterns:
            is_last = pattern is node.patterns[-1]
            others = self._otherwise if is_last else self._graph.new()
            names = _Pattern(self._expressions, others).test(pattern, value)
            for name, part in names.items():
                saved = found.setdefault(name, self._graph.temporary())
                self._graph.add(Assign(pattern, saved, part))
            self._graph.jump(pattern, over)
            self._graph.block = others
        self._graph.block = over
        return {name: name_of(saved, node) for name, saved in found.items()}

    def _class(self, node: ast.MatchClass, value: ast.expr) -> _Names:
        class_ = self._expressions.constant(node.cls)
        if not isinstance(class_, type):
            raise NotCompilableError(node.cls, "a pattern with arguments takes a type")
        value = _named(self._expressions, value)
        self._check(_is_of(value, class_), node)
        names: _Names = {}
        if node.patterns:
            if len(node.patterns) > 1 or class_ not in _SELF_MATCHING:
                message = f"cannot compile patterns by position of {class_.__name__}; name each"
                raise NotCompilableError(node, message)
            names = self.test(node.patterns[0], value)
        for name, pattern in zip(node.kwd_attrs, node.kwd_patterns, strict=True):
            part = like(pattern, ast.Attribute(value, name, ast.Load()))
            names |= self.test(pattern, _named(self._expressions, self._expressions.value(part)))
        return names


def _sequences() -> tuple[type, ...]:
    """The types that CPython takes for sequences here: arrays, once a library has registered
    them."""
    known = (list, tuple, range, np.ndarray)
    return tuple(each for each in known if each.__flags__ & _PY_TPFLAGS_SEQUENCE)


def _is_wildcard(node: ast.pattern) -> bool:
    return isinstance(node, ast.MatchAs) and node.pattern is None and node.name is None


def _is_of(value: ast.expr, types: type | tuple[type, ...]) -> ast.expr:
    return ast.Call(Known(isinstance, value), [value, Known(types, value)], [])
