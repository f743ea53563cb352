# SPDX-License-Identifier: Apache-2.0
"""Errors about lists that get items of another kind."""

from __future__ import annotations

import ast

from ferryvm.python.fault import NotCompilableError
from ferryvm.python.value.kind import Kind, List, is_mixed


class MixedItemsError(NotCompilableError):
    """A list gets an item of another kind than its items have."""

    def __init__(
        self, node: ast.AST, message: str, item: Kind, other: Kind, are_lists: bool
    ) -> None:
        """`are_lists`: it gets the items of a list, or is one with it."""
        self.item, self.other, self.are_lists = item, other, are_lists
        super().__init__(node, message)


def misfit(
    node: ast.AST, message: str, item: Kind | None, other: Kind | None, are_lists: bool = False
) -> NotCompilableError:
    """The error where a list of items of one kind gets one of another kind."""
    while isinstance(item, List) and isinstance(other, List):
        item, other, are_lists = item.item, other.item, True
    if item is not None and other is not None and is_mixed(item) and is_mixed(other):
        return MixedItemsError(node, message, item, other, are_lists)
    return NotCompilableError(node, message)
