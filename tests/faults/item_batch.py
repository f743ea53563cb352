# SPDX-License-Identifier: Apache-2.0
"""Planted faults of native code that makes and takes the pieces of suspended items: a store left
out.

Stores are numbered in the order in which the builder makes them. What the writer makes is held
against what Python makes, and what the interpreter does then against the reference.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

from ferryvm.engine.execution import Execution
from ferryvm.machine.item_map import WRITE
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm_backends._llvm import ir, item_writer, resumption
from ferryvm_backends._llvm.arithmetic import word
from ferryvm_backends._llvm.build import compile_loops
from ferryvm_backends._llvm.codegen import ObjectCode
from ferryvm_backends._llvm.word_code import WordCode
from ferryvm_backends.threaded import BACKEND, symbol

from ..suspended import suspended_items

_RANGES = ((2, 4),)
_MOST = 5_000
"""Instructions, where a fault makes a launch endless."""


class StoreFault(NamedTuple):
    """A store of a builder that is left out, by its number among those of the builder."""

    name: str
    about: str
    builder: type[WordCode]
    number: int


_WRITER, _TAKER = item_writer._Writer, resumption._Resume

FAULTS = (
    StoreFault("batch-references-lost", "References of an item are null.", _WRITER, 21),
    StoreFault("batch-references-left", "References are in the words, too.", _WRITER, 22),
    StoreFault("batch-first-lost", "A piece has no first item.", _WRITER, 27),
    StoreFault("batch-end-lost", "A piece has no end.", _WRITER, 28),
    StoreFault("batch-pc-lost", "An item goes on at the start of the program.", _WRITER, 29),
    StoreFault("batch-frame-lost", "The innermost frame of an item is lost.", _WRITER, 30),
    StoreFault("batch-item-anew", "A suspended item begins anew.", _WRITER, 31),
    StoreFault("batch-rest-lost", "The items behind one are lost.", _WRITER, 33),
    StoreFault("batch-one-item", "Only the lowest item is in the record.", _WRITER, 35),
    StoreFault("batch-overwritten", "The next object is put over a piece.", _WRITER, 25),
    StoreFault("taken-references-lost", "References of a resumed item are null.", _TAKER, 1),
    StoreFault("taken-limit-kept", "A range that is taken does not run.", _TAKER, 15),
    StoreFault("taken-next-kept", "A range that is taken begins elsewhere.", _TAKER, 16),
    StoreFault("taken-twice", "An item is finished again and again.", _TAKER, 17),
)


def code_of(fault: StoreFault | None, make: Callable[[], ir.Module]) -> ObjectCode:
    """The code of a module, with the fault if there is one."""
    count = 0
    put = WordCode.put

    def planted(self: Any, *given: Any) -> None:
        nonlocal count
        is_own = fault is not None and isinstance(self, fault.builder)
        count += is_own
        if fault is None or not is_own or count != fault.number + 1:
            put(self, *given)

    with mock.patch.object(WordCode, "put", planted):
        return ObjectCode(compile_loops(make()))


def taking() -> ir.Module:
    """A function that takes pieces and enters the loaded interpreter."""
    made = ir.Module("taking")
    run = ir.Function(made, ir.FunctionType(ir.VoidType(), [ir.PointerType()]), "run")
    builder = ir.IRBuilder(run.append_basic_block())
    address = word(BACKEND._interpreters.whole._code.address(symbol.RUN))
    callee = ir.Callee(builder.inttoptr(address, ir.PointerType()), run.signature)
    builder.call(callee, run.args)
    builder.ret_void()
    resumption.define_resume(made, symbol.RESUME, run)
    return made


def _written(fault: StoreFault | None) -> object:
    """The state with the record that the writer makes."""
    code = code_of(fault, item_writer.module)
    writer = WRITE(code.address(item_writer._SYMBOL))
    with mock.patch.object(ObjectMemory, "item_writer", return_value=writer):
        return suspended_items(ranges=_RANGES).machine.snapshot()


def _finished(fault: StoreFault | None) -> object:
    """The outcome of a run in the interpreter that takes pieces."""
    code = code_of(fault, taking)
    with mock.patch.object(BACKEND._interpreters.whole, "resumption", code.address(symbol.RESUME)):
        return _outcome(suspended_items(1, _RANGES), "threaded")


def _outcome(execution: Execution, backend: str) -> object:
    status = execution.run(_MOST, backend=backend).status
    return status, execution.collected, execution.instructions, execution.machine.snapshot()


@functools.cache
def _expected(is_writer: bool) -> object:
    if is_writer:
        with mock.patch.object(ObjectMemory, "item_writer", return_value=None):
            return suspended_items(ranges=_RANGES).machine.snapshot()
    return _outcome(suspended_items(1, _RANGES), "reference")


def is_found(fault: StoreFault) -> bool:
    """True if the outcome shows the fault."""
    is_writer = fault.builder is _WRITER
    try:
        outcome = _written(fault) if is_writer else _finished(fault)
    except Exception:  # noqa: BLE001 - whatever a fault leads to
        return True
    return bool(outcome != _expected(is_writer))


def is_right() -> bool:
    """True if nothing is found without a fault."""
    return (_written(None), _finished(None)) == (_expected(True), _expected(False))
