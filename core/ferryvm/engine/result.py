# SPDX-License-Identifier: Apache-2.0
"""Ends of a run: a result with the metrics of the run, a trap, or an interrupt.

An error of a backend or of the host is none of these; it is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from ferryvm import record
from ferryvm.errors import FerryError, Position
from ferryvm.isa import Trap, Type
from ferryvm.isa.type import Reference, ValueType, format_value, to_python
from ferryvm.machine.control import Status
from ferryvm.machine.state import Frame, Machine
from ferryvm.machine.unwind import Thrown, raised_by_host, thrown

if TYPE_CHECKING:
    from ferryvm.engine.object_view import Item
    from ferryvm.engine.reference import References

_R = TypeVar("_R")


class TrapError(FerryError):
    """The program trapped. The execution is in the state before the trapping instruction."""

    def __init__(self, machine: Machine) -> None:
        self.state: object = None
        """The state that the embedder took from the machine
        (`ferryvm.engine.call.Calls.at_trap`)."""
        self.kind = Trap(machine.control.trap)
        self.pc: int = machine.control.pc
        self.stack: list[Frame] = machine.frames()
        self.position: Position | None = _position(self.stack)
        """The active calls, innermost first, without the middle of a deep stack."""
        self.item = _item_number(machine)
        """The number of the item of a launch that trapped; None if control is in none."""
        message = _stated(machine) or self.kind.message
        event = f"trap: {message}{_detail(machine)}{_item(machine)}"
        super().__init__(_show(machine, event, self.stack))


def _item_number(machine: Machine) -> int | None:
    if machine.objects is None:
        return None
    from ferryvm.machine.active_item import running_item  # few programs have launches

    return running_item(machine)


def _item(machine: Machine) -> str:
    """The item of a launch in which a program stopped; empty if it is in none."""
    if machine.objects is None:
        return ""
    # few programs have launches
    from ferryvm.machine.active_item import active_item
    from ferryvm.skeleton.grid import item_indices

    item = active_item(machine)
    if item is None:
        return ""
    name = machine.program.functions[item.function].name
    indices = item_indices(name, item.arguments)
    return f", in item {item.number}" + (f" {indices}" if indices is not None else "")


def _position(stack: list[Frame]) -> Position | None:
    """The position of the innermost call that has one: generated code has none."""
    return next((frame.position for frame in stack if frame.position is not None), None)


def _stated(machine: Machine) -> str:
    """The message of a generated function that only traps, with its arguments; empty for others."""
    control = machine.control
    if control.trap != Trap.UNREACHABLE:
        return ""
    from ferryvm.skeleton.stated_trap import STATED  # few programs trap so

    function = machine.program.functions[machine.verified.owner(control.pc)]
    if not function.name.startswith(STATED):
        return ""
    count = len(machine.program.signatures[function.signature].parameters)
    numbers = machine.memory.stack[control.fp - count : control.fp]
    return f"{function.name}: {' and '.join(map(str, numbers))}"


def _detail(machine: Machine) -> str:
    """The operands that trapped, and what is allowed; empty if the trap's kind says all."""
    from ferryvm.engine.trap_detail import trap_detail  # few runs trap

    return trap_detail(machine)


class UncaughtError(TrapError):
    """The program threw an exception that no clause catches."""

    def __init__(self, machine: Machine, references: Callable[[], References]) -> None:
        """`references`: those of the machine, if there are some."""
        super().__init__(machine)
        exception = thrown(machine)
        assert exception is not None
        self.program = machine.program
        tag = machine.program.tags[exception.tag]
        self.tag: str = tag.name
        given = zip(tag.parameters, exception.words, strict=True)
        shown = ", ".join(_text(machine, t, word) for t, word in given)
        self.values: tuple[Item, ...] = tuple(
            references().value(word) if isinstance(t, Reference) else to_python(t, word)
            for t, word in zip(tag.parameters, exception.words, strict=True)
        )
        """Signed for integers; of references what a call returns for them."""
        self._thrown, self._types = exception, tag.parameters
        event = f"trap: {self.kind.message} {self.tag}({shown}){_item(machine)}"
        self.args = (_show(machine, event, self.stack),)

    def thrown(self, references: Callable[[], References]) -> Thrown | None:
        """The exception, to be thrown again in a machine of its program with these references; None
        if it has an object of another machine."""
        if not any(isinstance(t, Reference) for t in self._types):
            return self._thrown
        return references().thrown(self._thrown, self._types, self.values)


def _text(machine: Machine, t: ValueType, word: int) -> str:
    """The text of a value of an exception."""
    if not isinstance(t, Reference) or machine.objects is None:
        return format_value(t, word & t.mask)
    from ferryvm.machine.object_text import object_text  # few programs have objects

    return object_text(machine.objects, word)


