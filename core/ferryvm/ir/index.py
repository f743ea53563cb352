# SPDX-License-Identifier: Apache-2.0
"""Indices that count from the end where they are negative, as in Python.

x + select(x < 0, length, 0)        the index x, where that is not negative
"""

from __future__ import annotations

from ferryvm.ir.graph import Constant, Operation, Value
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64


def plain_index(value: Value) -> Value:
    """The index that a value equals where it is not negative; other values themselves."""
    found = from_end(value)
    return value if found is None else found[0]


def from_end(value: Value) -> tuple[Value, Operation] | None:
    """The index, and the selection of what is added to it where it is negative; None for a value of
    another form."""
    if not isinstance(value, Operation) or value.name != "add" or value.static != (I64,):
        return None
    index, added = value.arguments
    if not isinstance(added, Operation) or added.name != "select":
        return None
    p, _, nothing = added.arguments
    is_zero = isinstance(nothing, Constant) and not nothing.bits
    if not is_zero or not isinstance(p, Operation) or p.static != (I64, Condition.LT_S):
        return None
    compared, zero = p.arguments
    is_sign = compared is index and isinstance(zero, Constant) and not zero.bits
    return (index, added) if is_sign else None
