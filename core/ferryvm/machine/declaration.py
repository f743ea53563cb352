# SPDX-License-Identifier: Apache-2.0
"""The control block and the statuses as C declarations, generated from `ControlBlock`."""

from __future__ import annotations

import ctypes
from typing import Any

from ferryvm.ir.c.dialect import Dialect
from ferryvm.isa.object import ROW_WORDS
from ferryvm.isa.type import I32, I64
from ferryvm.machine.control import DESCRIPTOR_WORDS, ControlBlock, Status

__all__ = ["declarations"]


def declarations(dialect: Dialect) -> str:
    """`struct ferry_control`, and a constant `FERRY_…` for each status.

    All fields are naturally aligned, so the offsets are those of the ctypes structure.
    """
    spelled: dict[Any, str] = {
        ctypes.c_uint32: dialect.types[I32],
        ctypes.c_uint64: dialect.types[I64],
        ctypes.c_int64: dialect.signed[I64],
    }
    lines = ["struct ferry_control {"]
    fields: Any = ControlBlock._fields_
    for name, kind in fields:
        is_array = issubclass(kind, ctypes.Array)
        element, count = (kind._type_, f"[{kind._length_}]") if is_array else (kind, "")
        lines.append(f"    {spelled[element]} {name}{count};")
    lines += ["};", "enum {"]
    lines += [f"    FERRY_{status.name} = {int(status)}," for status in Status]
    lines += [
        f"    FERRY_DESCRIPTOR_WORDS = {DESCRIPTOR_WORDS},",
        f"    FERRY_ROW_WORDS = {ROW_WORDS},",
        "};",
        "",
    ]
    return "\n".join(lines)
