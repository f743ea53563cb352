# SPDX-License-Identifier: Apache-2.0
"""Errors about Python functions that cannot be compiled."""

from __future__ import annotations

import ast

from ferryvm.errors import FerryError, Position
from ferryvm.python.kind import Kind, List, is_mixed


class UnsupportedError(FerryError):
    """A Python function uses what cannot be compiled; the message names line and construct, and says
    what to write instead."""

    def __init__(self, message: str, position: Position | None = None, name: str = "") -> None:
        self.position = position
        where = f"{position.file}:{position.line}: " if position is not None else ""
        self.reason = message
        self.place_and_reason = (
            f"{message} ({position.file}:{position.line})" if position else message
        )
        super().__init__(f"{where}{f'{name}: ' if name else ''}{message}")


class NotCompilableError(Exception):
    """A construct cannot be compiled, at a node of the syntax tree; becomes an UnsupportedError."""

    def __init__(self, node: ast.AST, message: str) -> None:
        self.node, self.message = node, message
        super().__init__(message)


class CalleeError(NotCompilableError):
    """A function cannot be compiled for the kinds of arguments of a call."""

    def __init__(self, node: ast.AST, refusal: UnsupportedError) -> None:
        self.refusal = refusal
        super().__init__(node, refusal.reason)


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


class EitherItemError(NotCompilableError):
    """The item of a list that an expression takes has one of several kinds."""

    def __init__(self, node: ast.Subscript) -> None:
        self.item = node
        super().__init__(node, "an item that may have several types")


class UnknownItemsError(NotCompilableError):
    """The kind of a list's items is not known: it is empty, unless another variable has the list."""
