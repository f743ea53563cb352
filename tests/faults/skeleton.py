# SPDX-License-Identifier: Apache-2.0
"""Planted faults of reductions, scans and atomic updates: another shape, another order, lost ones.

Sums of floats are held against the order that docs/parallel.md states (`tests/skeleton/order.py`),
updates against the loop.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import ferryvm
from ferryvm import Engine
from ferryvm.engine import launching
from ferryvm.isa.type import I64, ValueType, signed
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When
from ferryvm.region import launch
from ferryvm.skeleton import reduction, scan
from ferryvm.skeleton.array_type import ArrayType
from ferryvm.skeleton.operation import Operation
from ferryvm.skeleton.writer import Push, Writer
from ferryvm_backends._llvm import ir
from ferryvm_backends.llvm import object as native_object

from ..skeleton.order import ACCUMULATORS, BLOCK, SCAN_BLOCK, reduced, scanned

_TEXT = """
(define (longer a b) (if (> (abs a) (abs b)) (+ a 0.1) b))
(define (total (xs (array f64))) (reduce + xs))
(define (totals! (to (array f64)) (xs (array f64))) (array-copy! to 0 (scan + xs)))
(define (longest (xs (array f64))) (reduce longer 0 xs))
"""
_COUNTING = """
(define (count item to from)
  (define x (array-ref from (& item 255)))
  (atomic-add! to (& x 1) x))
(define (take item to from) (array-set! to item (atomic-fetch-add! from 0 (+ item 1))))
(define xs (scan + (make-array i64 256 1)))
(define hash 0)
(define (go)
  (define bins (make-array i64 2))
  (define turns (make-array i64 {turns}))
  (for-each-item {items} (count bins xs))
  (for-each-item {turns} (take turns bins))
  (set! hash (+ (* 31 hash) (* 7 (array-ref bins 0)) (reduce ^ turns) (array-ref bins 1))))
(define i 0)
(while (< i {times}) (go) (set! i (+ i 1)))
hash
"""
_ITEMS, _TURNS, _TIMES = 100_000, 40_000, 20
_ROUNDS = 3
"""Times that this is tried: threads may happen not to meet."""


class SkeletonFault(NamedTuple):
    """Functions or constants with a mistake, in `owner`."""

    name: str
    about: str
    owner: Any
    changes: dict[str, Any]
    races: bool = False
    """True if updates by items on threads show it."""


_combine = Operation.combine


def _exchanged(
    self: Operation, writer: Writer, into: Sequence[int], right: Push, type_: ValueType
) -> None:
    if not self.is_function:
        _combine(self, writer, into, right, type_)
        return
    right()
    writer.get(*into)
    writer.emit("call", self.name)
    writer.set(*into)


def _place_of_neighbour(
    self: ArrayType, writer: Writer, array: int, index: Push, part: int
) -> None:
    writer.get(array)
    index()
    writer.i64(part)
    writer.emit("i64.add")


def _in_two_steps(builder: ir.IRBuilder, kind: Any, where: ir.Value, operand: ir.Value) -> ir.Value:
    former = builder.load(where, typ=operand.type)
    late = former  # divisions, so that there is time between the steps
    for _ in range(20):
        late = builder.udiv(late, builder.or_(operand, ir.Constant(operand.type, 1)))
    nothing = builder.lshr(late, ir.Constant(operand.type, 63))
    builder.store(builder.add(builder.add(former, operand), nothing), where)
    return former


FAULTS = (
    SkeletonFault(
        "reduction-in-smaller-blocks",
        "A reduction has blocks of 512 elements.",
        reduction,
        {"BLOCK": 512, "BLOCK_SHIFT": 9},
    ),
    SkeletonFault(
        "reduction-with-fewer-accumulators",
        "A block is reduced with 8 accumulators.",
        reduction,
        {"ACCUMULATORS": 8},
    ),
    SkeletonFault(
        "reduction-with-operands-exchanged",
        "The value so far is the right operand of a function.",
        Operation,
        {"combine": _exchanged},
    ),
    SkeletonFault(
        "scan-in-smaller-blocks",
        "A scan has blocks of 128 elements.",
        scan,
        {"BLOCK": 128, "BLOCK_SHIFT": 7},
    ),
    SkeletonFault(
        "pairs-that-overlap",
        "A complex number begins at its own number, not at twice that.",
        ArrayType,
        {"_push_place": _place_of_neighbour},
    ),
    SkeletonFault(
        "updates-lost",
        "An update reads, then adds and writes.",
        native_object,
        {"update": _in_two_steps},
        races=True,
    ),
    SkeletonFault(
        "updates-in-any-order",
        "Items that use what an update returns run out of order.",
        launch,
        {"ordered_updates": lambda verified: {}},
        races=True,
    ),
)


def _on_threads() -> Engine:
    options = Options(background=False, threads=2, cache=False)
    when = When((Test("kind", (Like("launch"),)),))
    rule = Rule(when=when, backends=(Choice("llvm", options),))
    return Engine(policy=Policy(rules=(rule,), profile=Profile(loop_threshold=2)))


@contextlib.contextmanager
def planted(fault: SkeletonFault | None) -> Iterator[None]:
    """Context in which launches run on threads, however few items they have, with the fault."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.multiple(launching, WORTH=0.0, SAMPLE=0.0))
        if fault is not None:
            stack.enter_context(mock.patch.multiple(fault.owner, **fault.changes))
        yield


