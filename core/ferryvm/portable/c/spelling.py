# SPDX-License-Identifier: Apache-2.0
"""The types of a language of the C family: C11, OpenCL C."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ferryvm.isa.element import Element
from ferryvm.isa.type import Type


@dataclasses.dataclass(frozen=True)
class Spelling:
    """Names of types."""

    scalars: Mapping[Type, str]
    """Of numbers."""
    integers: Mapping[str, str]
    """Of integers, by their kinds."""
    address: str
    """The cast of a pointer to an unsigned integer of 64 bits."""
    space: str = ""
    """Qualifier of pointers, with the space after it."""
    group: str = ""
    """Qualifier of pointers into arrays of a group, where updates of these have functions of their
    own."""

    def element(self, element: Element) -> str:
        """The type of elements."""
        return self.scalars[element.type] if element.type.is_float else self.integers[element.kind]


_KINDS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")

SCALARS = {Type.I32: "int32_t", Type.I64: "int64_t", Type.F32: "float", Type.F64: "double"}
"""The C types of numbers."""

C_SPELLING = Spelling(
    SCALARS,
    {kind: {"i": "int", "u": "uint"}[kind[0]] + f"{kind[1:]}_t" for kind in _KINDS},
    "(uint64_t)(uintptr_t)",
)
"""C11."""

_SHORT = {8: "char", 16: "short", 32: "int", 64: "long"}

OPENCL_SPELLING = Spelling(
    {Type.I32: "int", Type.I64: "long", Type.F32: "float", Type.F64: "double"},
    {kind: "u" * (kind[0] == "u") + _SHORT[int(kind[1:])] for kind in _KINDS},
    "(ulong)",
    "__global ",
    "__local ",
)
"""OpenCL C 1.2."""
