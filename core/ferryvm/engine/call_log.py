# SPDX-License-Identifier: Apache-2.0
"""A log of host calls: in order the function, the bits of its arguments, and its outcome.

    words   … │ function, state │ argument bits … │ result bits │ …      one call
    starts    the index in words at which each call begins

Calls are compact numbers, not objects: a program may make millions. Rare parts (an exception, bytes
written to the program's heap) are separate, by the number of the call. A pending call is in the
log, so that nested calls come after it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from ferryvm.errors import FerryError
from ferryvm.isa.type import Reference, Type, ValueType, format_value
from ferryvm.program import HostImport

MOST_WORDS = 1 << 26
"""The largest number of words of a log's calls; longer files are not readable."""

_STATE = 32
"""Bit at which the state begins in the first word of a call."""

PENDING, RETURNED, RAISED = range(3)
"""The states of a call: pending until it returns or raises."""


class Raised(NamedTuple):
    """An exception that a host function raised."""

    classes: tuple[str, ...]
    """Names of its class and bases, up to `Exception`, by which a program can catch it."""
    text: str

    def __str__(self) -> str:
        return f"{self.classes[0]}: {self.text}" if self.text else self.classes[0]


class Effect(NamedTuple):
    """Changes that a host function made to the memory of the program."""

    hp: int
    """End of the heap in use, afterwards."""
    heap: tuple[tuple[int, bytes], ...]
    """Runs of new bytes, by offset."""
    statics: tuple[tuple[int, int], ...]
    """New words, by number of the static."""


class LoggedFunction(NamedTuple):
    """A function whose calls are in a log."""

    imported: HostImport
    is_performed: bool
    """True if a replay calls it, too: it writes output, or works on the instance."""


class HostCall(NamedTuple):
    """One call of a log."""

    function: HostImport
    arguments: tuple[int, ...]
    """Bits of the arguments."""
    outcome: int | Raised | None
    """Bits of the result, or the exception; None if the call is pending or has no result."""

    def __str__(self) -> str:
        """The call as a line: `clock_ns() = 17`."""
        shown = described_call(self.function, self.arguments)
        if self.outcome is None:
            return shown
        if isinstance(self.outcome, Raised):
            return f"{shown} raised {self.outcome}"
        return f"{shown} = {format_value(self.function.signature.results[0], self.outcome)}"


def described_call(function: HostImport, arguments: tuple[int, ...]) -> str:
    """A call as text: `read(3, 0.5)`."""
    types = function.signature.parameters
    shown = ", ".join(_argument(t, a) for t, a in zip(types, arguments, strict=True))
    return f"{function.name}({shown})"


def _argument(t: ValueType, word: int) -> str:
    if isinstance(t, Reference):  # see `ferryvm.engine.host_tape`
        return f"{t} of {word >> 32} bytes, CRC-32 {word & 0xFFFFFFFF:#x}" if word else str(t)
    return format_value(t, word)


class CallLog:
    """Host calls of a run, in memory: `ferryvm.engine.host_log.HostLog` without files."""

    def __init__(self, source: CallLog | None = None) -> None:
        """`source`: a log whose results substitute for those of the calls recorded here, by
        function: the first call of a function gets the first result there, and so on."""
        self.source = source
        self.functions: list[LoggedFunction] = []
        self.words = array("Q")
        self.starts = array("Q")
        self.raised: dict[int, Raised] = {}
        self.effects: dict[int, Effect] = {}
        self.of_function: list[array[int]] = []
        """For each function the numbers of its calls."""

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[HostCall]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> HostCall:
        number = range(len(self))[number]
        imported = self.functions[self.function(number)].imported
        outcome: int | Raised | None = self.raised.get(number)
        if outcome is None and imported.signature.results:
            outcome = self.result(number) if self.state(number) == RETURNED else None
        return HostCall(imported, tuple(self.arguments(number)), outcome)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallLog) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # it changes

    def number_of(self, imported: HostImport, is_performed: bool) -> int:
        """The number of a function, which is added if it is new."""
        for number, known in enumerate(self.functions):
            if known.imported == imported:
                return number
        self.functions.append(LoggedFunction(imported, is_performed))
        self.of_function.append(array("Q"))
        return len(self.functions) - 1

    def function(self, number: int) -> int:
        """The number of the function that a call calls."""
        return self.words[self.starts[number]] & ((1 << _STATE) - 1)

    def state(self, number: int) -> int:
        """The state of a call."""
        return self.words[self.starts[number]] >> _STATE

    def arguments(self, number: int) -> array[int]:
        """The bits of a call's arguments."""
        start = self.starts[number] + 1
        function = self.functions[self.function(number)].imported
        return self.words[start : start + len(function.signature.parameters)]

    def result(self, number: int) -> int:
        """The bits of a call's result; 0 if it has none."""
        following = self.starts[number + 1] if number + 1 < len(self) else len(self.words)
        return self.words[following - 1]

    def begin(self, function: int, arguments: array[int]) -> int:
        """The number of a new, pending call. Raises FerryError if the log is full."""
        number = len(self.starts)
        if len(self.words) + len(arguments) + 2 > MOST_WORDS:
            raise FerryError(f"the log of host calls is full: it has {number} calls")
        self.starts.append(len(self.words))
        self.words.append(function | PENDING << _STATE)
        self.words.extend(arguments)
        self.words.append(0)
        self.of_function[function].append(number)
        return number

    def end(
        self, number: int, result: int, raised: Raised | None = None, effect: Effect | None = None
    ) -> None:
        """Set the outcome of a pending call."""
        start = self.starts[number]
        state = RETURNED if raised is None else RAISED
        self.words[start] = self.function(number) | state << _STATE
        following = self.starts[number + 1] if number + 1 < len(self) else len(self.words)
        self.words[following - 1] = result
        if raised is not None:
            self.raised[number] = raised
        if effect is not None:
            self.effects[number] = effect

    def cut(self, number: int) -> None:
        """Remove an abandoned call and the calls after it."""
        for last in range(len(self) - 1, number - 1, -1):
            self.of_function[self.function(last)].pop()
            self.raised.pop(last, None)
            self.effects.pop(last, None)
            del self.words[self.starts[last] :]
            self.starts.pop()


def is_same_value(t: ValueType, left: int, right: int) -> bool:
    """True if two bit patterns are the same value; all NaNs are equal."""
    if left == right or not t.is_float:
        return left == right
    infinity = 0x7FF << 52 if t is Type.F64 else 0xFF << 23
    magnitude = (1 << (t.bits - 1)) - 1
    return left & magnitude > infinity and right & magnitude > infinity
