# SPDX-License-Identifier: Apache-2.0
"""Built-in functions of Python that call an export of an instance, by native code alone.

    PyCFunction ── ml_meth ──> caller of a `CallForm`, by a backend
        └── self ──> (data, owners …)

`ferryvm.engine.fast_call` does the same in Python, which takes five times as long. A built-in
function serves the common call, and hands every other one over: `ferryvm.machine.python_call` has
the contract. docs/decisions/2026-11-26-native-calls.md has the reasons.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from ferryvm.engine.call import Calls
from ferryvm.engine.call_length import most_instructions
from ferryvm.engine.possession import Possession
from ferryvm.engine.target import Target
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import CALL_FORMAT
from ferryvm.machine.python_call import (
    ABSENT,
    API,
    TYPE_OFFSET,
    Boxed,
    CallForm,
    DataField,
    Identity,
)

MOST_WITH_LOCK = 1000
"""Instructions of a call that is run with the interpreter lock: it ends within some microseconds,
so no other thread and no signal waits for long."""

_FREE_OFFSET = Possession.__basicsize__ - WORD_BYTES
"""Bytes from the start of a `Possession` to its field."""


class _Definition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    ]


_VARIABLE_ARGUMENTS, _NAMED_ARGUMENTS = 1, 2
"""METH_VARARGS, METH_KEYWORDS."""


@functools.cache
def problem() -> str | None:
    """None if this Python can call built-in functions of ours, else the reason why not."""
    if sys.implementation.name != "cpython":
        return f"{sys.implementation.name} is not CPython"
    if "t" in sys.abiflags:
        return "this build of Python has no interpreter lock"
    if "d" in sys.abiflags or hasattr(sys, "gettotalrefcount"):
        return "this is a debug build of Python"
    missing = [name for name in API if not hasattr(ctypes.pythonapi, name)]
    if missing:
        return f"this Python has no {missing[0]}"
    possession = Possession()
    found = [_word(id(1.0) + TYPE_OFFSET), _word(id(possession) + _FREE_OFFSET)]
    del possession.free
    found.append(_word(id(possession) + _FREE_OFFSET))
    if found != [id(float), id(True), 0]:
        return "objects of this Python have another layout"
    return None


def built_in(
    function: Callable[..., Any],
    parameters: tuple[Boxed, ...],
    result: Boxed,
    identities: Sequence[Identity],
    otherwise: Callable[..., Any],
    left: Callable[[tuple[Any, ...], BaseException | None], Any],
) -> tuple[Callable[..., Any] | None, str]:
    """The built-in function that calls `function`, an export of an instance, with objects of
    exactly these types; None with the reason that there is none.

    `identities`: objects that must be in their places; `otherwise`: called for all other calls;
    `left`: called where the machine was left in another way than by
    HALT, with the arguments and an exception that came meanwhile. `left` calls the `left` of the
    export in its turn.
    """
    reason = problem()
    if reason is not None:
        return None, reason
    found: tuple[Calls, Target] = function.__ferryvm__  # type: ignore[attr-defined]  # an export
    calls, target = found
    length = most_instructions(calls.machine.program, target.function, MOST_WITH_LOCK)
    form = CallForm(parameters, result, releases=length is None)
    address, reason = calls.execution.python_caller(form)
    if address is None:
        return None, reason
    data = _data(calls, target, identities, otherwise, left)
    owners = (data, calls, tuple(identities), otherwise, left)
    return _new(ctypes.addressof(_definition(address)), owners, None), ""


def _data(
    calls: Calls,
    target: Target,
    identities: Sequence[Identity],
    otherwise: Callable[..., Any],
    left: Callable[..., Any],
) -> bytes:
    """The data of a built-in function, which refer to objects that it must own."""
    status, _, _, pc, first, fp = CALL_FORMAT.unpack(calls.idle_registers())
    frame = first + len(target.signature.parameters)
    field = DataField
    objects = {
        field.FLOAT: float, field.INT: int, field.BOOL: bool, field.TRUE: True, field.FALSE: False,
        field.NONE: None, field.OTHERWISE: otherwise, field.LEFT: left,
    }  # fmt: skip
    words = {each: id(value) for each, value in objects.items()} | {
        field.IDENTITIES: len(identities),
        field.FREE: id(calls.busy) + _FREE_OFFSET,
        field.ARMED: calls.armed.buffer_info()[0],
        field.CONTROL: calls.machine.address,
        field.STACK: calls.machine.control.stack + WORD_BYTES * first,
        field.ENTRY: target.entry,
        field.SP: frame + HEADER_WORDS,
        field.FP: frame,
        field.RETURN_PC: pc + 1,
        field.DISTANCE: frame - fp,
        field.HALT: target.halt,
        field.IDLE_STATUS: status,
        field.IDLE_PC: pc,
        field.IDLE_SP: first,
        field.IDLE_FP: fp,
    }
    found = [words[each] for each in field]
    for each in identities:
        value = 0 if each.value is ABSENT else id(each.value)
        found += (each.reader, id(each.place), id(each.key), value)
    return array("Q", found).tobytes()


@functools.cache
def _definition(address: int) -> _Definition:
    """The definition of the built-in functions of a caller, which lives as long as the process."""
    flags = _VARIABLE_ARGUMENTS | _NAMED_ARGUMENTS
    return _Definition(b"call", address, flags, b"Call a compiled function.")


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


_new: Callable[[int, object, object], Callable[..., Any]] = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p
)(("PyCFunction_NewEx", ctypes.pythonapi))
