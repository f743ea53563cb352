# SPDX-License-Identifier: Apache-2.0
"""LLVM IR as text, written as it is built.

    value ──> module ──> builder ──> text ──> LLVM

An instruction is a line of its block, a value just its type and its name: the part of `llvmlite.ir`
that the backends use, in a fifth of its time, which was half of the compile time of a small region.
LLVM checks types when it parses the text.
"""

from ferryvm_backends._llvm.ir.builder import IRBuilder
from ferryvm_backends._llvm.ir.module import (
    Block,
    Function,
    GlobalVariable,
    Module,
    PhiInstr,
    SwitchInstr,
)
from ferryvm_backends._llvm.ir.value import (
    Argument,
    ArrayType,
    Callee,
    Constant,
    DoubleType,
    FloatType,
    FunctionType,
    IntType,
    LiteralStructType,
    MetaDataType,
    Place,
    PointerType,
    Type,
    Undefined,
    Value,
    VectorType,
    VoidType,
)

__all__ = [
    "Argument",
    "ArrayType",
    "Block",
    "Callee",
    "Constant",
    "DoubleType",
    "FloatType",
    "Function",
    "FunctionType",
    "GlobalVariable",
    "IRBuilder",
    "IntType",
    "LiteralStructType",
    "MetaDataType",
    "Module",
    "PhiInstr",
    "Place",
    "PointerType",
    "SwitchInstr",
    "Type",
    "Undefined",
    "Value",
    "VectorType",
    "VoidType",
]
