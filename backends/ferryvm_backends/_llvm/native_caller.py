# SPDX-License-Identifier: Apache-2.0
"""Callers of native functions: from stack words to the C ABI and back, one for each signature.

    stack words   │ x │ y │   ──> function(x, y) ──>   │ result │ y │     in the first one's place

Each is code of its own, generated when a function of its signature is first bound and never freed:
machines refer to it by address. (The alternative, one caller for all signatures as in libffi,
examines each argument's type at each call.)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ferryvm import cache
from ferryvm.isa.type import WORD_BYTES, Type, as_number
from ferryvm.program import Signature
from ferryvm_backends._llvm import ir, native
from ferryvm_backends._llvm.arithmetic import LLVM_TYPE, StraightLineArithmetic, word
from ferryvm_backends._llvm.handler import BYTE, NATIVE_CALLER, POINTER
from ferryvm_backends._llvm.loader import NativeCode

_SYMBOL = "ferry_native_caller"


def address(signature: Signature) -> int:
    """The address of the caller for functions of a signature. Raises BackendError."""
    return _loaded(signature).address(_SYMBOL)


@functools.cache
def _loaded(signature: Signature) -> NativeCode:
    def build() -> bytes:
        from ferryvm_backends._llvm.build import compile_quickly  # it takes LLVM

        return compile_quickly(_module(signature))

    key = cache.key([native.key("ferryvm_backends._llvm"), str(signature)])
    return native.made(cache.Entry("native-caller", key), build)[0]


def native_type(parameters: Sequence[Type], results: Sequence[Type]) -> ir.FunctionType:
    """The type of a C function."""
    result = LLVM_TYPE[results[0]] if results else ir.VoidType()
    return ir.FunctionType(result, [LLVM_TYPE[t] for t in parameters])


def _module(signature: Signature) -> ir.Module:
    module = ir.Module(_SYMBOL)
    caller = ir.Function(module, NATIVE_CALLER, _SYMBOL)
    builder = ir.IRBuilder(caller.append_basic_block())
    arithmetic = StraightLineArithmetic(builder)
    function, first = caller.args
    arguments = []
    parameters, results = (
        [as_number(t) for t in types] for types in (signature.parameters, signature.results)
    )
    for number, t in enumerate(parameters):
        where = builder.gep(first, [word(WORD_BYTES * number)], source_etype=BYTE)
        slot = builder.load(where, typ=ir.IntType(64), align=WORD_BYTES)
        arguments.append(arithmetic.from_slot(t, slot))
    type_ = native_type(parameters, results)
    callee = ir.Callee(builder.inttoptr(function, POINTER), type_)
    result = builder.call(callee, arguments)
    if results:
        slot = arithmetic.to_slot(results[0], result)
        builder.store(slot, first, align=WORD_BYTES)
    builder.ret_void()
    return module
