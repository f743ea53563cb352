# SPDX-License-Identifier: Apache-2.0
"""Host calls: functions of the host that a program imports by name and calls by number.

Arguments and results are bit patterns. A host function is called with the machine stopped at the
call; if it raises, the program stays there, with its arguments still on the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferryvm import record
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.isa.type import F32, F64, I32, I64, Type, format_value
from ferryvm.program import HostImport, Signature

__all__ = ["STANDARD", "HostError", "HostFunction", "Output"]

Output = Callable[[bytes], object]
"""Where a program's output goes."""


@record.dataclass(frozen=True)
class HostFunction:
    """A function that programs can import."""

    name: str
    signature: Signature
    action: Callable[..., int | None]
    """Called with the output, then the arguments; returns the result's bit pattern, if any."""
    summary: str = ""
    """Its effect, in one line."""


class HostError(FerryError):
    """A program imports a host function with a wrong signature."""


def _print(t: Type) -> HostFunction:

    def action(output: Output, bits: int) -> None:
        output(format_value(t, bits).encode() + b"\n")

    shortest = "shortest " if t.is_float else ""
    summary = f"print the {shortest}decimal text of the value, and a line end"
    return HostFunction(f"print_{t}", Signature((t,)), action, summary)


def _write_byte(output: Output, bits: int) -> None:
    output(bytes((bits & 0xFF,)))


STANDARD: Mapping[str, HostFunction] = {
    function.name: function
    for function in (
        *(_print(t) for t in (I32, I64, F32, F64)),
        HostFunction(
            "write_byte", Signature((I32,)), _write_byte, "write the low 8 bits as a byte"
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
