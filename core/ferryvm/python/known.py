# SPDX-License-Identifier: Apache-2.0
"""Integers that are written out in a function, or are values of free names."""

from __future__ import annotations

import ast

from ferryvm.python.graph import Known


def known_integer(node: ast.expr) -> int | None:
    """The value of an expression that is an integer constant; None for others."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = known_integer(node.operand)
        return None if inner is None else -inner
    value = node.value if isinstance(node, ast.Constant | Known) else None
    return value if type(value) is int else None
