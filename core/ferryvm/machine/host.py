# SPDX-License-Identifier: Apache-2.0
"""Host functions: functions of the host that a program imports by name and calls by number.

Arguments and results are Python values of the declared types: ints (signed) and floats, for
references what `ferryvm.engine.reference` makes of them. A host function is called with the machine
stopped at the call; an exception that it raises leaves the program there, with the arguments still
on the stack.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Mapping

from ferryvm import record
from ferryvm.errors import UnknownNameError
from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.element import Element
from ferryvm.isa.type import F32, F64, I32, I64, Type, format_number
from ferryvm.machine.system import HostError, Input, System
from ferryvm.program import Program, Signature, has_references

__all__ = [
    "STANDARD",
    "Context",
    "Determinism",
    "HostError",
    "HostFunction",
    "Input",
    "Output",
    "System",
]

_HOST = BY_MNEMONIC["host"].opcode

Output = Callable[[bytes], object]
"""The receiver of a program's output. If it has a method `flush`, that is called before a program
waits for standard input."""


class Context(enum.Enum):
    """The first argument that a host function gets, before the program's arguments."""

    NONE = "none"
    """No context: the function gets the program's arguments alone."""
    OUTPUT = "output"
    """The `Output` that the program writes to."""
    SYSTEM = "system"
    """The `System` around the program: heap, output, input, arguments."""
    INSTANCE = "instance"
    """The instance that calls: its memory, its functions, the position of the call."""


class Determinism(enum.Enum):
    """The inputs that determine the result of a host function, and its effects."""

    PLAIN = "plain"
    """It may depend on anything and have effects of its own, so a repeated call is another call."""
    PURE = "pure"
    """It depends on its arguments alone and has no effects. It may be called at any time, any
    number of times."""
    REPLAYABLE = "replayable"
    """It may depend on anything, such as the time or input, but the program sees only its result
    (and its writes to the program's heap), so a recorded call can be replayed instead of calling
    it."""


@record.dataclass(frozen=True)
class HostFunction:
    """A function that programs can import. Python can still call it as the original function."""

    name: str
    signature: Signature
    function: Callable[..., object]
    """Called with the context if it takes one, then the arguments; returns the result, or None."""
    summary: str = ""
    """Its effect, in one line."""
    context: Context = Context.NONE
    determinism: Determinism = Determinism.PLAIN
    """As its author declares; nothing checks it."""
    takes_bytes: bool = False
    """True if its parameters are arrays of u8, and it gets copies of their bytes: that takes no
    NumPy, and leaves the arrays where they are. Null is an error."""

    def __post_init__(self) -> None:
        if len(self.signature.results) > 1:
            raise HostError(
                f"host function {self.name} has {len(self.signature.results)} results, at most 1"
            )

    def __call__(self, *arguments: object) -> object:
        return self.function(*arguments)


def _print(t: Type) -> HostFunction:

    def print_float(output: Output, value: float) -> None:
        output(format_number(t, value).encode() + b"\n")

    def print_int(output: Output, value: int) -> None:
        output(b"%d\n" % value)

    print_value = print_float if t.is_float else print_int
    shortest = "shortest " if t.is_float else ""
    summary = f"print the {shortest}decimal text of the value, and a line end"
    return HostFunction(f"print_{t}", Signature((t,)), print_value, summary, Context.OUTPUT)


def _write_byte(output: Output, value: int) -> None:
    output(bytes((value & 0xFF,)))


def _print_string(output: Output, text: bytes) -> None:
    output(text + b"\n")


def _write_string(output: Output, text: bytes) -> None:
    if text:
        output(text)


def _of_string(function: Callable[..., object], summary: str) -> HostFunction:
    name, signature = function.__name__.removeprefix("_"), Signature((Element.U8.array,))
    return HostFunction(name, signature, function, summary, Context.OUTPUT, takes_bytes=True)


def _write_bytes(system: System, address: int, size: int) -> None:
    content = bytes(system.heap(address, size))
    if content:
        system.output(content)


def _read_byte(system: System) -> int:
    found = system.read(1)
    return found[0] if found else -1


def _read_line(system: System, address: int, most: int) -> int:
    space = system.heap(address, most)
    found = system.read(most, b"\n")
    space[: len(found)] = found
    return len(found) if found or not most else -1


def _argument_count(system: System) -> int:
    return len(system.arguments)


def _argument(system: System, number: int, address: int, most: int) -> int:
    space = system.heap(address, most)
    if not 0 <= number < len(system.arguments):
        return -1
    found = system.arguments[number]
    space[: len(found)] = found[:most]
    return len(found)


def _system(
    function: Callable[..., object],
    types: tuple[Type, ...],
    results: tuple[Type, ...],
    summary: str,
    determinism: Determinism = Determinism.REPLAYABLE,
) -> HostFunction:
    name, signature = function.__name__.removeprefix("_"), Signature(types, results)
    return HostFunction(name, signature, function, summary, Context.SYSTEM, determinism)


STANDARD: Mapping[str, HostFunction] = {
    function.name: function
    for function in (
        *(_print(t) for t in (I32, I64, F32, F64)),
        HostFunction(
            "write_byte",
            Signature((I32,)),
            _write_byte,
            "write the low 8 bits as a byte",
            Context.OUTPUT,
        ),
        _of_string(_print_string, "print the bytes of a string, and a line end"),
        _of_string(_write_string, "write the bytes of a string"),
        _system(
            _write_bytes,
            (I64, I64),
            (),
            "write bytes of the heap: address, size",
            Determinism.PLAIN,
        ),
        _system(_read_byte, (), (I32,), "the next byte of the input; -1 at its end"),
        _system(
            _read_line,
            (I64, I64),
            (I64,),
            "read a line with its end, or its first bytes: address, most bytes; the bytes read, -1 "
            "at the end of the input",
        ),
        _system(_argument_count, (), (I64,), "the number of arguments of the program"),
        _system(
            _argument,
            (I64, I64, I64),
            (I64,),
            "write the first bytes of an argument to the heap: number from 0, address, most bytes; "
            "its length, -1 if there is none",
        ),
        HostFunction(
            "clock_ns",
            Signature((), (I64,)),
            time.monotonic_ns,
            "nanoseconds of a clock that never goes back",
            determinism=Determinism.REPLAYABLE,
        ),
    )
}
"""The host functions that every engine offers."""


def bind(program: Program, offered: Mapping[str, HostFunction]) -> tuple[HostFunction, ...]:
    """The functions that a program imports, in its order.

    Raises UnknownNameError for a name that is not offered, HostError for another signature, each
    with the position of the first call.
    """
    bound = []
    for number, wanted in enumerate(program.hosts):
        function = offered.get(wanted.name)
        if function is None:
            place = _first_call(program, number)
            raise UnknownNameError("host function", wanted.name, offered, place)
        # Types that a program declares have a number there, and only a name here.
        is_same = function.signature == wanted.signature
        if not is_same and has_references(wanted.signature):
            is_same = str(function.signature) == str(wanted.signature)
            if is_same:
                function = record.replace(function, signature=wanted.signature)
        if not is_same:
            place = _first_call(program, number)
            raise HostError(
                f"{place}{': ' if place else ''}host function {wanted.name} is {function.signature}, "
                f"the program imports it as {wanted.signature}"
            )
        bound.append(function)
    return tuple(bound)


def _first_call(program: Program, number: int) -> str:
    """The position of the first call of an import; empty if it is not known."""
    code = program.code
    for pc, opcode in enumerate(code.opcodes):
        if opcode == _HOST and code.immediates[pc] == number:
            return str(program.source_map.position(pc) or "")
    return ""
