# SPDX-License-Identifier: Apache-2.0
"""Code of barriers and launches of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferryvm.python.graph import Barrier, Launch
from ferryvm.python.kind import INT

if TYPE_CHECKING:
    from ferryvm.python.code import Code, Functions


def emit(b: Code, statement: Barrier | Launch, functions: Functions) -> None:
    """Add the code of a statement."""
    b.has_effect()
    if isinstance(statement, Barrier):
        b.f.barrier()
        return
    sizes, arguments = statement.sizes, statement.arguments
    kinds = (*(INT for _ in sizes), *map(b.kind, arguments))
    found = functions.compiled(statement.function, kinds, frozenset(), None, statement.node)
    for each in (*arguments, *sizes):
        b.push(each)
    b.at(statement.node)
    b.f.launch(found.function, len(sizes))