def trap_raised(machine: Machine, references: Callable[[], References]) -> BaseException:
    """The Python exception for a machine that trapped: if it threw a host function's exception
    again, that exception. `references`: those of the machine, if there are some."""
    is_uncaught = machine.control.trap == Trap.UNCAUGHT_EXCEPTION
    # A saved state has no exceptions of host functions: of one that was thrown again only the
    # record.
    if not is_uncaught or thrown(machine) is None:
        return TrapError(machine)
    error = raised_by_host(machine)
    if error is None:
        return UncaughtError(machine, references)
    add_frames(machine, error)
    return error


def add_frames(machine: Machine, error: BaseException) -> None:
    """Add the active calls to an exception's notes, innermost first, unless a nested host call has
    added them."""
    lines, notes = _calls(machine.frames()), getattr(error, "__notes__", ())
    noted: tuple[int, ...] = getattr(error, _NOTED, ())
    if machine.address in noted and notes and notes[-1] == lines[-1] and lines[0] in notes:
        return
    for line in lines:
        error.add_note(line)
    setattr(error, _NOTED, (*noted, machine.address))


_NOTED = "__ferryvm_noted__"
"""The attribute of an exception with the machines whose calls it has in its notes: two instances of
one program have equal lines."""


class StoppedCall(Protocol):
    """A call of an instance that has stopped, see `ferryvm.engine.active_call.Call`."""

    def resume(self, fuel: int | None = None, backend: str | None = None) -> object:
        """Continue; its result."""

    def abandon(self) -> None:
        """Remove the call from the stack."""

    def stood(self, look: Callable[[Machine], _R]) -> _R:
        """The result of a function that looks at the machine as it stood when the call stopped."""


class ProgramInterrupted(KeyboardInterrupt):
    """The program was interrupted; the execution can continue from there."""

    def __init__(self, machine: Machine, call: StoppedCall | None = None) -> None:
        self.pc: int = machine.control.pc
        self.stack: list[Frame] = machine.frames()
        self.position: Position | None = _position(self.stack)
        """The active calls, innermost first, without the middle of a deep stack."""
        self.call = call
        """The call of an instance that can be resumed; None for a program that was run."""
        self.raised: BaseException | None = None
        """The exception of Python's own handler of the signal; None if that has not run."""
        super().__init__(_show(machine, f"interrupted{_item(machine)}", self.stack))


def shown_stack(machine: Machine, event: str) -> str:
    """An event, its position and the active calls, as errors show them."""
    return _show(machine, event, machine.frames())


def _show(machine: Machine, event: str, stack: list[Frame]) -> str:
    """The event and its position, then the active calls, innermost first."""
    return "\n".join([f"{_position(stack) or f'pc {machine.control.pc}'}: {event}", *_calls(stack)])


def _calls(stack: list[Frame]) -> list[str]:
    """A line for each call of a function that somebody wrote, if there is one."""
    lines = []
    for frame in [frame for frame in stack if not _is_generated(frame)] or stack:
        if frame.skipped:
            lines.append(f"    ... {frame.skipped} more calls ...")
        lines.append(f"    in {frame}")
        if frame.is_cut:
            lines.append("    ... more calls, not counted ...")
    return lines


def _is_generated(frame: Frame) -> bool:
    """True for a frame of a function that a front end has made, such as that of a map, or of the
    call of one: its name is a description, its code has no source."""
    is_alone = not frame.skipped and not frame.is_cut
    return is_alone and frame.position is None and " " in frame.function.removeprefix("<call of ")


@record.dataclass(frozen=True)
class Seconds:
    """The time of a run by activity, in seconds."""

    load: float
    """Verifying the program and making its memory."""
    prepare: float
    """Preparing the backend's artifact, and waiting for compilers."""
    run: float
    """Running it, host calls included."""
    compile: float = 0.0
    """Time of compilations that ended during the run; in parallel, unless the program waited."""


@record.dataclass(frozen=True)
class Statistics:
    """Metrics of a run."""

    backend: str
    """Its name; `mixed` if a policy selected backends."""
    seconds: Seconds
    instructions: int | None
    """Instructions completed since the program's start; None if they were not counted."""


@record.dataclass(frozen=True)
class RunResult:
    """The result of a run."""

    status: Status
    """HALT, or FUEL when the fuel ran out before the end."""
    type: Type | None
    bits: int | None
    """The result: the operand on top of the stack at the end; None if there is none, or
    it is a reference."""
    output: str
    """The output of the execution so far, in all its runs; bytes that are not UTF-8 are replaced.
    Empty if the engine was given an output."""
    statistics: Statistics
    read: Callable[[], Item] | None = record.field(default=None, repr=False, compare=False)
    """Reads a result that is a reference, see `reference`; None for others."""

    @property
    def reference(self) -> Item:
        """The result, as a call returns it, if it is a reference: a view, an ndarray, None for
        null. None if it is a number. Raises FerryError while the execution runs."""
        return None if self.read is None else self.read()

    @property
    def value(self) -> int | float | None:
        """The result as a Python number, signed for integers; None if it is a reference."""
        if self.type is None or self.bits is None:
            return None
        return to_python(self.type, self.bits)
