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
from ferryvm.build.program import Program
from ferryvm.build.symbol import Host, Label, Local, Static, Tag
from ferryvm.isa import F32, F64, I32, I64, Type
from ferryvm.program import Signature

__all__ = [
    "F32",
    "F64",
    "I32",
    "I64",
    "Block",
    "BuildError",
    "Function",
    "Host",
    "If",
    "Label",
    "Local",
    "Loop",
    "Program",
    "Signature",
    "Static",
    "Tag",
    "Try",
    "Type",
]
