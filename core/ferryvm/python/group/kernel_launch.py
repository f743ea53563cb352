# SPDX-License-Identifier: Apache-2.0
"""Launches of a kernel of one form: its versions by kinds of arguments, and the exceptions of its
items."""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ferryvm.engine import ProgramInterrupted, TrapError
from ferryvm.engine.independence import checking_engine
from ferryvm.engine.marshal import CallError
from ferryvm.errors import FerryError
from ferryvm.isa.trap import Trap
from ferryvm.policy import Policy
from ferryvm.python.call.continuation import raise_at
from ferryvm.python.call.function import PythonFunction
from ferryvm.python.call.interruption import unless_it_goes_on
from ferryvm.python.compiled.pause import PausedFrame
from ferryvm.python.compiled.program import Unit
from ferryvm.python.control_flow.kernel_source import Layout
from ferryvm.python.definition.free_name import FreeNames
from ferryvm.python.definition.raised import StatementError, add_place, site_of
from ferryvm.python.definition.refusal import without_numbers
from ferryvm.python.definition.site import Site
from ferryvm.python.fault import UnsupportedError
from ferryvm.python.group.kernel_race import described
from ferryvm.python.group.kernel_version import KernelVersion
from ferryvm.python.group.repeated_launch import RepeatedLaunch, RepeatedLaunches, launch_key
from ferryvm.python.group.resident_launch import launched_on_device
from ferryvm.python.hosted.work_item import KernelError
from ferryvm.python.value.device_array import DeviceArray, device_arrays, storage_of
from ferryvm.python.value.foreign_array import viewed_array
from ferryvm.python.value.kind import Kind, has_list
from ferryvm.python.value.value_kind import MisfitError

if TYPE_CHECKING:
    from ferryvm.python.call.explanation import FunctionExplanation

_ITEM = re.compile(r", in item \d+( \([\d, ]*\))?$")
"""The item of a group, at the end of an engine's message."""


