# SPDX-License-Identifier: Apache-2.0
"""Host calls of one execution against a log: replayed from it, recorded in it, or both.

    next call ──> in the log, replayed     arguments compared; the recorded outcome is used
             ├──> past the end, recorded   performed, and added
             └──> past the end            ReplayError

Functions that write output, work on the instance, or take or return references are performed in a
replay as well, because their effects matter; their results are compared. A reference means nothing
in another run, so the log has 0 in its place, and for a function that takes bytes their length and
CRC-32. An execution without a tape performs its calls directly,
at no cost.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ferryvm.engine.call_log import (
    RAISED,
    CallLog,
    Effect,
    Raised,
    described_call,
    is_same_value,
)
from ferryvm.engine.result import UncaughtError
from ferryvm.errors import FerryError
from ferryvm.failure import class_name, text_of
from ferryvm.isa.type import Reference, ValueType, format_value
from ferryvm.machine.host import Context, Determinism, HostError, HostFunction
from ferryvm.program import HostImport, has_references

if TYPE_CHECKING:
    from ferryvm.engine.host_call import Perform
    from ferryvm.machine.object_memory import ObjectMemory
    from ferryvm.machine.state import Machine


class ReplayError(FerryError):
    """A program's call of a host function differs from the one in the log."""

    def __init__(self, machine: Machine, number: int, expected: str, found: str) -> None:
        place = machine.position or f"pc {machine.control.pc}"
        super().__init__(f"{place}: host call {number + 1} is {found}, the log has {expected}")
        self.number, self.expected, self.found = number, expected, found


_WITH_MEMORY = (Context.INSTANCE, Context.SYSTEM)
"""Contexts through which a host function can change the program's heap."""


