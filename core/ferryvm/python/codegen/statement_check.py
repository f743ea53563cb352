# SPDX-License-Identifier: Apache-2.0
"""The check if a statement can be compiled for the kinds that its variables have, before any
code."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from ferryvm.python.codegen import function_value, list_code, method_code, unpacking
from ferryvm.python.control_flow.graph import (
    DeleteItem,
    Method,
    Statement,
    Store,
    Terminator,
    Unpack,
    expressions,
    needs,
)
from ferryvm.python.definition.site import UNASSIGNED
from ferryvm.python.definition.source import Source
from ferryvm.python.fault import NotCompilableError
from ferryvm.python.value.kind import List

if TYPE_CHECKING:
    from ferryvm.python.codegen.body import Body


def check(b: Body, step: Statement | Terminator) -> None:
    """Raise NotCompilableError for a statement that cannot be compiled."""
    for expression in expressions(step):
        indices = expression.elts if _has_slices(expression) else [expression]
        for each in indices:
            if not isinstance(each, ast.Slice):
                b.kind(each)
    function_value.check_uses(b, step)
    match step:
        case Unpack():
            unpacking.check(b, step)
        case DeleteItem():
            method_code.check_deletion(b, step)
        case Method():
            method_code.result_kind(b, step)
        case Store() if isinstance(kind := b.kind(step.array), List):
            list_code.check_store(b, step, kind)


def _has_slices(node: ast.expr) -> TypeGuard[ast.Tuple]:
    """True for indices of several axes with slices among them."""
    return isinstance(node, ast.Tuple) and any(isinstance(each, ast.Slice) for each in node.elts)


def is_unassigned(b: Body, source: Source, step: Statement | Terminator) -> bool:
    """True if a variable that a statement reads has no value here, which raises an exception."""
    missing = (needs(step) & source.variables) - b.env.keys()
    for name in sorted(missing)[:1]:
        b.throw(step.node, UnboundLocalError, UNASSIGNED.format(name))
    return bool(missing)


class Refusals:
    """Statements that cannot be compiled for some kinds of variables: CPython goes on there. One
    that cannot for any kinds is refused."""

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
