# SPDX-License-Identifier: Apache-2.0
"""Instances: a program loaded once, whose functions are called from Python.

    Engine.instantiate ──> Instance ── call, f(...) ──> a value, or an error
                              │  ▲                       or Call (fuel, Ctrl-C), to be resumed
                              ▼  │
                           a host function, which may call back

Each call is a frame on top of the machine's stack, entered by an entry stub
(`ferryvm.engine.entry_stub`). Statics and heap persist between calls. The machine stands at the
start function's `halt` while no call is active. docs/decisions/2026-11-25-embedding.md has the
reasons.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ferryvm.engine.active_call import Call, OutOfFuelError
from ferryvm.engine.call import Calls
from ferryvm.engine.entry_stub import stub_name
from ferryvm.engine.fast_call import made, parameter_names
from ferryvm.engine.marshal import CallError, Value, bits_of, described_parameters
from ferryvm.engine.runner import Runner
from ferryvm.engine.target import Target, target_of
from ferryvm.errors import Position, UnknownNameError
from ferryvm.isa.type import Reference, ValueType, to_python
from ferryvm.program import Export

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ferryvm.engine.object_view import Item

__all__ = ["CallError", "Instance", "OutOfFuelError"]

_LISTED = 20
"""Exported functions that the error for a missing one lists."""


class Instance:
    """A running program whose exported functions can be called.

    Exported functions are attributes of the instance where their names allow it:
    `instance.gcd(12, 18)`; `instance.call("gcd", 12, 18)` does the same for any name. One thread
    uses an instance at a time.
    """

    is_instance = True
    """A marker by which annotations of host functions are recognised."""

    def __init__(self, execution: Runner, calls: Calls) -> None:
        """An instance of a program that was started with entry stubs."""
        program = execution.machine.program
        numbers = {function.name: number for number, function in enumerate(program.functions)}
        self._execution = execution
        self._calls = calls
        self._targets: dict[str, Target] = {}
        self._exports: dict[str, Callable[..., Any]] = {}
        for export in program.exports:
            stub = numbers.get(stub_name(export.name))
            if stub is not None:
                self._targets[export.name] = target = target_of(
                    execution.machine, export.name, export.function, stub
                )
                self._exports[export.name] = self._function(export, target)
        taken = set(object.__dir__(self))
        for name, function in self._exports.items():
            if name not in taken:
                self.__dict__[name] = function

    def take_up(self) -> None:
        """Find the stopped call in a machine that was loaded, if there is one. Raises CallError if
        the state is not an instance's."""
        from ferryvm.engine.loaded_call import take_up  # few machines are loaded

        take_up(self._calls, list(self._targets.values()))

    def _function(self, export: Export, target: Target) -> Callable[..., Any]:
        """The Python function that calls an export."""
        program = self._execution.machine.program
        function = made(self._calls, target)
        function.__name__ = function.__qualname__ = export.name
        shown = described_parameters(target.parameters, target.signature)
        position = program.source_map.position(program.functions[export.function].entry)
        where = f"\n\nDefined at {position}." if position else ""
        function.__doc__ = f"{export.name}{shown}, a function of the program.{where}"
        function.__ferryvm__ = self._calls, target  # type: ignore[attr-defined]  # for maps
        function.__signature__ = _python_signature(target)  # type: ignore[attr-defined]
        return function

    def __getattr__(self, name: str) -> Any:
        names = list(self.__dict__.get("_exports", ()))
        shown = ", ".join(names) if len(names) <= _LISTED else f"{len(names)} functions"
        raise AttributeError(f"the program exports no {name!r}; it exports {shown or 'nothing'}")

    def __repr__(self) -> str:
        return f"<ferryvm.Instance of {len(self._exports)} exported functions>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Raise TypeError: Python's `copy` and `pickle` cannot copy a machine."""
        raise TypeError(
            "an instance of a program cannot be copied or pickled: instantiate the program again, or"
            " write the state by instance.save(path) and read it by Engine.resume_instance(path)"
        )

    @property
    def exports(self) -> Mapping[str, Callable[..., Any]]:
        """The exported functions by name, in the order of the program."""
        return dict(self._exports)

    def __dir__(self) -> Iterator[str]:
        yield from (*object.__dir__(self), *self._exports)

    def call(
        self, name: str, /, *arguments: object, fuel: int | None = None, backend: str | None = None
    ) -> Value:
        """Call an exported function; its result, or a tuple if it has several.

        `fuel`: the number of instructions that it may complete; `backend`: another one than the
        engine's. Raises UnknownNameError, CallError for arguments that do not fit, OutOfFuelError
        if fuel ran out, ProgramInterrupted on Ctrl-C (both have a `call` to resume), TrapError, and
        exceptions of host functions. After each of them except OutOfFuelError and
        ProgramInterrupted the instance is idle again.
        """
        target = self._targets.get(name)
        if target is None:
            raise UnknownNameError("exported function", name, self._targets)
        if fuel is None and backend is None and len(arguments) == len(target.signature.parameters):
            result: Value = self._exports[name](*arguments)
            return result
        return self._calls.call(target, arguments, fuel, backend)

    def interrupt(self) -> None:
        """Stop the running call, as Ctrl-C does; any thread may do so. The call raises
        ProgramInterrupted in its own thread, and can be resumed. Has no effect if none runs."""
        self._execution.machine.control.interrupt = 1

    @property
    def suspended(self) -> Call | None:
        """The stopped call, which can be resumed; None if there is none."""
        return self._calls.suspended

    @property
    def position(self) -> Position | None:
        """The source position of the current instruction: inside a host function, of its call."""
        return self._execution.machine.position

    @property
    def output(self) -> str:
        """The output of the program so far; empty if the engine was given an output."""
        return self._execution.collected

    @property
    def heap(self) -> npt.NDArray[np.uint8]:
        """The bytes of the heap in use, as a view: `instance.heap[8:24].view("f8")`.

        It is writable, and keeps the memory alive. It does not include later allocations: the heap
        never moves, and another view has the new end.
        """
        import numpy as np

        machine = self._execution.machine
        return np.frombuffer(machine.memory.heap, np.uint8, count=machine.control.hp)

    def allocate(self, size: int) -> int:
        """The offset in the heap of `size` new zero bytes, a multiple of 8.

        Raises CallError if the heap's limit forbids it.
        """
        return self._calls.allocate(size)

    def new(self, type_name: str, /, *values: object, **fields: object) -> Any:
        """A new struct of the program's type of that name, as a StructView, or array of references,
        as an ArrayView: `instance.new("point", 1.0, y=2.0)`, `instance.new("point[]", 3)`.

        `values`: of the fields of a struct in their order, those of its parent first, and `fields`
        by name; the others are zero or null. Of an array the length, or an iterable with the
        elements. Raises UnknownNameError for another type, CallError for a field or value that the
        type does not have, and if there is no memory.
        """
        from ferryvm.engine.new_object import new_object  # it takes NumPy

        return new_object(self._execution.machine.program, self._calls, type_name, values, fields)

    def static(self, name: str) -> Item:
        """The value of a static: of a reference what a call returns for it. Raises
        UnknownNameError, and CallError for a reference while another thread uses the instance."""
        number, t = self._static(name)
        if isinstance(t, Reference):
            return self._calls.references.static(number)
        return to_python(t, self._execution.machine.memory.statics[number])

    def set_static(self, name: str, value: object) -> None:
        """Set a static. Raises UnknownNameError, and CallError for a value of another type."""
        number, t = self._static(name)
        if isinstance(t, Reference):
            self._calls.references.set_static(number, name, t, value)
        else:
            self._execution.machine.memory.statics[number] = bits_of(t, value, f"static {name}")

    def _static(self, name: str) -> tuple[int, ValueType]:
        statics = self._execution.machine.program.statics
        for number, static in enumerate(statics):
            if static.name == name:
                return number, static.type
        raise UnknownNameError("static", name, [static.name for static in statics])

    def idle_execution(self) -> Runner:
        """The underlying execution, for `Engine.instantiate`; raises CallError if a call is
        active."""
        self._calls.check_idle()
        return self._execution

    def save(self, path: str | Path) -> None:
        """Write the state to a file, including all stopped calls; `Engine.resume_instance`
        continues them. Raises ImageError; CallError inside a host function."""
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
    """A type as `help()` displays it."""

    def __init__(self, t: ValueType) -> None:
        self._name = str(t)

    def __repr__(self) -> str:
        return self._name