class HostTape:
    """The position of one execution in a log."""

    def __init__(self, log: CallLog, *, plays: bool, records: bool) -> None:
        self.log = log
        self.plays, self.records = plays, records
        self.position = self.first = 0 if plays else len(log)
        """Number of the next call, and number of the first call of this execution."""
        self.raised: BaseException | None = None
        """The most recent exception of a host function."""

    def again(self) -> HostTape:
        """A tape that replays the same calls from the start."""
        clone = HostTape(self.log, plays=True, records=False)
        clone.position = clone.first = self.first
        return clone

    def fork(self) -> HostTape:
        """A tape that continues from the present position."""
        clone = self.again()
        clone.position = self.position
        return clone

    def offered(
        self, imports: tuple[HostImport, ...], offered: Mapping[str, HostFunction]
    ) -> Mapping[str, HostFunction]:
        """The functions on offer, and placeholders for functions that are only in the log."""
        log = self.log if self.log.source is None else self.log.source
        found = {one.name: offered[one.name] for one in imports if one.name in offered}
        for name, signature in imports:
            for function in log.functions if self.plays or self.log.source else ():
                if function.imported == (name, signature) and not function.is_performed:
                    found.setdefault(name, _stand_in(name, signature))
        return {**offered, **found}

    def logged(
        self,
        machine: Machine,
        host: HostFunction,
        perform: Perform,
        make_usable: Callable[[int], bool],
    ) -> Perform:
        """The function that performs calls of a host function with this tape."""
        log, control, memory = self.log, machine.control, machine.memory
        imported = HostImport(host.name, host.signature)
        count, has_result = len(host.signature.parameters), bool(host.signature.results)
        is_performed = (
            host.context is Context.OUTPUT
            or has_references(host.signature)
            or (host.context in _WITH_MEMORY and host.determinism is not Determinism.REPLAYABLE)
        )
        references = [n for n, t in enumerate(host.signature.parameters) if _is_reference(t)]
        has_number = has_result and not _is_reference(host.signature.results[0])
        function = log.number_of(imported, is_performed)
        changes_memory = host.context in _WITH_MEMORY and not is_performed
        from_source = log.source is not None and not is_performed

        def play(source: CallLog, number: int, first: int) -> None:
            """Give a call the outcome of the logged call."""
            effect = source.effects.get(number)
            if effect is not None:
                _apply(effect, machine, make_usable)
            if source.state(number) == RAISED:
                self.raised = raised_again(source.raised[number])
                raise self.raised
            if has_result:
                memory.stack[first] = source.result(number)
            control.sp = first + has_result
            control.pc += 1

        def record(first: int, arguments: array[int]) -> None:
            """Perform a call and add it to the log."""
            number = log.begin(function, arguments)
            self.position = number + 1
            before = _memory(machine) if changes_memory else None
            effect = None
            try:
                if from_source:
                    given, at = self._from_source(imported, len(log.of_function[function]) - 1)
                    effect = given.effects.get(at)
                    play(given, at, first)
                else:
                    perform()
            except Exception as error:
                if host.context is Context.OUTPUT or not _is_outcome(error):
                    self._give_up(number)
                else:
                    log.end(number, 0, _raised(error))
                    self.raised = error
                raise
            except BaseException:
                self._give_up(number)
                raise
            if before is not None:
                if len(log) > number + 1:
                    inner = log.functions[log.function(number + 1)].imported.name
                    self._give_up(number)
                    raise HostError(
                        f"host function {host.name} is replayable, so the program must not call "
                        f"host functions within it; it called {inner}"
                    )
                effect = effect or _effect(before, machine)
            log.end(number, memory.stack[first] if has_number else 0, None, effect)

        def call() -> None:
            sp, number = control.sp, self.position
            first = sp - count
            arguments = array("Q", memory.stack[first:sp])
            for at in references:
                arguments[at] = 0
            if host.takes_bytes and machine.objects is not None:
                for at in references:
                    arguments[at] = _digest(machine.objects, memory.stack[first + at])
            if number >= len(log) or not self.plays:
                if not self.records:
                    found = described_call(imported, tuple(arguments))
                    raise ReplayError(machine, number, "no more calls", found)
                record(first, arguments)
                return
            self._check(machine, number, imported, function, arguments)
            self.position = number + 1
            if not is_performed:
                play(log, number, first)
                return
            pc = control.pc
            try:
                perform()
            except BaseException as error:
                if not (isinstance(error, Exception) and _is_outcome(error)):
                    self.position = number
                else:
                    self.raised = error
                raise
            if has_number and log.state(number) != RAISED:
                t, result = host.signature.results[0], memory.stack[first]
                if not is_same_value(t, log.result(number), result):
                    control.pc = pc
                    shown = described_call(imported, tuple(arguments))
                    raise ReplayError(
                        machine, number, str(log[number]), f"{shown} = {format_value(t, result)}"
                    )

        return call

    def _check(
        self,
        machine: Machine,
        number: int,
        imported: HostImport,
        function: int,
        arguments: array[int],
    ) -> None:
        """Check that the log has this call next. Raises ReplayError."""
        log = self.log
        if log.function(number) == function:
            expected = log.arguments(number)
            if expected == arguments:
                return
            types = imported.signature.parameters
            if all(map(is_same_value, types, expected, arguments)):
                return
        there = log[number]
        shown = described_call(there.function, there.arguments)
        found = described_call(imported, tuple(arguments))
        if shown == found:  # another signature
            shown, found = f"{shown} {there.function.signature}", f"{found} {imported.signature}"
        raise ReplayError(machine, number, shown, found)

    def _give_up(self, number: int) -> None:
        """Remove a call that stopped before it had an outcome: the program will make it again."""
        self.log.cut(number)
        self.position = number

    def _from_source(self, imported: HostImport, count: int) -> tuple[CallLog, int]:
        """The log and the number of the call whose outcome a function's call of that number
        gets."""
        source = self.log.source
        assert source is not None
        for known, numbers in zip(source.functions, source.of_function, strict=True):
            if known.imported == imported and count < len(numbers):
                return source, numbers[count]
        raise HostError(f"the log has {count} calls of {imported.name}, and the program makes more")


def _is_reference(t: ValueType) -> bool:
    return isinstance(t, Reference)