def _longer(a: float, b: float) -> float:
    return a + 0.1 if abs(a) > abs(b) else b


def _sums() -> str | None:
    """The first sum that is not that of the stated order."""
    instance = Engine("threaded").instantiate(ferryvm.compile(_TEXT))
    for size in (40, BLOCK + 500):
        xs = np.random.default_rng(size).normal(size=size)
        if instance.total(xs) != reduced(xs.tolist(), operator.add, ACCUMULATORS):
            return f"a sum of {size} floats"
        if instance.longest(xs) != _longer(0.0, reduced(xs.tolist(), _longer, 1)):
            return f"a function of {size} floats"
    xs, found = np.random.default_rng(3).normal(size=3 * SCAN_BLOCK), np.empty(3 * SCAN_BLOCK)
    instance.call("totals!", found, xs)
    if found.tolist() != scanned(xs.tolist(), operator.add):
        return "a scan"
    product = ferryvm.function(backend="threaded")(lambda z, w: z * w)
    zs = np.exp(1j * xs)
    if ferryvm.scan(product, zs).tolist() != scanned([*zs], operator.mul):
        return "a scan of complex numbers"
    return None


def _expected() -> int:
    """The result of the program that counts."""
    xs = [1 + (item & 255) for item in range(_ITEMS)]
    bins = sum(x for x in xs if x % 2 == 0), sum(x for x in xs if x % 2)
    turns = [bins[0] + item * (item + 1) // 2 for item in range(_TURNS + 1)]
    last, found = turns.pop(), functools.reduce(operator.xor, turns)
    total = 0
    for _ in range(_TIMES):
        total = 31 * total + 7 * last + found + bins[1]
    return signed(I64, total & I64.mask)


def _updates() -> str | None:
    """The first round in which updates are not those of the loop."""
    engine, wanted = _on_threads(), _expected()
    program = ferryvm.compile(_COUNTING.format(items=_ITEMS, turns=_TURNS, times=_TIMES))
    for _ in range(_ROUNDS):
        if engine.start(program).run().value != wanted:
            return "updates on threads"
    return None


def find(fault: SkeletonFault | None, *, races: bool = False) -> str | None:
    """The first case that shows the fault; None if none does. `races`: as of a fault."""
    with planted(fault):
        return _updates() if (races if fault is None else fault.races) else _sums()