class LaunchedKernel(PythonFunction[..., None]):
    """A kernel in launches of one form."""

    def __init__(
        self,
        function: types.FunctionType,
        backend: str | None,
        policy: Policy | None,
        layout: Layout,
        is_checked: bool = False,
    ) -> None:
        """`is_checked`: check that items are independent."""
        super().__init__(function, backend, policy, True)
        self.layout, self._is_checked = layout, is_checked
        self._repeated = RepeatedLaunches()
        if is_checked:
            self._engine = checking_engine()

    def launch(self, counts: Sequence[int], arguments: Sequence[Any]) -> None:
        """Launch so many items, or groups if there are some, along each axis. Raises what an item
        raises, and errors as `ferryvm.launch`."""
        key = launch_key(counts, arguments)
        if key is not None and self._repeated.run(key, self.__ferryvm_function__):
            return
        bound = self.bound(arguments, {})
        taken = [*map(self._argument, self.parameters, bound)]
        given = [each for value in taken for each in device_arrays(value)]
        values = [*map(storage_of, taken)] if given else taken
        try:
            version = self.version(values)
        except UnsupportedError as error:
            raise error.with_traceback(None) from None
        assert isinstance(version, KernelVersion)
        passed = (*values, *version.free.values(self.__ferryvm_function__))
        try:
            if not (given and self._has_run_on_device(version, counts, passed, given, key)):
                version.launch(counts, passed)
        except TrapError as error:
            trap = error
        except CallError as error:  # arrays that overlap
            raise self.refused(without_numbers(str(error))) from None
        except FerryError as error:
            raise self._dependence(version, counts, error) or error.with_traceback(None) from None
        except StatementError as error:
            raise error.error from None
        except ProgramInterrupted as error:
            stopped = unless_it_goes_on(error)
            if stopped is None:
                return
            if stopped.error.call is not None:
                stopped.error.call.abandon()
            raise stopped.raised.with_traceback(None) from None
        else:
            return
        self._raise(version, trap)

    def _has_run_on_device(
        self,
        version: KernelVersion,
        counts: Sequence[int],
        values: Sequence[Any],
        given: Sequence[DeviceArray],
        key: Hashable | None,
    ) -> bool:
        """True if a device has run all items of a launch with arrays that may be there."""
        reason, repeated = launched_on_device(version, counts, values, given)
        free = launch_key((), version.free.values(self.__ferryvm_function__))
        if repeated is not None and key is not None and free is not None:
            self._repeated.add(key, RepeatedLaunch(version, given, free, repeated))
        if reason:
            self._noted(f"{self.__name__} had its arrays on the host", reason)
        return not reason

    def _dependence(
        self, version: KernelVersion, counts: Sequence[int], error: FerryError
    ) -> KernelError | None:
        """The error for items that are not independent; None if an error is about something
        else."""
        text = str(error)
        found = described(text, self.layout, counts, version.line) if self._is_checked else None
        return None if found is None else KernelError(f"{self.__name__}: {found}")

    def _argument(self, name: str, value: Any) -> Any:
        try:
            return viewed_array(value)
        except MisfitError as misfit:
            raise self.refused(f"argument {name}: {misfit}") from None

    def bound(self, args: Sequence[Any], kwargs: Any) -> tuple[Any, ...]:
        """The argument of each parameter, with the present defaults. Raises KernelError."""
        if len(args) == self._count:
            return tuple(args)
        try:
            found = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise KernelError(f"{self.__name__}: {error}") from None
        found.apply_defaults()
        return tuple(found.arguments.values())

    def _compiled(
        self,
        function: types.FunctionType,
        kinds: tuple[Kind, ...],
        target: Kind | None,
        free: FreeNames,
    ) -> KernelVersion:
        del target
        for name, kind in zip(self.parameters, kinds, strict=False):
            if has_list(kind):
                message = f"argument {name}: a list in a kernel; pass numpy.array(a)"
                raise UnsupportedError(message, None, self.__name__)
        return KernelVersion(function, kinds, self._engine, free, self.layout)

    def _results(self, function: types.FunctionType, kinds: tuple[Kind, ...]) -> set[Kind]:
        return set(Unit(function, kinds, layout=self.layout).results)

    def explain(self) -> FunctionExplanation:
        """The versions that were compiled, with the form of the launch."""
        found, group = super().explain(), self.layout.group
        form = f" in {self.layout.dimensions} dimensions" if self.layout.dimensions > 1 else ""
        if group is not None:
            form = f" in groups of {_shown(group)}"
        backend, _ = self._options
        if backend is not None or self._is_checked:
            form += f" on {backend or 'reference'}{', checked' * self._is_checked}"
        versions = tuple(
            dataclasses.replace(each, signature=each.signature.replace(" -> None", form))
            for each in found.versions
        )
        return dataclasses.replace(found, versions=versions)

    # --- exceptions -------------------------------------------------------------------------

    def _raise(self, version: KernelVersion, error: TrapError) -> NoReturn:
        """Raise the exception of an item."""
        frames = error.state if isinstance(error.state, list) else []
        where = self._where(frames)
        site = site_of(error, version.sites)
        if error.kind is Trap.BARRIER_DIVERGENCE or site is None:
            what = _ITEM.sub("", str(error).splitlines()[0].partition("trap: ")[2])
            raise KernelError(f"{self.__name__}{where and f', {where}'}: {what}") from None
        try:
            if frames:
                raise_at(frames)
            raise self._missed(site)
        except Exception as raised:
            if where:
                add_place(raised, f"in {where} of kernel {self.__name__}")
            raise

    def _missed(self, site: Site) -> Exception:
        """The exception for a site at which CPython raises none, or where it cannot be asked."""
        place = f"{site.position.file}:{site.position.line}"
        if site.is_limit:
            message = f"{site.message or 'an integer does not fit into 64 bits'} ({place})"
            return OverflowError(f"{self.__name__}: {message}; an item cannot go on in CPython")
        made = site.type(f"{site.message} ({place})")
        assert isinstance(made, Exception)
        return made

    def _where(self, frames: Sequence[PausedFrame]) -> str:
        """The item that has stopped, or the group; empty if that is not known."""
        layout, found = self.layout, dict[str, Any]()
        for each in frames:
            found = {name: each.variables[name] for name in each.source.hidden}
            if found:
                break
        index = [found[name] for name in layout.names("index") if name in found]
        group = [found[name] for name in layout.names("group") if name in found]
        if not index:
            return f"group {_shown(group)}" if group else ""
        if layout.group is None:
            return f"item {_shown(index)}"
        number = [g * size + i for g, size, i in zip(group, layout.group, index, strict=True)]
        return f"item {_shown(number)}, item {_shown(index)} of group {_shown(group)}"


def _shown(index: Sequence[int]) -> str:
    return str(index[0]) if len(index) == 1 else str(tuple(index))
