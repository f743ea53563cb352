# SPDX-License-Identifier: Apache-2.0
"""The Python function of an export: the fast path of a call that halts without leaving.

    arguments, header ──> stack      pc, sp, fp ──> control block      run ──> HALT: the result

It is specialised for the signature and for the stack pointer while no call is active, so that
everything but the arguments is constant: one `struct` call, one slice, one native call. All other
cases (another thread, an active call, any other status) are handled in `Calls`.

Beside it stands `left`, its second half: the end of a call for which native code has entered the
machine (`ferryvm.engine.built_in`), and was left with another status than HALT.
"""

from __future__ import annotations

import ctypes
import functools
import keyword
import struct
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ferryvm.engine.marshal import frame_struct, value, values_struct
from ferryvm.engine.number import TypedViews
from ferryvm.failure import undisguised
from ferryvm.float_environment import call_in_ours
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import Type
from ferryvm.machine.control import CALL_FORMAT, CALL_REGISTERS, INTERRUPT, PC, STATUS, Status
from ferryvm.machine.python_call import ArmedWord
from ferryvm.program import Signature, has_references

if TYPE_CHECKING:
    from ferryvm.engine.call import Calls
    from ferryvm.engine.target import Target


def made(calls: Calls, target: Target) -> Callable[..., Any]:
    """The function that calls an export."""
    machine = calls.machine
    signature = target.signature
    idle = calls.idle
    if idle is None:
        return lambda *arguments: calls.call(target, arguments)
    _, _, _, pc, first, fp = CALL_FORMAT.unpack(idle)
    frame = first + len(signature.parameters)
    memory = machine.memory
    names = tuple(parameter_names(target.parameters, len(signature.parameters)))
    return _maker(names, signature)(
        calls=calls,
        target=target,
        armed=calls.armed,
        busy=calls.busy,
        ident=threading.get_ident,
        pack=frame_struct(signature).pack_into,
        unpack=values_struct(signature.results).unpack_from,
        stack=memory.stack.cast("B"),
        views=TypedViews(memory.stack),
        offset=8 * first,
        return_pc=pc + 1,
        distance=frame - fp,
        block=memory.control_bytes,
        place=CALL_REGISTERS,
        registers=CALL_FORMAT.pack(Status.RUNNING, 0, 0, target.entry, frame + HEADER_WORDS, frame),
        idle=calls.idle,
        halves=memory.control_halves,
        address=machine.address,
        at=frame + HEADER_WORDS,
        errors=(struct.error, OverflowError, TypeError),
        in_ours=call_in_ours,
        words=memory.control_words,
        halt=target.halt,
        undisguised=undisguised,
        ArgumentError=ctypes.ArgumentError,
        passing=calls.passing(target),
        value=value,
    )


def parameter_names(known: Sequence[str], count: int) -> list[str]:
    """Parameter names for Python: those that the program gives, or `x0`, `x1` ..."""
    names: list[str] = []
    for number in range(count):
        name = known[number] if number < len(known) else ""
        is_fit = name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
        if not is_fit or name in names:
            name = f"x{number}"
            while name in known or name in names:
                name += "x"
        names.append(name)
    return names


THREAD, TAKEN = int(ArmedWord.THREAD), int(ArmedWord.TAKEN)

_ENDS = """
        except BaseException as _error:
            try:
                _calls.look(_error)
            finally:
                if not _calls.stopped:
                    _block[_place] = _idle
            raise
        finally:
            _busy.free = True
"""[1:-1]
"""The end of a function that has the execution."""


@functools.cache
def _maker(names: tuple[str, ...], signature: Signature) -> Callable[..., Callable[..., Any]]:
    """Makes functions for a signature. Its own names begin with `_`; parameters do not."""
    given = "".join(f"{name}, " for name in names)
    pack = f"_pack(_stack, _offset, {given}_return_pc, _distance)"
    types = signature.results
    is_passing, passed = has_references(signature), ""
    if is_passing:
        # First the registers: the frame of the last call is no root of a collection any more.
        passed = f"_block[_place] = _idle; _passed = _passing.words(({given}))"
        pack = "_pack(_stack, _offset, *_passed, _return_pc, _distance)"
        words = f"_views.u64[_at : _at + {len(types)}].tolist()"
        result = f"_value(_passing.values({words}))" if types else "None"
    elif not types:
        result = "None"
    elif len(types) > 1:
        result = "_unpack(_stack, 8 * _at)"
    else:
        result = f"_{types[0]}[{'_at' if types[0].bits == 64 else '2 * _at'}]"
    if Type.F32 in signature.parameters:  # a narrower float is converted: that is arithmetic
        pack = f"_in_ours({pack.replace('(', ', ', 1)}"
    if Type.F32 in types and not is_passing:
        result = f"_in_ours(lambda: {result})"
    text = f"""
def _make(*, {", ".join(_PARTS)}):
    {"; ".join(f"_{part} = {part}" for part in _PARTS)}
    _i32, _i64, _f32, _f64 = views.i32, views.i64, views.f32, views.f64
    def function({given}{"/" if names else ""}):
        try:
            del _busy.free
        except AttributeError:
            return _calls.call(_target, ({given}))
        try:
            if _ident() == _armed[{THREAD}]:
                {passed}
                try:
                    {pack}
                except _errors:
                    raise _calls.misfit(_target, ({given})) from None
                try:
                    _block[_place] = _registers
                    _halves[{INTERRUPT}] = 0
                    _status = _calls.run(_address)
                    if _status == {int(Status.HALT)} and _words[{PC}] == _halt:
                        return {result}
                    return _calls.finish(_target, _status)
                except KeyboardInterrupt:
                    _calls.interrupted(_target)
                    raise
                except _ArgumentError as _error:
                    raise _undisguised(_error) from None
{_ENDS}
        return _calls.call(_target, ({given}))
    def left(_error):
        try:
            _armed[{TAKEN}] = 1
            try:
                if _error is not None:
                    raise _error
                return _calls.finish(_target, _halves[{STATUS}])
            except KeyboardInterrupt:
                _calls.interrupted(_target)
                raise
{_ENDS}
    function.__ferryvm_left__ = left
    return function
"""
    scope: dict[str, Any] = {}
    exec(compile(text, "<call>", "exec"), scope)  # noqa: S102 - made of types and of names that are identifiers
    found: Callable[..., Callable[..., Any]] = scope["_make"]
    return found


_PARTS = (
    "calls", "target", "armed", "busy", "ident", "pack", "unpack", "stack", "views", "offset", "return_pc",
    "distance", "block", "place", "registers", "halves", "address", "at", "errors", "in_ours", "words",
    "halt", "idle", "undisguised", "ArgumentError", "passing", "value",
)  # fmt: skip
