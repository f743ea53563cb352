# SPDX-License-Identifier: Apache-2.0
"""Code of barriers, operations of groups, and launches of kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferryvm.python.codegen import group_operation_code
from ferryvm.python.control_flow.graph import Barrier, Call, GroupOperation, Launch, Statement
from ferryvm.python.control_flow.kernel_source import KernelFunction, needs_item
from ferryvm.python.hosted.work_item import is_waiting_function
from ferryvm.python.value.kind import INT

if TYPE_CHECKING:
    from ferryvm.python.codegen.code import Code, Functions


def is_waiting(statement: Statement) -> bool:
    """True for a barrier, and for a call of a function that may wait."""
    if isinstance(statement, Call) and isinstance(statement.function, KernelFunction):
        return needs_item(statement.function.function, is_waiting_function)
    return isinstance(statement, Barrier | GroupOperation)


def emit(b: Code, statement: Barrier | GroupOperation | Launch, functions: Functions) -> None:
    """Add the code of a statement."""
    b.has_effect()
    if isinstance(statement, Barrier):
        b.f.barrier()
        return
    if isinstance(statement, GroupOperation):
        element = group_operation_code.prepare(b, statement)
        group_operation_code.perform(b, statement, element)
        b.env[statement.name] = element
        return
    sizes, arguments = statement.sizes, statement.arguments
    kinds = (*(INT for _ in sizes), *map(b.kind, arguments))
    found = functions.compiled(statement.function, kinds, frozenset(), None, statement.node)
    for each in (*arguments, *sizes):
        b.push(each)
    b.at(statement.node)
    b.f.launch(found.function, len(sizes))
