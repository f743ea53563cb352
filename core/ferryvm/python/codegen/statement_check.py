# SPDX-License-Identifier: Apache-2.0
"""The check if a statement can be compiled for the kinds that its variables have, before any code."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ferryvm.python.codegen import list_code, method_code, unpacking
from ferryvm.python.control_flow.graph import (
    DeleteItem,
    Method,
    Statement,
    Store,
    Terminator,
    Unpack,
    expressions,
)
from ferryvm.python.definition.source import InnerFunction, Source
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.value.kind import List

if TYPE_CHECKING:
    from ferryvm.python.codegen.body import Body


def check(b: Body, step: Statement | Terminator) -> None:
    """Raise NotCompilableError for a statement that cannot be compiled."""
    for expression in expressions(step):
        if not isinstance(expression, ast.Slice):
            b.kind(expression)
    match step:
        case Unpack():
            unpacking.check(b, step)
        case DeleteItem():
            method_code.check_deletion(b, step)
        case Method():
            method_code.result_kind(b, step)
        case Store() if isinstance(kind := b.kind(step.array), List):
            list_code.check_store(b, step, kind)


def check_captured(b: Body, source: Source, step: Statement, function: InnerFunction) -> None:
    """Refuse a call of an inner function with a variable that has no value: it may not use it."""
    for name in sorted({*function.captured} & source.variables - b.env.keys()):
        message = f"{name!r}, which {function.name} uses, is not assigned on a path to here"
        raise NotCompilableError(step.node, message)


class Refusals:
    """Statements that cannot be compiled for some kinds of variables: CPython goes on there. One that
    cannot for any kinds is refused."""

    def __init__(self) -> None:
        self._refused: dict[tuple[int, int], NotCompilableError] = {}
        self.possible: set[tuple[int, int]] = set()
        """Statements that can be compiled for some kinds, by block and number."""

    def refuse(self, place: tuple[int, int], error: NotCompilableError) -> None:
        """State that a statement cannot be compiled for some kinds."""
        self._refused.setdefault(place, error)

    def finish(self) -> None:
        """Raise NotCompilableError for a statement that cannot be compiled."""
        for place, error in self._refused.items():
            if place not in self.possible:
                raise error
