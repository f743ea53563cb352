# SPDX-License-Identifier: Apache-2.0
"""Host calls performed: from words of the stack to Python values, and back.

    stack  … │ x │ y │ <─ sp       function(x, y)       stack  … │ result │ <─ sp
             └── arguments ──┘ ──────────────────────>                     pc + 1

For each import of a program one Python function is generated from its signature: it reads its
arguments through typed views of the stack, without a loop over them. Nothing changes before the
function has returned a result of the right type: a failing function leaves the program at the call.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from ferryvm.engine.marshal import CallError, bits_of, expected
from ferryvm.engine.number import TypedViews
from ferryvm.failure import shown
from ferryvm.float_environment import call_in_ours
from ferryvm.isa.type import WORD_BYTES, Reference, Type
from ferryvm.machine.control import PC, SP, Status
from ferryvm.machine.host import Context, HostError, HostFunction
from ferryvm.machine.native import NativeFunction
from ferryvm.machine.state import Machine
from ferryvm.program import Signature, has_references

if TYPE_CHECKING:
    from ferryvm.engine.reference import References

Perform = Callable[[], None]
"""Performs the host call at pc, and steps over it."""


def bound(
    machine: Machine,
    function: HostFunction,
    context: object,
    references: Callable[[], References],
) -> Perform:
    """The function that performs calls of a host function; `context`: its first argument;
    `references`: those of the machine, if there are some."""
    if isinstance(function.function, NativeFunction):
        return _native(machine, function.function)
    if function.takes_bytes:
        return _with_bytes(machine, function, context)
    if has_references(function.signature):
        return _with_references(machine, function, context, references())
    return _maker(function.signature, function.context is not Context.NONE)(
        machine.memory.control_words,
        TypedViews(machine.memory.stack),
        function,
        context,
        _misfit,
        call_in_ours,
        struct.Struct("<f").pack,
        struct.Struct("<i").unpack,
        struct.error,
    )


def _native(machine: Machine, function: NativeFunction) -> Perform:
    """The function that performs calls of a native function: word for word, to preserve a NaN's
    bits."""
    control, memory = machine.control, machine.memory
    count, call = len(function.types), function.c_function
    has_result = bool(function.signature.results)

    def perform() -> None:
        first = control.sp - count
        address = memory.stack_address + WORD_BYTES * first
        arguments = [t.from_address(address + WORD_BYTES * n) for n, t in enumerate(function.types)]
        # The function cannot call the program, as when native code calls it.
        try:
            control.status = Status.RUNNING
            result = call_in_ours(call, *arguments)
        finally:
            control.status = Status.HOST
        if has_result:
            word = int.from_bytes(bytes(result), "little")
            memory.stack[first] = word
        control.sp = first + has_result
        control.pc += 1

    return perform


def taken_bytes(machine: Machine, function: HostFunction) -> list[bytes]:
    """The arguments of a call of a host function that takes bytes. Raises HostError for null."""
    objects, sp = machine.objects, machine.control.sp
    assert objects is not None
    words = machine.memory.stack[sp - len(function.signature.parameters) : sp].tolist()
    if 0 in words:
        raise HostError(f"{function.name}: argument {words.index(0) + 1} is null")
    return [objects.elements(word) for word in words]


def _with_bytes(machine: Machine, function: HostFunction, context: object) -> Perform:
    """The function that performs calls of a host function that takes bytes, and returns nothing."""
    control, count = machine.control, len(function.signature.parameters)

    def perform() -> None:
        function.function(context, *taken_bytes(machine, function))
        control.sp -= count
        control.pc += 1

    return perform


def _with_references(
    machine: Machine, function: HostFunction, context: object, references: References
) -> Perform:
    """The function that performs calls of a host function that takes or returns references."""
    from ferryvm.engine.array_argument import Place  # it takes NumPy

    control, stack = machine.control, machine.memory.stack
    parameters, results = function.signature.parameters, function.signature.results
    before = () if function.context is Context.NONE else (context,)
    what = f"host function {function.name}"
    place = Place(f"{what}: its result", verb="return")

    def word(result: object) -> int:
        (t,) = results
        try:
            if isinstance(t, Reference):
                return references.words([(place, t)], [result])[0]
            return bits_of(t, result, place.name)
        except CallError as error:
            raise HostError(str(error)) from None

    def perform() -> None:
        first = control.sp - len(parameters)
        try:
            arguments = references.values(parameters, stack[first : control.sp].tolist())
        except CallError as error:
            raise HostError(f"{what}: {error}") from None
        result = function.function(*before, *arguments)
        if results:
            stack[first] = word(result)
        elif result is not None:
            raise _misfit(function, result)
        control.sp = first + len(results)
        control.pc += 1

    return perform


@functools.cache
def _maker(signature: Signature, has_context: bool) -> Callable[..., Perform]:
    """Makes the function that performs calls of a signature."""
    count = len(signature.parameters)
    arguments = []
    for number, t in enumerate(signature.parameters):
        at = f"sp - {count - number}" if t.bits == 64 else f"2 * (sp - {count - number})"
        arguments.append(f"{t}[{at}]")
    lines = [
        "def make(control, views, host, context, misfit, in_ours, pack, unpack, error):",
        "    i32, i64, f32, f64 = views.i32, views.i64, views.f32, views.f64",
        "    function = host.function",
        "    def perform():",
        f"        sp = control[{SP}]",
    ]
    if Type.F32 in signature.parameters:  # a narrower float is converted: that is arithmetic
        names = [f"a{number}" for number in range(count)]
        read = ", ".join(arguments)
        lines += [f"        {', '.join(names)}, = in_ours(lambda: ({read},))"]
        arguments = names
    context = ["context"] if has_context else []
    lines.append(f"        result = function({', '.join(context + arguments)})")
    if not signature.results:
        lines += [
            "        if result is not None:",
            "            raise misfit(host, result)",
            f"        control[{SP}] = sp - {count}",
        ]
    else:
        (t,) = signature.results
        first = f"sp - {count}" if count else "sp"
        lines += [
            "        try:",
            # A memoryview would round values too large for an f32 to infinity.
            f"            i32[2 * ({first})], = unpack(in_ours(pack, result))"
            if t is Type.F32
            else f"            {t}[{first if t.bits == 64 else f'2 * ({first})'}] = result",
            "        except (TypeError, ValueError, OverflowError, error):",
            "            raise misfit(host, result) from None",
        ]
        if t.bits == 32:
            lines.append(f"        i32[2 * ({first}) + 1] = 0")
        lines.append(f"        control[{SP}] = sp - {count - 1}")
    lines += [f"        control[{PC}] += 1", "    return perform"]
    scope: dict[str, Callable[..., Perform]] = {}
    exec(compile("\n".join(lines), "<host call>", "exec"), scope)  # noqa: S102 - made of the types' names alone
    return scope["make"]


def _misfit(host: HostFunction, result: object) -> HostError:
    """The error for a result that is not of the declared type."""
    if not host.signature.results:
        return HostError(f"host function {host.name} has no result, but returned {shown(result)}")
    (t,) = host.signature.results
    return HostError(
        f"host function {host.name} returned {shown(result)}; {expected(t)} is expected"
    )
