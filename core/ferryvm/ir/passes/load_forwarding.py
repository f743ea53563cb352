# SPDX-License-Identifier: Apache-2.0
"""Scalar replacement: forward values that a loop has loaded, in this iteration or the one before.

    b0(%p):                         b0(%p, %old):                 %old = heap_load 4 %start + 8
      %a = heap_load 4 %p + 8                                     in the preheader
      %b = heap_load 4 %p + 12  ─>    %b = heap_load 4 %p + 12
      …                               …
      jump b0(%p + 4)                 jump b0(%p + 4, %b)

Inner loops whose blocks form one path are handled, and addresses that are an induction variable
plus a constant. The footprints that `loop_versioning` recorded show which stores do not overlap a
load. (Callahan, Carr, Kennedy: Improving Register Allocation for Subscripted Variables, PLDI 1990.)

The preheader loads even if the loop makes no iteration, so the pass is for compilers whose loads
cannot fault. Requires `strength_reduction`; leaves loads without a use to `dead_code`. Preserves
effects and exits; loops get parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ferryvm.ir.address import split
from ferryvm.ir.build import Builder
from ferryvm.ir.footprint import Footprint
from ferryvm.ir.graph import (
    Block,
    Body,
    Constant,
    Operation,
    Parameter,
    Static,
    Value,
    ValueType,
)
from ferryvm.ir.loop.induction import recurrences
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.operation import CALLS, UPDATES
from ferryvm.ir.use import substitute, users_of
from ferryvm.isa.type import I64, signed

_CONVERSIONS = frozenset({"wrap", "reinterpret"})

_Form = tuple[str, tuple[Static, ...], ValueType | None]
_Shape = tuple[_Form, ...]
"""A load and the conversions of its value: names, attributes and type."""

_Address = tuple[Value | None, int, tuple[Static, ...]]
"""A value, the constant that is added to it, and the number of loaded bytes or the elements."""

_LOADS = frozenset({"heap_load", "element_load", "context_load"})
_HEAP_CHANGES = frozenset({"heap_store", "canonicalise", "elements_to_heap"})
_CHANGES = (
    _HEAP_CHANGES
    | UPDATES
    | {
        "element_store",
        "canonicalise_elements",
        "context_store",
        "elements_from_heap",
        "fill_elements",
        "move_elements",
    }
)


def forward_loads(
    body: Body,
    footprints: Mapping[Operation, Footprint],
    most: Callable[[Sequence[Operation]], int],
) -> None:
    """Replace loads of inner loops by values that they have loaded before.

    `footprints`: of accesses, as far as known; `most`: the number of values that a loop with a
    given number of operations may pass from iteration to iteration.
    """
    loops = find_loops(body)
    users = users_of(body) if loops else {}
    new: dict[Value, Value] = {}
    for loop in loops:
        path = _path(loop) if loop.is_innermost else []
        if path:
            new |= _Forwarding(body, loop, path, footprints, users).run(most)
    if new:
        substitute(body.blocks, new)


def _path(loop: Loop) -> list[Block]:
    """The blocks of a loop with one entry, in order, if each iteration executes all of them; else
    none."""
    if loop.entry is None or loop.back_edge is None:
        return []
    graph, found = loop.graph, [loop.header]
    while True:
        inside = [e for e in found[-1].end.edges if graph.places.get(e.block) in loop.blocks]
        if len(inside) != 1:
            return []
        (edge,) = inside
        if edge.block is loop.header:
            return found
        if graph.only_edge(graph.places[edge.block]) is None:
            return []
        found.append(edge.block)


def _form(operation: Operation) -> _Form:
    return operation.name, operation.static, operation.type


def _address(load: Operation) -> _Address:
    return *split(load.arguments[0]), load.static


def _is_of_other(load: Operation, change: Operation) -> bool:
    """True if another item of an unrolled loop makes a change, which the item that loads does not
    see."""
    one, other = load.item, change.item
    return (
        one is not None
        and other is not None
        and (one.launch, one.loop) == (other.launch, other.loop)
        and one.number != other.number
        and change.name not in UPDATES
    )


class _Forwarding(Builder):
    """One loop, and its preheader, in which new code is built."""

    def __init__(
        self,
        body: Body,
        loop: Loop,
        path: list[Block],
        footprints: Mapping[Operation, Footprint],
        users: Mapping[Value, Sequence[Operation | None]],
    ) -> None:
        super().__init__(body.constants)
        self.loop, self.footprints = loop, footprints
        self.operations = [o for block in path for o in block.operations]
        self.inside, self.users = {*self.operations}, users
        (self.entry,), (self.back_edge,) = loop.entries, loop.back_edges
        self.stores = {
            (operation.name, split(operation.arguments[0])): operation
            for operation in self.operations
            if operation.name in ("heap_store", "element_store")
        }

    def run(self, most: Callable[[Sequence[Operation]], int]) -> dict[Value, Value]:
        """Change the loop; returns the values that replace loads."""
        if any(operation.name in CALLS for operation in self.operations):
            return {}
        new: dict[Value, Value] = dict(self._in_iteration())
        others = [o for o in self.operations if o.name in _LOADS and o not in new]
        groups: dict[tuple[Parameter, int, _Shape], dict[int, Operation]] = {}
        steps = dict(self._steps())
        for load in others:
            base, offset, _ = _address(load)
            if isinstance(base, Parameter) and base in steps and self._is_apart_from_all(load):
                value, shape = self._converted(load)
                groups.setdefault((base, steps[base], shape), {})[offset] = value
        remaining = most(self.operations) if groups else 0
        self.open(self.loop.preheader)
        self.pc = self.loop.preheader.end.pc
        for (base, step, shape), values in groups.items():
            while values:
                offset = max(values) if step > 0 else min(values)
                found = self._earlier(values, offset, step, remaining)
                remaining -= len(found)
                last: Value = values.pop(offset)
                for each in found:
                    last = new[values.pop(each)] = self._passed_on(last, base, each, shape)
        return {load: new.get(value, value) for load, value in new.items()}

    def _steps(self) -> Iterator[tuple[Parameter, int]]:
        """The recurrences with a constant step, with that step."""
        for parameter, known in recurrences(self.loop).items():
            if isinstance(known.step, Constant) and known.step.bits:
                yield parameter, signed(I64, known.step.bits)

    def _converted(self, load: Operation) -> tuple[Operation, _Shape]:
        """The value of a load, or its only conversion; and its shape."""
        value, shape = load, [_form(load)]
        while len(users := self.users.get(value, ())) == 1:
            (user,) = users
            if user is None or user not in self.inside or user.name not in _CONVERSIONS:
                break
            value = user
            shape.append(_form(value))
        return value, tuple(shape)

    def _earlier(
        self, values: Mapping[int, Operation], newest: int, step: int, most: int
    ) -> list[int]:
        """Offsets of loads that equal the newest one an iteration, two, … later."""
        found: list[int] = []
        while len(found) < most and newest - (len(found) + 1) * step in values:
            found.append(newest - (len(found) + 1) * step)
        return found

    def _passed_on(self, value: Value, base: Parameter, offset: int, shape: _Shape) -> Parameter:
        """A parameter with a value of the previous iteration; in the first iteration the value in
        memory at an offset from a base."""
        header = self.loop.header
        start = self.entry.edge.arguments[header.parameters.index(base)]
        first = self.add(I64, start, self.constant(I64, offset & I64.mask))
        for name, static, t in shape:
            has_index = name in ("element_load", "context_load")
            more = (self.constant(I64, 0),) if has_index else ()
            first = self.emit(Operation(name, t, static, (first, *more)))
        assert first.type is not None
        found = Parameter(first.type)
        header.parameters.append(found)
        self.entry.edge.arguments.append(first)
        self.back_edge.edge.arguments.append(value)
        return found

    # --- in one iteration -----------------------------------------------------------------------

    def _in_iteration(self) -> Iterator[tuple[Operation, Operation]]:
        """Loads, with earlier loads of the same value."""
        there: dict[_Address, tuple[Operation, list[Operation]]] = {}
        """By address the first load, with the changes since then that may be of the loaded
        bytes."""
        for operation in self.operations:
            if operation.name in _LOADS:
                address = _address(operation)
                first, changes = there.get(address, (operation, []))
                if first is not operation and all(_is_of_other(operation, c) for c in changes):
                    yield operation, first
                else:
                    there[address] = operation, []
            elif operation.name in _CHANGES:
                for load, changes in there.values():
                    if not self._is_apart(load, operation):
                        changes.append(operation)

    def _is_apart_from_all(self, load: Operation) -> bool:
        changes = (o for o in self.operations if o.name in _CHANGES)
        return all(self._is_apart(load, each) for each in changes)

    def _is_apart(self, load: Operation, change: Operation) -> bool:
        """True if an operation certainly changes no loaded byte, in any iteration."""
        contexts = load.name == "context_load", change.name == "context_store"
        if any(contexts):
            return not all(contexts) or load.static[1:] != change.static[1:]
        is_element = load.name == "element_load"
        if is_element is (change.name in _HEAP_CHANGES):
            return True
        if is_element and load.static != change.static[:1]:
            return True
        here = self.footprints.get(load)
        if here is None:
            return False
        if change.name in ("heap_store", "element_store"):
            there = self.footprints.get(change)
            return there is not None and here.is_apart(there)
        if change.name == "canonicalise":
            keys = [("heap_store", split(address)) for address in change.arguments[::2]]
        elif change.name == "canonicalise_elements":
            keys = [("element_store", split(address)) for address in change.arguments[::3]]
        else:
            return False
        stores = [self.stores.get(key) for key in keys]
        return all(store is not None and self._is_apart(load, store) for store in stores)
