# SPDX-License-Identifier: Apache-2.0
"""Leaving native code: writing frames and registers, out of the way of what runs often.

What an exit does is in functions that are shared by all exits of one shape, so that a check costs
the optimiser one call and not a store for each word of the frame.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ferryvm.ir.graph import Constant, Operation, State, Value
from ferryvm.isa.control import HEADER_WORDS
from ferryvm.isa.type import I64, WORD_BYTES, Type
from ferryvm.machine.control import Status
from ferryvm_backends._llvm.arithmetic import LLVM_TYPE, WORD, Arithmetic, word
from ferryvm_backends._llvm.weaver import POINTER
from ferryvm_backends.llvm.storage import Storage, attributes_of_cold

INT32 = ir.IntType(32)
_LETTER = {t: "ilfd"[number] for number, t in enumerate(Type)}


class _Straight(Arithmetic):
    """Arithmetic at a builder."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder


def frame_writer(module: ir.Module, types: Sequence[Type]) -> ir.Function:
    """The function that stores words of these types into a frame, after its header."""
    name = "frame." + "".join(_LETTER[t] for t in types)
    known = module.globals.get(name)
    if known is not None:
        return known
    signature = ir.FunctionType(ir.VoidType(), [WORD, *(LLVM_TYPE[t] for t in types)])
    function = ir.Function(module, signature, name)
    attributes_of_cold(function)
    builder = ir.IRBuilder(function.append_basic_block())
    arithmetic, storage = _Straight(builder), Storage(builder)
    frame, *values = function.args
    for index, (t, value) in enumerate(zip(types, values, strict=True)):
        where = builder.add(frame, word(WORD_BYTES * (HEADER_WORDS + index)))
        storage.store(arithmetic.to_slot(t, value), storage.pointer(where), "stack")
    builder.ret_void()
    return function


def register_writer(module: ir.Module) -> ir.Function:
    """The function that stores status, pc, and fp and sp by a frame and its number of words."""
    known = module.globals.get("registers")
    if known is not None:
        return known
    signature = ir.FunctionType(ir.VoidType(), [POINTER, WORD, WORD, WORD, INT32])
    function = ir.Function(module, signature, "registers")
    attributes_of_cold(function)
    builder = ir.IRBuilder(function.append_basic_block())
    storage = Storage(builder)
    control, frame, words, pc, status = function.args
    start = storage.field(control, "stack")
    fp = builder.lshr(builder.sub(frame, start), word(3))
    storage.set_field(control, "fp", fp)
    storage.set_field(control, "sp", builder.add(fp, words))
    storage.set_field(control, "pc", pc)
    storage.set_field(control, "status", status)
    builder.ret_void()
    return function


def returner(module: ir.Module) -> ir.Function:
    """The function that goes back to the caller's frame, as `return` means it.

    Its arguments are the control block, the frame, its result as a word, and how many it has.
    """
    known = module.globals.get("go_back")
    if known is not None:
        return known
    signature = ir.FunctionType(ir.VoidType(), [POINTER, WORD, WORD, WORD])
    function = ir.Function(module, signature, "go_back")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    storage = Storage(builder)
    control, frame, result, results = function.args
    pc = storage.load(storage.pointer(frame), "stack")
    distance = storage.load(storage.pointer(builder.add(frame, word(WORD_BYTES))), "stack")
    storage.store(result, storage.pointer(frame), "stack")
    start = storage.field(control, "stack")
    own = builder.lshr(builder.sub(frame, start), word(3))
    storage.set_field(control, "pc", pc)
    storage.set_field(control, "fp", builder.sub(own, distance))
    storage.set_field(control, "sp", builder.add(own, results))
    storage.set_field(control, "status", ir.Constant(INT32, int(Status.LEAVE)))
    builder.ret_void()
    return function


def is_virtual(value: Value) -> bool:
    """Whether a value of a state is computed at the exit only."""
    return isinstance(value, Operation) and value.name == "canonical"


def types_of(state: State) -> list[Type]:
    """Types of the words that a state writes."""
    return [w.type if isinstance(w.type, Type) else I64 for w in state.words if w is not None]


__all__ = ["Constant", "frame_writer", "is_virtual", "register_writer", "returner", "types_of"]
