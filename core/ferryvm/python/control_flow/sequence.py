# SPDX-License-Identifier: Apache-2.0
"""The lowering of what makes, sorts and extends lists: loops, and functions of `builtin_list`."""

from __future__ import annotations

import abc
import ast
import types
from collections.abc import Callable, Sequence
from typing import Any

from ferryvm.python.control_flow.builtin_call import BuiltinCalls
from ferryvm.python.control_flow.graph import Assign, Call, Known, Method, Unpack
from ferryvm.python.control_flow.graph_builder import like, name_of
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.hosted import builtin_list


class Sequences(BuiltinCalls):
    """The lowering of such expressions in one function."""

    @abc.abstractmethod
    def used_names(self, node: ast.expr) -> set[str]:
        """The variables that an expression uses, also through inner functions."""

    def rewritten(self, node: ast.Call, function: object) -> ast.expr | None:
        """The value of a call that other expressions stand for; None for others."""
        if function is sorted:
            return self._sorted(node)
        return super().rewritten(node, function)

    # --- sorting ----------------------------------------------------------------------------

    def _sorted(self, node: ast.Call) -> ast.expr:
        """A new list, which is sorted."""
        if len(node.args) != 1:
            raise NotCompilableError(node, "sorted takes one iterable, key= and reverse=")
        made = self.saved(self.listed(node, node.args[0]))
        self._sort(node, made)
        return made

    def sort(self, node: ast.Call, of: ast.expr) -> ast.expr:
        """The value of `list.sort`, which is None."""
        if node.args:
            raise NotCompilableError(node, "sort takes key= and reverse= by name")
        key = next((each.value for each in node.keywords if each.arg == "key"), None)
        if key is not None and self.used_names(key) & self.used_names(of):
            message = "the key of sort uses the list, which is empty while it runs; use sorted(xs)"
            raise NotCompilableError(node, message)
        name, _ = self.owned(self.value(of))
        self._sort(node, name_of(name, node))
        return Known(None, node)

    def _sort(self, node: ast.Call, of: ast.expr) -> None:
        self.uses_lists = True
        assert isinstance(of, ast.Name)
        given = {each.arg: each.value for each in node.keywords}
        key = given.pop("key", None)
        reverse = given.pop("reverse", None)
        if given:
            raise NotCompilableError(
                node, f"sort takes key= and reverse=, found {next(iter(given))}"
            )
        if isinstance(key, ast.Constant) and key.value is None:
            key = None
        backwards = self.saved(Known(False, node) if reverse is None else self.value(reverse))
        if key is None:
            unused = self.graph.temporary()
            self.graph.add(Method(node, unused, of.id, "sort", [backwards]))
            return
        item = self.graph.temporary()
        keys = self.graph.temporary()
        self.graph.add(Assign(node, keys, like(node, ast.List([], ast.Load()))))
        target = ast.copy_location(ast.Name(item, ast.Store()), node)
        again, over = self.begin_loop(of, target)
        measured = self.measured(key, name_of(item, node))
        self.graph.add(Method(node, self.graph.temporary(), keys, "append", [measured]))
        self.graph.jump(node, again)
        self.graph.block = over
        self._call_hosted(node, builtin_list.sort_by, [of, name_of(keys, node), backwards])

    def _call_hosted(
        self, node: ast.AST, function: Callable[..., Any], arguments: list[ast.expr]
    ) -> ast.expr:
        assert isinstance(function, types.FunctionType)
        name = self.graph.temporary()
        self.graph.add(Call(node, name, function, arguments))
        return name_of(name, node)

    # --- methods ----------------------------------------------------------------------------

    def owned(self, value: ast.expr) -> tuple[str, tuple[str, ...]]:
        """The variable with an object, and those with the lists in which it is an item."""
        owners: tuple[str, ...] = ()
        if isinstance(value, ast.Subscript) and not isinstance(value.slice, ast.Slice):
            name, others = self.owned(value.value)
            owners = (name, *others)
            value = like(value, ast.Subscript(name_of(name, value), value.slice, ast.Load()))
        found = value if isinstance(value, ast.Name) else self.saved(value)
        if not isinstance(found, ast.Name):  # a constant, or a tuple
            name = self.graph.temporary()
            self.graph.add(Assign(value, name, found))
            return name, owners
        return found.id, owners

    def extend(self, node: ast.Call, of: ast.expr) -> ast.expr:
        """The value of `list.extend` by what a generator expression gives."""
        name, _ = self.owned(self.value(of))
        item = self.graph.temporary()
        (generator,) = node.args
        assert isinstance(generator, ast.GeneratorExp)

        def append(value: ast.expr) -> None:
            self.graph.add(Assign(node, item, self.value(value)))
            unused = self.graph.temporary()
            self.graph.add(Method(node, unused, name, "append", [name_of(item, node)]))

        self.loops(generator, append)
        return Known(None, node)

    # --- unpacking and displays ---------------------------------------------------------------------------

    def unpack(self, node: ast.AST, targets: Sequence[ast.expr], value: ast.expr) -> None:
        """Assign the items of a value to targets, of which one may have a star."""
        starred = [n for n, each in enumerate(targets) if isinstance(each, ast.Starred)]
        if starred:
            self.uses_lists = True
        targets = [each.value if isinstance(each, ast.Starred) else each for each in targets]
        names = [
            each.id if isinstance(each, ast.Name) else self.graph.temporary() for each in targets
        ]
        self.graph.add(Unpack(node, names, self.saved(value), starred[0] if starred else None))
        for each, name in zip(targets, names, strict=True):
            if not isinstance(each, ast.Name):
                self.assign_to(node, each, name_of(name, each))

    def joined(self, node: ast.Tuple | ast.List) -> ast.expr:
        """A display with stars as a sum of displays."""
        parts: list[ast.expr] = []
        plain: list[ast.expr] = []

        def add() -> None:
            if plain:
                parts.append(like(node, type(node)([*plain], ast.Load())))
                plain.clear()

        for each in node.elts:
            if not isinstance(each, ast.Starred):
                plain.append(each)
                continue
            add()
            value = each.value
            if isinstance(node, ast.List):
                value = like(each, ast.Call(Known(list, each), [value], []))
            parts.append(value)
        add()
        found = parts[0]
        for part in parts[1:]:
            found = like(node, ast.BinOp(found, ast.Add(), part))
        return found


def has_star(node: ast.Tuple | ast.List) -> bool:
    """True for a display with a star."""
    return any(isinstance(each, ast.Starred) for each in node.elts)


def is_generated(node: ast.expr) -> bool:
    """True for a generator expression."""
    return isinstance(node, ast.GeneratorExp)
