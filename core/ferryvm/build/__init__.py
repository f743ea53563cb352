# SPDX-License-Identifier: Apache-2.0
"""Programs made from Python objects, with no text in between.

>>> import ferryvm
>>> from ferryvm.build import I64, Program
>>> p = Program()
>>> double = p.function("double", {"n": I64}, [I64])
>>> double.local_get("n"); double.dup(); double.i64_add()
>>> main = p.function("main", results=[I64])
>>> main.i64_const(21); main.call(double)
>>> p.start(main)
>>> ferryvm.run(p.build()).value
42

Types are checked during the building: a fault raises a BuildError that names the line of the
caller. (Assembly is the alternative, whose faults name file and line of the text; both become the
same `FunctionCode`.)
"""

from __future__ import annotations

from ferryvm.build.block import Block, If, Loop, Try
from ferryvm.build.fault import BuildError
from ferryvm.build.function import Function
from ferryvm.build.object_type import Array, Field, Struct
from ferryvm.build.program import Program
from ferryvm.build.symbol import Host, Label, Local, Static, Tag
from ferryvm.isa import F32, F64, I32, I64, Type
from ferryvm.isa.element import Element
from ferryvm.isa.type import ANYREF, ARRAYREF, I31REF, Reference
from ferryvm.program import Signature

I8_ARRAY = Element.I8.array
"""Arrays of `i8`."""
U8_ARRAY = Element.U8.array
"""Arrays of `u8`."""
I16_ARRAY = Element.I16.array
"""Arrays of `i16`."""
U16_ARRAY = Element.U16.array
"""Arrays of `u16`."""
I32_ARRAY = Element.I32.array
"""Arrays of `i32`."""
U32_ARRAY = Element.U32.array
"""Arrays of `u32`."""
I64_ARRAY = Element.I64.array
"""Arrays of `i64`."""
F32_ARRAY = Element.F32.array
"""Arrays of `f32`."""
F64_ARRAY = Element.F64.array
"""Arrays of `f64`."""

__all__ = [
    "ANYREF",
    "ARRAYREF",
    "F32",
    "F32_ARRAY",
    "F64",
    "F64_ARRAY",
    "I8_ARRAY",
    "I16_ARRAY",
    "I31REF",
    "I32",
    "I32_ARRAY",
    "I64",
    "I64_ARRAY",
    "U8_ARRAY",
    "U16_ARRAY",
    "U32_ARRAY",
    "Array",
    "Block",
    "BuildError",
    "Field",
    "Function",
    "Host",
    "If",
    "Label",
    "Local",
    "Loop",
    "Program",
    "Reference",
    "Signature",
    "Static",
    "Struct",
    "Tag",
    "Try",
    "Type",
]
