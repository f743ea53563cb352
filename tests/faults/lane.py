# SPDX-License-Identifier: Apache-2.0
"""Planted faults of items in lanes: the vectorisation with one mistake each.

The code of `tests/ir/lane/case.py` is vectorised with the fault and evaluated in Python, lanes next
to items one by one: results, memory, and the words of the lanes that leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

from ferryvm.errors import FerryError
from ferryvm.ir.graph import Constant, Operation, Value
from ferryvm.ir.lane import widen
from ferryvm.ir.lane.assignment import Assignments
from ferryvm.ir.lane.emission import Emission
from ferryvm.ir.lane.linearise import Linearisation
from ferryvm.ir.lane.shape import UNIFORM, VARYING, Shape, computed_shape
from ferryvm.ir.lane.variable import LaneValue
from ferryvm.ir.lane.vectorise import lanes_of
from ferryvm.ir.lane.widen import Widening
from ferryvm.ir.parse import parse_module

from ..ir.lane.case import CASES, in_lanes, one_by_one
from ..ir.lane.evaluator import LaneEvaluator


class LaneFault(NamedTuple):
    """A function with a mistake."""

    name: str
    about: str
    owner: Any
    function: str
    faulty: Callable[..., Any]


_blend, _suspend, _leave = Emission.blend, Widening.suspend, LaneEvaluator._leave
_store, _run, _masks = Widening._store, Widening.run, Linearisation._masks


def _swapped(self: Emission, mask: Value, new: LaneValue, old: LaneValue | None) -> LaneValue:
    return _blend(self, mask, new if old is None else old, old if old is None else new)


def _last_wins(self: Emission, mask: Value, new: LaneValue, old: LaneValue | None) -> LaneValue:
    return new


def _uncleared(self: Widening, operation: Operation, p: Value, *, stops: bool = False) -> None:
    mask = self.emission.mask
    _suspend(self, operation, p, stops=stops)
    self.emission.mask = mask


def _all_leave(self: Widening, operation: Operation, p: Value, *, stops: bool = False) -> None:
    emission = self.emission
    if p in emission.varying:
        p = emission.emit("any_lane", p.type, (), (emission.both(emission.mask, p),))
    _suspend(self, operation, p, stops=stops)


def _others_frame(self: LaneEvaluator, operation: Operation, lane: int) -> None:
    before, other = {**self.suspended}, (lane + 1) % self.lanes
    self.suspended = {}
    _leave(self, operation, other)
    self.suspended = before | {lane: self.suspended[other]}


def _unmasked_store(
    self: Widening,
    operation: Operation,
    mask: Value,
    place: LaneValue,
    offset: LaneValue,
    value: Value,
) -> None:
    _store(self, operation, self.emission.true, place, offset, value)


def _all_others(self: Linearisation, end: Any, value: Value) -> list[Value]:
    masks = _masks(self, end, value)
    return [*masks[:-1], self.emission.none(masks[0])]


def _exchanged(self: Linearisation, end: Any, value: Value) -> list[Value]:
    return _masks(self, end, value)[::-1]


def _run_unmasked(self: Widening, operation: Operation) -> LaneValue | None:
    mask, self.emission.mask = self.emission.mask, self.emission.true
    found = _run(self, operation)
    if self.emission.mask is self.emission.true:
        self.emission.mask = mask
    return found


def _any_of(self: LaneEvaluator, operation: Operation, mask: Any) -> int:
    return int(all(self._each(mask)))


def _first_lane(self: LaneEvaluator, operation: Operation, mask: Any) -> int:
    return int(self._each(mask)[0])


def _kept_value(self: Assignments, value: Value) -> LaneValue:
    if isinstance(value, Constant):
        return LaneValue(self.emission.constant(value.type, value.bits))
    return self.read(self.variable(value))


def _shaped(change: Callable[[Operation, Sequence[Shape], Shape], Shape]) -> Callable[..., Shape]:
    def faulty(operation: Operation, shapes: Sequence[Shape]) -> Shape:
        return change(operation, shapes, computed_shape(operation, shapes))

    return faulty


def _uniform_compare(operation: Operation, shapes: Sequence[Shape], right: Shape) -> Shape:
    return UNIFORM if operation.name == "compare" and VARYING not in shapes else right


def _stride_kept(operation: Operation, shapes: Sequence[Shape], right: Shape) -> Shape:
    return shapes[0] if operation.name in ("mul", "shl") and right is not VARYING else right


def _stride_of_sum(operation: Operation, shapes: Sequence[Shape], right: Shape) -> Shape:
    known = [s for s in shapes if s is not None]
    if operation.name in ("add", "sub") and right is not VARYING:
        return max(known, key=abs)
    return right


def _unsafe_divisor(self: Widening, operation: Operation, value: Value, is_varying: bool) -> Value:
    return value


def _unsafe(self: Emission, value: Value, otherwise: int) -> Value:
    return value


class _Stride:
    """Equal to the stride of any affine value."""

    __hash__ = None  # type: ignore[assignment]  # it is only compared

    def __eq__(self, other: object) -> bool:
        return other is not VARYING and other != UNIFORM


def _as_consecutive(operation: Operation) -> object:
    return _Stride()


FAULTS = (
    LaneFault(
        "lane-blended-backwards",
        "Where two paths join, each lane gets the value of the other path.",
        Emission,
        "blend",
        _swapped,
    ),
    LaneFault(
        "lane-last-path-wins",
        "Where two paths join, all lanes get the value of the second one.",
        Emission,
        "blend",
        _last_wins,
    ),
    LaneFault(
        "lane-goes-on",
        "A lane that has left stays in the mask.",
        Widening,
        "suspend",
        _uncleared,
    ),
    LaneFault(
        "lane-suspends-neighbours",
        "The exit of one lane suspends all that are with it.",
        Widening,
        "suspend",
        _all_leave,
    ),
    LaneFault(
        "lane-with-frame-of-next",
        "A lane that leaves has the frame of the next one.",
        LaneEvaluator,
        "_leave",
        _others_frame,
    ),
    LaneFault(
        "lane-stores-unmasked",
        "A lane stores although its mask is off.",
        Widening,
        "_store",
        _unmasked_store,
    ),
    LaneFault(
        "lane-mask-dropped",
        "The operations of a block behind a branch run in all lanes.",
        Widening,
        "run",
        _run_unmasked,
    ),
    LaneFault(
        "lane-else-of-all",
        "Lanes that were not at a branch take its second edge.",
        Linearisation,
        "_masks",
        _all_others,
    ),
    LaneFault(
        "lane-branch-negated",
        "Lanes take the other edge of a branch.",
        Linearisation,
        "_masks",
        _exchanged,
    ),
    LaneFault(
        "lane-loop-ends-with-first",
        "A loop ends when the first lane has left it.",
        LaneEvaluator,
        "do_any_lane",
        _any_of,
    ),
    LaneFault(
        "lane-loop-asks-one",
        "A loop runs as long as lane 0 is in it.",
        LaneEvaluator,
        "do_any_lane",
        _first_lane,
    ),
    LaneFault(
        "lane-keeps-last-iteration",
        "Behind a loop a lane has the value of the last iteration of all.",
        Assignments,
        "value",
        _kept_value,
    ),
    LaneFault(
        "lane-compares-once",
        "A comparison that differs from lane to lane is done for the first one only.",
        widen,
        "computed_shape",
        _shaped(_uniform_compare),
    ),
    LaneFault(
        "lane-stride-of-factor",
        "A multiple of the item has the stride of the item.",
        widen,
        "computed_shape",
        _shaped(_stride_kept),
    ),
    LaneFault(
        "lane-stride-of-sum",
        "A sum of two affine values has the stride of one of them.",
        widen,
        "computed_shape",
        _shaped(_stride_of_sum),
    ),
    LaneFault(
        "lane-divides-unmasked",
        "A lane that takes no part divides by whatever its divisor is.",
        Widening,
        "_divisor",
        _unsafe_divisor,
    ),
    LaneFault(
        "lane-loads-unmasked",
        "A uniform load is done where no lane takes part.",
        Emission,
        "safe",
        _unsafe,
    ),
    LaneFault(
        "lane-strided-as-consecutive",
        "Elements at a distance are accessed as if they were side by side.",
        widen,
        "_bytes",
        _as_consecutive,
    ),
)


@contextmanager
def planted(fault: LaneFault) -> Iterator[None]:
    """Context in which items are vectorised and run with the fault."""
    with mock.patch.object(fault.owner, fault.function, fault.faulty):
        yield


def find(fault: LaneFault) -> str | None:
    """The name of the first case that shows the fault; None if none does."""
    for name, text in CASES.items():
        for shared in (0, 3, 6):
            module = parse_module(text)
            expected = one_by_one(module, shared)
            try:
                with planted(fault):
                    found = in_lanes(lanes_of(module), shared)
            except (AssertionError, KeyError, ArithmeticError, IndexError, FerryError):
                return name
            if found != expected:
                return name
    return None
