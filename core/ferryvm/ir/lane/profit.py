# SPDX-License-Identifier: Apache-2.0
"""Items that are better run one after another: their own loops are the ones to vectorise.

    item: for x in a row: to[row * size + x] = …       consecutive in the loop, far apart in lanes

In lanes each such access is a gather or a scatter, which takes as long as its lanes one by one. One
item after another, the loop has vectors of consecutive elements, and each line of the cache is
used at once. Not so if the loop carries few floats from one iteration to the next, as a sum does:
then it cannot be vectorised by itself, and waits for each addition; lanes have independent sums.
"""

from __future__ import annotations

from ferryvm.ir.control_flow_graph import edges_to
from ferryvm.ir.graph import Body, Constant, Operation, Parameter, Value
from ferryvm.ir.index import plain_index
from ferryvm.ir.lane.shape import UNIFORM, VARYING, Shape, computed_shape
from ferryvm.ir.loop.induction import recurrences
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.operation import element_bytes
from ferryvm.isa.element import Element
from ferryvm.isa.type import I64, Type, signed

MOST_SUMS = 7
"""Floats that a loop may carry: with more, the loop has enough that is independent."""

REASON = "its items' loops access elements one after another, which lanes would gather"


def is_better_scalar(item: Body) -> bool:
    """True if a loop of an item's code accesses elements that are consecutive, or in equal steps,
    from one iteration to the next, but not from one item to the next."""
    strides = _Strides(item)
    return any(_walks(loop, strides) for loop in find_loops(item) if loop.is_innermost)


def _walks(loop: Loop, strides: _Strides) -> bool:
    floats = sum(p.type is not I64 and _is_float(p) for p in loop.header.parameters)
    if 0 < floats <= MOST_SUMS:
        return False
    steps: dict[Value, int] = {}
    for parameter, recurrence in recurrences(loop).items():
        if isinstance(recurrence.step, Constant):
            steps[parameter] = signed(I64, recurrence.step.bits)
    for access in loop.operations:
        if access.name not in ("element_load", "element_store"):
            continue
        kind = access.static[0]
        assert isinstance(kind, Element | int)
        offset = access.arguments[1]
        lanes = strides.of(offset)
        if lanes not in (UNIFORM, element_bytes(kind)) and _step(loop, offset, steps):
            return True
    return False


def _is_float(parameter: Parameter) -> bool:
    return isinstance(parameter.type, Type) and parameter.type.is_float


def _step(loop: Loop, value: Value, steps: dict[Value, int]) -> Shape:
    """The constant by which a value changes in each iteration of a loop; None if there is none. An
    index that counts from the end where it is negative is taken for one that is not."""
    value = plain_index(value)
    if loop.is_invariant(value):
        return UNIFORM
    if value not in steps and isinstance(value, Operation) and value.name in _AFFINE:
        found = computed_shape(value, [_step(loop, each, steps) for each in value.arguments])
        if found is not VARYING:
            steps[value] = found
    return steps.get(value)


_AFFINE = ("add", "sub", "mul", "shl")


class _Strides:
    """The differences of values of an item's code from those of the item before."""

    def __init__(self, item: Body) -> None:
        self._known: dict[Value, Shape] = dict.fromkeys(item.constants.values(), UNIFORM)
        self._own = {value for b in item.blocks for value in (*b.parameters, *b.operations)}
        entry = item.blocks[0]
        for number, parameter in enumerate(entry.parameters):
            self._known[parameter] = UNIFORM if number else 1
        into = edges_to(item)
        loops = {loop.header: recurrences(loop) for loop in find_loops(item)}
        for block in item.blocks:
            for index, parameter in enumerate(block.parameters):
                recurrence = loops.get(block, {}).get(parameter)
                if parameter in self._known:
                    continue
                if recurrence is not None and self.of(recurrence.step) == UNIFORM:
                    self._known[parameter] = self.of(recurrence.start)
                    continue
                found = {self.of(edge.arguments[index]) for edge in into[block] if not edge.is_back}
                is_carried = any(edge.is_back for edge in into[block])
                one = found.pop() if len(found) == 1 else VARYING
                self._known[parameter] = VARYING if is_carried else one
            for operation in block.operations:
                if operation.type is not None:
                    plain = plain_index(operation)
                    shapes = [self.of(each) for each in operation.arguments]
                    shape = computed_shape(operation, shapes)
                    self._known[operation] = shape if plain is operation else self.of(plain)

    def of(self, value: Value) -> Shape:
        """The difference; None if it is not known, or not constant."""
        return self._known.get(value, VARYING if value in self._own else UNIFORM)
