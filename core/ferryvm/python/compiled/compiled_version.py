# SPDX-License-Identifier: Apache-2.0
"""A Python function compiled for certain kinds of arguments, with the instances that calls use.

kinds ──> program (`ferryvm.python.compiled.program`) ──> instance ──> calls
                                                 others, for threads and nested calls
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ferryvm.engine import Engine, marshal
from ferryvm.engine.active_call import InUseError
from ferryvm.engine.instance import Instance
from ferryvm.machine.state import Machine
from ferryvm.python.compiled.pause import PausedFrame, paused_frames
from ferryvm.python.compiled.program import Unit
from ferryvm.python.definition.free_name import NO_NAMES, FreeNames
from ferryvm.python.value.kind import Kind
from ferryvm.python.value.list_argument import passer, passing
from ferryvm.python.value.list_value import ViewReader
from ferryvm.python.value.result import arguments, reader, storage

if TYPE_CHECKING:
    from ferryvm.engine.call import Calls
    from ferryvm.engine.execution import Execution
    from ferryvm.engine.explain import Explained
    from ferryvm.engine.reference import References

R = TypeVar("R")


class Version:
    """A function compiled for certain kinds of arguments."""

    def __init__(
        self,
        function: types.FunctionType,
        kinds: Sequence[Kind],
        target: Kind | None,
        engine: Engine,
        free: FreeNames = NO_NAMES,
    ) -> None:
        """`kinds`: of the arguments, then of the free names `free`; `target`: the kind to which
        results are converted. Raises UnsupportedError."""
        self.kinds, self.free = tuple(kinds), free
        unit = self._unit(function, target)
        self.results, self.sites, self.has_effects = unit.results, unit.sites, unit.has_effects
        self._hosts, self._arrays = unit.hosts, unit.arrays
        self.program, self._engine, self._maps = unit.program, engine, unit.maps
        """The program, exported as `function`."""
        self.read = reader(unit.results or [], function.__name__)
        self.has_lists = unit.has_lists
        """True if there are lists among the arguments."""
        self._made, self._changed = unit.made, unit.changed
        self.flat = arguments(kinds)
        self._passed = passer(unit.kinds)
        self._left: list[tuple[BaseException, list[PausedFrame]]] = []
        """Exceptions that ended calls in their middle, and the frames then."""
        self._calls: list[Calls] = []
        """The calls of each instance."""
        self.function = self._instance().function
        """Calls the compiled function."""
        self.others: list[Instance] = []
        """Further instances that no call uses."""
        self.dependencies = unit.dependencies
        self.code = function.__code__
        """The code of the function itself."""
        self.has_names = self.dependencies.has_names
        """True if it depends on more than that."""
        self.is_current = self.dependencies.are_current
        """True if free names, and the functions, are what the code is for."""

    def _unit(self, function: types.FunctionType, target: Kind | None) -> Unit:
        return Unit(function, self.kinds, target, self.free.names)

    @property
    def arrays(self) -> list[Any]:
        """Arrays that free names refer to."""
        return [array for array, _ in self._arrays]

    def another(self) -> Instance:
        """An instance that no call uses. Put it back into `others` afterwards."""
        try:
            return self.others.pop()
        except IndexError:
            return self._instance()

    def use(self, action: Callable[[Callable[..., Any]], R]) -> R:
        """The result of an action with the compiled function of an instance that no call uses."""
        try:
            return action(self.function)
        except InUseError:  # by another thread, or by what a signal has interrupted
            instance = self.another()
            try:
                return action(instance.function)
            finally:
                self.others.append(instance)

    def call(self, values: Sequence[Any]) -> Any:
        """The value for arguments. Raises what the call of an instance raises, MisfitError,
        and LargeItemError."""
        if self.has_lists:
            return self._call_with_lists(values)
        flat = values if self.flat is None else self.flat(values)
        found = self.use(lambda function: function(*flat))
        return found if self.read is None else self.read(found)

    def _call_with_lists(self, values: Sequence[Any]) -> Any:
        flat, originals = self._passed(values)
        with passing(originals):
            found = self.use(lambda function: function(*flat))
        *found, made = found if isinstance(found, tuple) else (found,)
        lists = ViewReader(originals, self._changed)
        lists.update(made)
        result = marshal.value(found)
        return result if self.read is None else self.read(result, lists)

    def regions(self) -> tuple[Explained, ...]:
        """The parts of its code that ran long, in all its instances."""
        from ferryvm.engine.explain import regions

        executions = [cast("Execution", calls.execution) for calls in self._calls]
        return tuple(region for execution in executions for region in regions(execution))

    def _instance(self) -> Instance:
        instance = self._engine.instantiate_at_rest(self.program, hosts=self._hosts)
        for array, name in self._arrays:
            instance.set_static(name, storage(array))
        calls, _ = instance.function.__ferryvm__
        calls.at_trap, calls.at_error = self.paused, self._stopped
        self._calls.append(calls)
        return instance

    def paused(
        self, machine: Machine, references: Callable[[], References]
    ) -> list[PausedFrame] | None:
        """The frames of its functions, where a machine of it has stopped."""
        return paused_frames(machine, references, self._maps, self.sites, self._made)

    def _stopped(
        self, error: BaseException, machine: Machine, references: Callable[[], References]
    ) -> None:
        frames = self.paused(machine, references)
        if frames is not None:
            self._left.append((error, frames))

    def frames_at(self, error: BaseException) -> list[PausedFrame] | None:
        """The frames of the call that an exception ended, which a signal handler or a host function
        raised; None if there are none."""
        for number, (each, frames) in enumerate(self._left):
            if each is error:
                del self._left[number]
                return frames
        return None
