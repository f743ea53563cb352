# SPDX-License-Identifier: Apache-2.0
"""Instances: a program loaded once, whose functions are called from Python.

    Engine.instantiate ──> Instance ── call, f(...) ──> a value, or an error
                              │  ▲                       or Call (fuel, Ctrl-C), to go on with
                              ▼  │
                           a host function, which may call again

Each call is a frame on top of the machine's stack, entered by an entry stub
(`ferryvm.engine.entry_stub`). Statics and heap stay between calls. The machine stands at the start
function's `halt` when no call is under way. docs/decisions/2026-11-25-embedding.md says why.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferryvm.engine.call import Call, Calls, OutOfFuelError, Runner, Target
from ferryvm.engine.entry_stub import stub_name
from ferryvm.engine.fast_call import made, parameter_names
from ferryvm.engine.marshal import CallError, Value, bits_of, described_parameters
from ferryvm.errors import Position, UnknownNameError
from ferryvm.isa.type import Type, to_python
from ferryvm.program import Export

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["CallError", "Instance", "OutOfFuelError"]


class Instance:
    """A running program whose exported functions can be called.

    Exported functions are attributes of the instance where their names allow it:
    `instance.gcd(12, 18)`; `instance.call("gcd", 12, 18)` does the same for any name. One thread
    uses an instance at a time.
    """

    is_instance = True
    """A mark by which annotations of host functions are known."""

    def __init__(self, execution: Runner) -> None:
        """An instance of a program that has been started with entry stubs."""
        program = execution.machine.program
        numbers = {function.name: number for number, function in enumerate(program.functions)}
        self._execution = execution
        self._calls = Calls(execution)
        self._targets: dict[str, Target] = {}
        self._exports: dict[str, Callable[..., Any]] = {}
        for export in program.exports:
            stub = numbers.get(stub_name(export.name))
            if stub is not None:
                self._targets[export.name] = target = self._target(export, stub)
                self._exports[export.name] = self._function(export, target)
        taken = set(object.__dir__(self))
        for name, function in self._exports.items():
            if name not in taken:
                self.__dict__[name] = function

    def take_up(self) -> None:
        """Find the call that had stopped in a machine that was loaded, if there is one. Raises
        CallError for a state that is no instance's."""
        self._calls.take_up(list(self._targets.values()))

    def _target(self, export: Export, stub: int) -> Target:
        machine = self._execution.machine
        program = machine.program
        signature = program.signature(export.function)
        entry = program.functions[stub].entry
        return Target(
            export.name,
            program.functions[export.function].parameters,
            signature,
            entry,
            entry + len(signature.parameters) + 1,
            machine.verified.frame_words[stub],
        )

    def _function(self, export: Export, target: Target) -> Callable[..., Any]:
        """The Python function that calls an export."""
        program = self._execution.machine.program
        function = made(self._calls, target)
        function.__name__ = function.__qualname__ = export.name
        shown = described_parameters(target.parameters, target.signature)
        position = program.source_map.position(program.functions[export.function].entry)
        where = f"\n\nDefined at {position}." if position else ""
        function.__doc__ = f"{export.name}{shown}, a function of the program.{where}"
        function.__signature__ = _python_signature(target)  # type: ignore[attr-defined]
        return function

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the program exports no {name!r}") from None

    def __repr__(self) -> str:
        return f"<ferryvm.Instance of {len(self._exports)} exported functions>"

    @property
    def exports(self) -> Mapping[str, Callable[..., Any]]:
        """The exported functions by name, in the order of the program."""
        return dict(self._exports)

    def __dir__(self) -> Iterator[str]:
        yield from (*object.__dir__(self), *self._exports)

    def call(
        self, name: str, /, *arguments: float, fuel: int | None = None, backend: str | None = None
    ) -> Value:
        """Call an exported function; its result, or a tuple where it has several.

        `fuel`: instructions that it may complete; `backend`: another one than the engine's.
        Raises UnknownNameError, CallError for arguments that it does not take, OutOfFuelError where fuel
        ran out, ProgramInterrupted on Ctrl-C (its `call` can go on), TrapError, and what a host
        function raises. After each of them but the second and third the instance is idle again.
        """
        target = self._targets.get(name)
        if target is None:
            raise UnknownNameError("exported function", name, self._targets)
        if fuel is None and backend is None and len(arguments) == len(target.signature.parameters):
            result: Value = self._exports[name](*arguments)
            return result
        return self._calls.call(target, arguments, fuel, backend)

    @property
    def suspended(self) -> Call | None:
        """The call that has stopped and can go on; None if there is none."""
        return self._calls.suspended

    @property
    def position(self) -> Position | None:
        """The source position of the instruction that the program stands at: in a host function,
        of its call."""
        return self._execution.machine.position

    @property
    def output(self) -> str:
        """All that the program has written so far; empty if the engine was given an output."""
        return self._execution.collected

    @property
    def heap(self) -> npt.NDArray[np.uint8]:
        """The bytes of the heap in use, as a view: `instance.heap[8:24].view("f8")`.

        It may be written to, and keeps the memory alive. What the program allocates later is not in
        it: the heap stays where it is, and another view has the new end.
        """
        import numpy as np

        machine = self._execution.machine
        return np.frombuffer(machine.memory.heap, np.uint8, count=machine.control.hp)

    def allocate(self, size: int) -> int:
        """The offset in the heap of `size` new bytes, which are zero, at a multiple of 8.

        Raises CallError where the heap's limit forbids it.
        """
        return self._calls.allocate(size)

    def static(self, name: str) -> int | float:
        """The value of a static. Raises UnknownNameError."""
        number, t = self._static(name)
        return to_python(t, self._execution.machine.memory.statics[number])

    def set_static(self, name: str, value: float) -> None:
        """Set a static. Raises UnknownNameError, CallError for a value that is not of its type."""
        number, t = self._static(name)
        self._execution.machine.memory.statics[number] = bits_of(t, value, f"static {name}")

    def _static(self, name: str) -> tuple[int, Type]:
        statics = self._execution.machine.program.statics
        for number, static in enumerate(statics):
            if static.name == name:
                return number, static.type
        raise UnknownNameError("static", name, [static.name for static in statics])

    def idle_execution(self) -> Runner:
        """The execution behind it, for `Engine.instantiate`; raises CallError where a call is under
        way."""
        self._calls.check_idle()
        return self._execution

    def save(self, path: str | Path) -> None:
        """Write the state to a file, a call that has stopped included; `Engine.resume_instance`
        goes on with it. Raises ImageError; CallError inside a host function."""
        self._calls.save(Path(path))


def _python_signature(target: Target) -> inspect.Signature:
    """The signature of an export for `help()` and completion."""
    types = target.signature.parameters
    names = parameter_names(target.parameters, len(types))
    parameters = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY, annotation=_Shown(t))
        for name, t in zip(names, types, strict=True)
    ]
    results = [_Shown(t) for t in target.signature.results]
    returned: object = None
    if results:
        returned = results[0] if len(results) == 1 else tuple(results)
    return inspect.Signature(parameters, return_annotation=returned)


class _Shown:
    """A type as `help()` shows it."""

    def __init__(self, t: Type) -> None:
        self._name = str(t)

    def __repr__(self) -> str:
        return self._name
