# SPDX-License-Identifier: Apache-2.0
"""The values of an item where a parallel region begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferryvm.ir.graph import Block, Constant, Operation, Value
from ferryvm.ir.group.home import Homes


class EntryValues:
    """The value that stands for each one of an item: what items share, the item's number, or the
    value computed anew in its block; `load` loads one from its context array."""

    def __init__(
        self,
        homes: Homes,
        shared: Mapping[Value, Value],
        index: Value,
        block: Block,
        load: Callable[[Value], Value],
    ) -> None:
        self._homes, self._shared, self._index = homes, shared, index
        self._block, self._load = block, load
        self.found: dict[Value, Value] = {}
        """By value of an item, those that were loaded or computed."""

    def __call__(self, value: Value) -> Value:
        """The value that stands for one of items."""
        homes = self._homes
        if isinstance(value, Constant) or value not in homes.defined:
            return value
        if homes.is_shared(value):
            return self._shared[value]
        if value is homes.launch.number:
            return self._index
        found = self.found.get(value)
        if found is None:
            is_stored = homes.cost(value) is None
            found = self.found[value] = self._load(value) if is_stored else self._computed(value)
        return found

    def _computed(self, value: Value) -> Value:
        assert isinstance(value, Operation)
        arguments = tuple([self(each) for each in value.arguments])
        new = Operation(value.name, value.type, value.static, arguments)
        new.pc = value.pc
        self._block.operations.append(new)
        return new
