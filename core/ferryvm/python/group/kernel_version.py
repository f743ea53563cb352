# SPDX-License-Identifier: Apache-2.0
"""A kernel compiled for a form of launches and certain kinds of arguments."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ferryvm.engine import Engine
from ferryvm.machine.state import Machine
from ferryvm.python.compiled.compiled_version import Version
from ferryvm.python.compiled.pause import PausedFrame
from ferryvm.python.compiled.program import Unit
from ferryvm.python.control_flow.kernel_source import KernelSource, Layout, Role
from ferryvm.python.definition.free_name import FreeNames
from ferryvm.python.value.kind import Kind

if TYPE_CHECKING:
    from ferryvm.engine.reference import References


class KernelVersion(Version):
    """The code for a form of launches and kinds of arguments."""

    def __init__(
        self,
        function: types.FunctionType,
        kinds: Sequence[Kind],
        engine: Engine,
        free: FreeNames,
        layout: Layout,
    ) -> None:
        self._layout = layout
        super().__init__(function, kinds, None, engine, free)

    def _unit(self, function: types.FunctionType, target: Kind | None) -> Unit:
        unit = Unit(function, self.kinds, target, self.free.names, self._layout)
        self.line = unit.line
        """The line of the definition."""
        return unit

    def launch(self, counts: Sequence[int], values: Sequence[object]) -> None:
        """Launch so many items, or groups if there are some, along each axis. Raises what the call
        of an instance raises."""
        flat = self.flattened(values)
        self.use(lambda function: function(*counts, *flat))

    def flattened(self, values: Sequence[object]) -> Sequence[object]:
        """Arguments as the launch takes them."""
        return values if self.flat is None else self.flat(values)

    def paused(
        self, machine: Machine, references: Callable[[], References]
    ) -> list[PausedFrame] | None:
        """The frames of the kernel and of the functions that it calls, where a machine of it has
        stopped; that of a group, if it is not in an item."""
        found: list[PausedFrame] = []
        for each in super().paused(machine, references) or ():
            role = each.source.of.role if isinstance(each.source, KernelSource) else Role.HELPER
            if role is Role.LAUNCH or (role is Role.GROUP and found):
                break
            found.append(each)
        return found or None
