# SPDX-License-Identifier: Apache-2.0
"""Errors about Python functions that cannot be compiled."""

from __future__ import annotations

import ast

from ferryvm.errors import FerryError, Position

NO_DICT = "; number its keys, and write a list or an array with the values by number"
NO_SET = "; write a list of bools by item, or compare neighbours in sorted(xs)"
"""Advice in the place of dicts and sets."""
NO_ARRAY = "; write a loop over the elements, or map a function by ferryvm.map"
"""Advice in the place of operators on whole arrays."""


class UnsupportedError(FerryError):
    """A Python function uses what cannot be compiled; the message names line and construct, and
    says what to write instead."""

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


class LargeIntegerError(NotCompilableError):
    """An integer that is written out does not fit into 64 bits: CPython goes on there."""


class EitherItemError(NotCompilableError):
    """The item of a list that an expression takes has one of several kinds."""

    def __init__(self, node: ast.Subscript) -> None:
        self.item = node
        super().__init__(node, "an item that may have several types")


class UnknownItemsError(NotCompilableError):
    """The kind of a list's items is not known: it is empty, unless another variable has the
    list."""
