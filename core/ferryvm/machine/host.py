# SPDX-License-Identifier: Apache-2.0
"""Host functions: functions of the host that a program imports by name and calls by number.

Arguments and results are Python values of the declared types: ints (signed) and floats. A host
function is called with the machine stopped at the call; what it raises leaves the program there,
with its arguments still on the stack.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping

from ferryvm import record
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.isa.type import F32, F64, I32, I64, Type, format_number
from ferryvm.program import HostImport, Signature

__all__ = ["STANDARD", "Context", "Determinism", "HostError", "HostFunction", "Output"]

Output = Callable[[bytes], object]
"""The receiver of a program's output."""


class Context(enum.Enum):
    """The first argument that a host function gets, in front of the program's."""

    NONE = "none"
    """There is none: it gets the program's arguments alone."""
    OUTPUT = "output"
    """The `Output` that the program writes to."""
    INSTANCE = "instance"
    """The instance that calls: its memory, its functions, the position of the call."""


class Determinism(enum.Enum):
    """The causes and effects that calls of a host function may have."""

    PLAIN = "plain"
    """Anything, and it has effects of its own: a call made again is another call."""
    PURE = "pure"
    """Its arguments alone; it has no effects. It may be called at any time, any number of times."""
    REPLAYABLE = "replayable"
    """Anything, such as the time or input, but the program sees only its result (and what it wrote
    to the program's heap): what was recorded may be played instead of a call."""


@record.dataclass(frozen=True)
class HostFunction:
    """A function that programs can import. It can still be called as the function it was made of."""

    name: str
    signature: Signature
    function: Callable[..., object]
    """Called with the context if it wants one, then the arguments; returns the result, or None."""
    summary: str = ""
    """Its effect, in one line."""
    context: Context = Context.NONE
    determinism: Determinism = Determinism.PLAIN
    """As its author says; nothing checks it."""

    def __post_init__(self) -> None:
        if len(self.signature.results) > 1:
            raise HostError(
                f"host function {self.name} has {len(self.signature.results)} results, at most 1"
            )

    def __call__(self, *arguments: object) -> object:
        return self.function(*arguments)


class HostError(FerryError):
    """A host function cannot be used: its declaration, its signature, or what it returned."""


def _print(t: Type) -> HostFunction:

    def print_value(output: Output, value: float) -> None:
        output(format_number(t, value).encode() + b"\n")

    shortest = "shortest " if t.is_float else ""
    summary = f"print the {shortest}decimal text of the value, and a line end"
    return HostFunction(f"print_{t}", Signature((t,)), print_value, summary, Context.OUTPUT)


def _write_byte(output: Output, value: int) -> None:
    output(bytes((value & 0xFF,)))


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
    )
}
"""The host functions that every engine offers."""


def bind(
    imports: tuple[HostImport, ...], offered: Mapping[str, HostFunction]
) -> tuple[HostFunction, ...]:
    """The functions that a program imports, in its order.

    Raises UnknownNameError for a name that is not offered, HostError for another signature.
    """
    bound = []
    for wanted in imports:
        function = offered.get(wanted.name)
        if function is None:
            raise UnknownNameError("host function", wanted.name, offered)
        if function.signature != wanted.signature:
            raise HostError(
                f"host function {wanted.name} is {function.signature}, "
                f"the program imports it as {wanted.signature}"
            )
        bound.append(function)
    return tuple(bound)
