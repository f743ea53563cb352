# SPDX-License-Identifier: Apache-2.0
"""Statements that a program leaves to CPython while it runs, as host functions: `print`."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ferryvm.machine.host import HostFunction
from ferryvm.program import Signature
from ferryvm.python.control_flow.statement import Statements
from ferryvm.python.definition.raised import StatementError
from ferryvm.python.definition.source import Source
from ferryvm.python.value.kind import Kind
from ferryvm.python.value.result import value_of


def executing(
    name: str, source: Source, statement: ast.stmt, names: Sequence[str], kinds: Sequence[Kind]
) -> HostFunction:
    """The host function that executes a statement; its arguments are the slots of the variables
    that the statement reads."""
    statements = Statements(source)
    code = statements.compiled(statement)

    def execute(*values: object) -> None:
        variables, start = {}, 0
        for variable, kind in zip(names, kinds, strict=True):
            end = start + len(kind.slots)
            variables[variable] = value_of(kind, values[start:end])
            start = end
        try:
            exec(code, statements.known, variables)  # noqa: S102  # the user's own statement
        except BaseException as error:  # noqa: BLE001  # raised again
            trace = error.__traceback__ and error.__traceback__.tb_next
            error.__traceback__ = trace and trace.tb_next  # CPython goes on in that line
            raise StatementError(error) from None

    slots = tuple(slot for kind in kinds for slot in kind.slots)
    return HostFunction(name, Signature(slots), execute, "a statement of a Python function")
