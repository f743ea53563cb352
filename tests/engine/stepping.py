# SPDX-License-Identifier: Apache-2.0
"""An action in front of a chosen bytecode of Python: a signal comes, or a finaliser runs.

    stepped(0, signal_comes(SIGALRM), call)     the signal comes as the first bytecode runs
    stepped(1, ...), stepped(2, ...), ...       ... the second, until `has_acted` is false

Python runs signal handlers where a function begins, where a call has ended and where a loop jumps
back. A signal that is pending from the chosen bytecode on is handled at the next of these points,
so all of them come up. The trace function is native: Python would handle the signal inside its own.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding as llvm

_IR = f"""
declare i32 @PyObject_SetAttrString(i8*, i8*, i8*)
@name = internal constant [16 x i8] c"f_trace_opcodes\\00"
@left = global i64 0
@action = global void (i32)* null
@argument = global i32 0

define i32 @trace(i8* %object, i8* %frame, i32 %what, i8* %value) {{
  switch i32 %what, label %end [i32 0, label %call
                                i32 7, label %opcode]
call:
  %text = getelementptr [16 x i8], [16 x i8]* @name, i64 0, i64 0
  %failed = call i32 @PyObject_SetAttrString(
      i8* %frame, i8* %text, i8* inttoptr (i64 {id(True)} to i8*))
  ret i32 %failed
opcode:
  %left = load i64, i64* @left
  %fewer = sub i64 %left, 1
  store i64 %fewer, i64* @left
  %is.now = icmp eq i64 %left, 0
  br i1 %is.now, label %act, label %end
act:
  %action = load void (i32)*, void (i32)** @action
  %argument = load i32, i32* @argument
  call void %action(i32 %argument)
  br label %end
end:
  ret i32 0
}}
"""
"""A trace function of C: it asks for the bytecodes of each function that is called, and counts."""


class _Tracer(NamedTuple):
    engine: Any
    function: int
    left: ctypes.c_int64
    action: ctypes.c_void_p
    argument: ctypes.c_int32


@functools.cache
def _tracer() -> _Tracer:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.add_symbol("PyObject_SetAttrString", _address(ctypes.pythonapi.PyObject_SetAttrString))
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_IR), machine)
    engine.finalize_object()
    return _Tracer(
        engine,
        engine.get_function_address("trace"),
        ctypes.c_int64.from_address(engine.get_global_value_address("left")),
        ctypes.c_void_p.from_address(engine.get_global_value_address("action")),
        ctypes.c_int32.from_address(engine.get_global_value_address("argument")),
    )


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


_SET_TRACE = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(
    _address(ctypes.pythonapi.PyEval_SetTrace)
)


class Action(NamedTuple):
    """A C function `void f(int)` and its argument."""

    address: int
    argument: int
    keep: object = None


def signal_comes(number: int) -> Action:
    """The signal comes to this process, as by `kill`."""
    return Action(_address(ctypes.pythonapi.PyErr_SetInterruptEx), number)


def runs(function: Callable[[], object]) -> Action:
    """A Python function runs, as a finaliser would; it must not raise."""

    def call(_: int) -> None:
        function()

    kept = ctypes.PYFUNCTYPE(None, ctypes.c_int)(call)
    return Action(_address(kept), 0, kept)


class Stepped(NamedTuple):
    """The end of a call that was stepped through."""

    value: object
    error: BaseException | None
    has_acted: bool
    """False if the call ran fewer bytecodes."""


def stepped(step: int, action: Action, call: Callable[[], object]) -> Stepped:
    """Call a function, and act once in front of a bytecode of what it calls, by number from 0."""
    tracer = _tracer()
    tracer.left.value, tracer.action.value = step, action.address
    tracer.argument.value = action.argument
    value: object = None
    error: BaseException | None = None
    try:
        try:
            _SET_TRACE(tracer.function, None)
            value = call()
        finally:
            _SET_TRACE(None, None)
    except BaseException as raised:  # noqa: BLE001 - the caller looks at it
        error = raised
    return Stepped(value, error, tracer.left.value < 0)