def _digest(objects: ObjectMemory, reference: int) -> int:
    """The word of a log for an array of bytes: its length modulo 2^32, and its CRC-32."""
    content = objects.elements(reference) if reference else b""
    return (len(content) << 32 & (1 << 64) - 1) | zlib.crc32(content)


def _is_outcome(error: Exception) -> bool:
    """True if an exception is an outcome of the host function, not an interruption of it."""
    return isinstance(error, UncaughtError) or not isinstance(error, FerryError)


def _stand_in(name: str, signature: object) -> HostFunction:
    """A placeholder for a host function with calls in a log."""

    def absent(*_arguments: object) -> object:
        raise HostError(f"host function {name} is not here, and its calls in the log are over")

    imported = HostImport(name, signature)  # type: ignore[arg-type]  # it comes from an import
    return HostFunction(name, imported.signature, absent, determinism=Determinism.REPLAYABLE)


def _raised(error: Exception) -> Raised:
    """An exception in the form of the log."""
    classes = [class_name(each) for each in type(error).__mro__]
    return Raised(tuple(classes[: classes.index("Exception")]) or ("Exception",), text_of(error))


def raised_again(raised: Raised) -> Exception:
    """An exception made from the log: its class derives from the builtin one among its classes,
    with classes of the other names between."""
    import builtins

    kind: type[Exception] = Exception
    for name in reversed(raised.classes):
        known = getattr(builtins, name, None)
        if isinstance(known, type) and issubclass(known, kind):
            kind = known
        else:
            kind = type(name, (kind,), {})
    text = raised.text

    def as_text(_self: object) -> str:
        return text

    def initialise(_self: object, *_arguments: object) -> None:
        pass

    methods = {"__init__": initialise, "__str__": as_text}
    final: Exception = type(raised.classes[0], (kind,), methods)(text)
    return final


_Memory = tuple[int, bytes, bytes]


def _memory(machine: Machine) -> _Memory:
    """The heap in use, and the statics."""
    memory, hp = machine.memory, machine.control.hp
    return hp, bytes(memory.heap[:hp]), memory.statics.tobytes()


def _effect(before: _Memory, machine: Machine) -> Effect | None:
    """The changes of memory since `before`; None if there are none."""
    hp, heap, statics = before
    after_hp, after_heap, after_statics = _memory(machine)
    if (hp, heap, statics) == (after_hp, after_heap, after_statics):
        return None
    old = np.frombuffer(heap.ljust(after_hp, b"\0"), np.uint8)
    changed = np.flatnonzero(old != np.frombuffer(after_heap, np.uint8))
    breaks = np.flatnonzero(np.diff(changed) > 1)
    starts = [int(changed[n]) for n in (0, *(breaks + 1))] if len(changed) else []
    ends = [int(changed[n]) + 1 for n in (*breaks, -1)] if len(changed) else []
    runs = tuple((s, after_heap[s:e]) for s, e in zip(starts, ends, strict=True))
    left, right = np.frombuffer(statics, np.uint64), np.frombuffer(after_statics, np.uint64)
    words = tuple((int(n), int(right[n])) for n in np.flatnonzero(left != right))
    return Effect(after_hp, runs, words)


def _apply(effect: Effect, machine: Machine, make_usable: Callable[[int], bool]) -> None:
    """Change the memory of a program as a host function did. Raises HostError if there is too
    little."""
    control, memory = machine.control, machine.memory
    if effect.hp > control.hp:
        if not make_usable(effect.hp):
            raise HostError(f"a host call of the log needs a heap of {effect.hp} bytes")
        control.hp = effect.hp
    statics = machine.program.statics
    ends = [offset + len(content) for offset, content in effect.heap]
    if max(ends, default=0) > control.hp or any(
        number >= len(statics) or word & ~statics[number].type.mask
        for number, word in effect.statics
    ):
        raise HostError("a host call of the log changes memory that the program does not have")
    for offset, content in effect.heap:
        memory.heap[offset : offset + len(content)] = content
    for number, word in effect.statics:
        memory.statics[number] = word
