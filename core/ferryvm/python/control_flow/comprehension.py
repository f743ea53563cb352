# SPDX-License-Identifier: Apache-2.0
"""Comprehensions and generator expressions in a control-flow graph: loops, whose variables have
names of their own."""

from __future__ import annotations

import abc
import ast
from collections.abc import Callable, Sequence

from ferryvm.python.control_flow.graph import Assign, Block, Known, Method
from ferryvm.python.control_flow.graph_builder import GraphBuilder, like, name_of, renamed
from ferryvm.python.fault import NotCompilableError


class Comprehensions(abc.ABC):
    """The lowering of the comprehensions of one function."""

    def __init__(self, graph: GraphBuilder) -> None:
        self.graph = graph
        self.uses_lists = False
        """True if the function makes lists."""
        self._comprehensions = 0

    @abc.abstractmethod
    def value(self, node: ast.expr) -> ast.expr:
        """An expression without control flow that has the value of another one."""

    @abc.abstractmethod
    def saved(self, value: ast.expr) -> ast.expr:
        """A value in a temporary variable, unless it cannot change."""

    @abc.abstractmethod
    def constant(self, node: ast.expr) -> object:
        """The value of a free name, or of an attribute of a module; MISSING for others."""

    @abc.abstractmethod
    def condition(self, node: ast.expr, yes: Block, no: Block) -> None:
        """Go on at a block by the boolean value of an expression."""

    @abc.abstractmethod
    def assign_to(self, node: ast.AST, target: ast.expr, value: ast.expr) -> None:
        """Assign a value to a target."""

    @abc.abstractmethod
    def begin_loop(self, iterable: ast.expr, target: ast.expr) -> tuple[Block, Block]:
        """Begin the body of a loop over an iterable: the head of the loop, and the block after
        it."""

    def comprehension(self, node: ast.ListComp) -> ast.expr:
        """The list that a comprehension makes."""
        self.uses_lists = True
        name = self.graph.temporary()
        self.graph.add(Assign(node, name, like(node, ast.List([], ast.Load()))))

        def append(item: ast.expr) -> None:
            value = self.value(item)
            unused = self.graph.temporary()
            self.graph.add(Method(node.elt, unused, name, "append", [value]))

        self.loops(node, append)
        return name_of(name, node)

    def listed(self, node: ast.AST, of: ast.expr) -> ast.expr:
        """A new list of the items of an iterable."""
        target, item = name_of("%item", node), name_of("%item", node)
        each = ast.comprehension(target, of, [], 0)
        return self.comprehension(like(node, ast.ListComp(item, [each])))

    def any_or_all(self, node: ast.GeneratorExp, is_any: bool) -> ast.expr:
        """The value of `any` or `all` of a generator expression; the first item that decides is the
        last one that is evaluated."""
        name, after = self.graph.temporary(), self.graph.new()
        self.graph.add(Assign(node, name, Known(not is_any, node)))

        def decide(item: ast.expr) -> None:
            decided, rest = self.graph.new(), self.graph.new()
            self.condition(item, *((decided, rest) if is_any else (rest, decided)))
            self.graph.block = decided
            self.graph.add(Assign(node, name, Known(is_any, node)))
            self.graph.jump(node, after)
            self.graph.block = rest

        self.loops(node, decide)
        self.graph.jump(node, after)
        self.graph.block = after
        return name_of(name, node)

    def loops(
        self, node: ast.ListComp | ast.GeneratorExp, body: Callable[[ast.expr], None]
    ) -> None:
        """The loops of a comprehension around what is done with each item."""
        names = self._own_names(node)
        first = node.generators[0]

        def nest(generators: Sequence[ast.comprehension]) -> None:
            if not generators:
                body(renamed(node.elt, names))
                return
            generator, *others = generators
            if generator.is_async:
                raise NotCompilableError(node, "cannot compile async")
            iterable = renamed(generator.iter, {} if generator is first else names)
            again, over = self.begin_loop(iterable, renamed(generator.target, names))
            for test in generator.ifs:
                passed = self.graph.new()
                self.condition(renamed(test, names), passed, again)
                self.graph.block = passed
            nest(others)
            self.graph.jump(node, again)
            self.graph.block = over

        nest(node.generators)

    def _own_names(self, node: ast.ListComp | ast.GeneratorExp) -> dict[str, str]:
        """Names that nothing else has for the variables of a comprehension."""
        self._comprehensions += 1
        return {
            each.id: f"%{each.id} {self._comprehensions}"
            for generator in node.generators
            for each in ast.walk(generator.target)
            if isinstance(each, ast.Name)
        }

    def begin_generated(self, node: ast.GeneratorExp, target: ast.expr) -> tuple[Block, Block]:
        """Begin a loop over what a generator expression gives: as `begin_loop`."""
        names = self._own_names(node)
        first: tuple[Block, Block] | None = None
        again: Block | None = None
        for generator in node.generators:
            if generator.is_async:
                raise NotCompilableError(node, "cannot compile async")
            iterable = renamed(generator.iter, names if first else {})
            head, over = self.begin_loop(iterable, renamed(generator.target, names))
            if again is not None:
                inside, self.graph.block = self.graph.block, over
                self.graph.jump(node, again)
                self.graph.block = inside
            for test in generator.ifs:
                passed = self.graph.new()
                self.condition(renamed(test, names), passed, head)
                self.graph.block = passed
            first, again = first or (head, over), head
        assert first is not None
        assert again is not None
        self.assign_to(target, target, self.value(renamed(node.elt, names)))
        return again, first[1]

    def generator_of(self, node: ast.expr) -> ast.GeneratorExp | None:
        """A generator expression, or the one that a call of `map` or `filter` stands for; None for
        others."""
        if isinstance(node, ast.GeneratorExp):
            return node
        function = self.constant(node.func) if isinstance(node, ast.Call) else None
        if not isinstance(node, ast.Call) or (function is not map and function is not filter):
            return None
        return self._mapped(node, function is map)

    def _mapped(self, node: ast.Call, is_map: bool) -> ast.GeneratorExp:
        of, *iterables = node.args or [node]
        if node.keywords or not iterables or (len(iterables) > 1 and not is_map):
            name = "map" if is_map else "filter"
            raise NotCompilableError(node, f"{name} takes a function and what it is called for")
        if not isinstance(of, ast.Lambda | ast.Constant):
            of = self.saved(self.value(of))
        name = f"%given {self._comprehensions}"
        items = [f"%{number} of {name}" for number in range(len(iterables))]
        values: list[ast.expr] = [name_of(each, node) for each in items]
        stores: list[ast.expr] = [like(node, ast.Name(each, ast.Store())) for each in items]
        iterable, target = iterables[0], stores[0]
        if len(iterables) > 1:
            iterable = like(node, ast.Call(Known(zip, node), iterables, []))
            target = like(node, ast.Tuple(stores, ast.Store()))
        call: ast.expr = like(node, ast.Call(of, values, []))
        tests: list[ast.expr] = []
        if not is_map:
            tests = [values[0] if isinstance(of, ast.Constant) and of.value is None else call]
            call = values[0]
        return like(node, ast.GeneratorExp(call, [ast.comprehension(target, iterable, tests, 0)]))
