# SPDX-License-Identifier: Apache-2.0
"""Versions for the kinds of items of lists, where items may have several kinds.

total += xs[i]       1. the item into a variable of the statement
                     2. for each kind: the statement again, in a version in which the item has it
"""

from __future__ import annotations

import ast
from collections.abc import Container
from typing import TYPE_CHECKING, Protocol

from ferryvm.python.codegen import either_code, list_code
from ferryvm.python.value.kind import Kind, List

if TYPE_CHECKING:
    from ferryvm.python.codegen.body import Body
    from ferryvm.python.compiled.barrier_version import BarrierVersions
    from ferryvm.python.control_flow.graph import Block


class _Go(Protocol):
    """Goes on at a statement of a block with variables of some kinds."""

    def __call__(
        self,
        node: ast.AST,
        block: Block,
        index: int,
        kinds: dict[str, Kind],
        items: Container[str] = (),
    ) -> None: ...


class ItemVersions:
    """Adds code that goes on by the kind of an item."""

    def __init__(self, body: Body, barriers: BarrierVersions, go: _Go) -> None:
        self._body, self._barriers, self._go = body, barriers, go

    def are_split(self, node: ast.AST, block: Block, index: int) -> bool:
        """True if code goes on at a statement in versions, for the kinds that a variable may have
        that the one before has assigned."""
        env = self._body.env
        for name in [name for name in env if name.startswith(either_code.PREFIX)]:
            del env[name]
        found = [name for name, kind in env.items() if either_code.has_either(kind)]
        if not found:
            return False
        name = found[0]

        def go(each: Kind) -> None:
            self._body.env = {**env, name: each}
            if not self.are_split(node, block, index):  # another variable
                self._go(node, block, index, self._body.env)

        self._barriers.splits()
        either_code.split(self._body, name, env[name], go)
        self._body.env = env
        return True

    def split(self, node: ast.AST, item: ast.Subscript, block: Block, index: int) -> bool:
        """Go on at a statement for each kind that an item of a list may have, which it takes."""
        body, name = self._body, either_code.name_of_item(item)
        of = body.kind(item.value)
        assert isinstance(of, List)
        assert of.item is not None
        list_code.item(body, item, body.slots(item.value)[0], of)
        for local in reversed(body.locals(name, of.item)):
            body.f.local_set(local)
        env = dict(body.env)
        items = {each for each in (*env, name) if each.startswith(either_code.PREFIX)}

        def go(each: Kind) -> None:
            self._go(node, block, index, {**env, name: each}, items)

        self._barriers.splits()
        either_code.split(body, name, of.item, go)
        return True
