# SPDX-License-Identifier: Apache-2.0
"""Planted faults of items on threads: `ferryvm.engine.parallel` with one mistake each.

A launch of native code whose items store, print, trap or make arrays runs on two threads, in lanes
and one by one, and is held against the loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import ferryvm
from ferryvm import Engine
from ferryvm.engine import launching, parallel
from ferryvm.engine.parallel import ThreadedRanges
from ferryvm.machine.launch import Left
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When

_TEXT = """
(define (body (item i64) (kind i64) (to (array i64)))
  (array-set! to item (+ (* (array-ref to item) 3) (* item item) 1))
  (if (= (% item 20) 7)
    (begin
      (if (= kind 1) (print! item))
      (if (= kind 2) (array-set! to -1 0))
      (if (= kind 3) (array-set! to item (array-length (make-array i64 item)))))))
(define sum 0)
(define (go n kind)
  (define to (make-array i64 (+ n 1)))
  (define i 0)
  (for-each-item n (body kind to))
  (while (< i n) (set! sum (+ (* sum 31) (array-ref to i))) (set! i (+ i 1))))
(go 100 0)
(go 301 {kind})
(go 90 0)
sum
"""
_KINDS = {"stores": 0, "prints": 1, "traps": 2, "makes arrays": 3}
_SUSPENDED = 16
"""Suspended items, twice as many as those after which no further ones begin."""
_WHEN = When((Test("kind", (Like("launch"),)),))


class RangeFault(NamedTuple):
    """A function with a mistake."""

    name: str
    about: str
    owner: Any
    function: str
    faulty: Callable[..., Any]


_finish, _packed, _work = parallel.finish, parallel.packed, parallel._Work
_chunk, _prepare = ThreadedRanges._chunk, parallel._Worker.prepare


def _left(change: Callable[[list[Left]], list[Left]]) -> Callable[..., None]:
    def faulty(objects: Any, limit: int, left: Sequence[Left]) -> None:
        _finish(objects, limit, change([*left]))

    return faulty


def _shifted(left: list[Left]) -> list[Left]:
    blocks = [what for _, what in left if not isinstance(what, int)]
    following = iter(blocks[1:] + blocks[:1])
    return [(n, what) if isinstance(what, int) else (n, next(following)) for n, what in left]


def _without(kept: Callable[[Left], bool]) -> Callable[..., None]:
    return _left(lambda left: [one for one in left if kept(one)])


def _chunks(change: Callable[[int, int], tuple[int, int]]) -> Callable[..., Any]:
    def faulty(chunks: list[tuple[int, int]], *rest: Any) -> Any:
        return _work([chunks[0], *(change(*chunk) for chunk in chunks[1:])], *rest)

    return faulty


def _stale(self: Any, objects: Any, frame: memoryview, first: int) -> None:
    """The frame of the first launch that the thread has seen."""
    _prepare(
        self, objects, self.__dict__.setdefault("seen", memoryview(bytes(frame)).cast("Q")), first
    )


def _cut(objects: Any, stack: memoryview, control: Any, first: int) -> Any:
    block = _packed(objects, stack, control, first)
    block.words[-1] ^= 1
    return block


def _late(objects: Any, stack: memoryview, control: Any, first: int) -> Any:
    block = _packed(objects, stack, control, first)
    return block._replace(pc=block.pc + 1)


def _no_rest(self: ThreadedRanges, *given: Any) -> Any:
    done = _chunk(self, *given)
    done.rest = None
    return done


def _one_less(self: ThreadedRanges, *given: Any) -> Any:
    *others, first, limit = given
    return _chunk(self, *others, first, max(first, limit - 1))


FAULTS = (
    RangeFault("thread-first-of-chunk-lost", "The first item of a chunk is not done.",
        parallel, "_Work", _chunks(lambda first, limit: (min(first + 1, limit), limit))),
    RangeFault("thread-last-of-chunk-lost", "The last item of a chunk is not done.",
        ThreadedRanges, "_chunk", _one_less),
    RangeFault("thread-item-done-twice", "The last item of a chunk is in the next chunk, too.",
        parallel, "_Work", _chunks(lambda first, limit: (first - 1, limit))),
    RangeFault("thread-suspended-lost", "A suspended item is taken as done.",
        parallel, "finish", _without(lambda one: isinstance(one[1], int))),
    RangeFault("thread-last-suspended-lost", "The last one of the suspended items is taken as done.",
        parallel, "finish", _left(lambda left: left[:-1])),
    RangeFault("thread-rest-lost", "Items of a chunk that have not begun are taken as done.",
        ThreadedRanges, "_chunk", _no_rest),
    RangeFault("thread-order-reversed", "Suspended items go on from the highest to the lowest.",
        parallel, "finish", _left(lambda left: left[::-1])),
    RangeFault("thread-frame-of-another", "An item goes on with the frames of the next one.",
        parallel, "finish", _left(_shifted)),
    RangeFault("thread-word-changed", "The topmost word of a suspended item is another.",
        parallel, "packed", _cut),
    RangeFault("thread-behind-exit", "A suspended item goes on behind its exit.",
        parallel, "packed", _late),
    RangeFault("thread-stale-frame", "A thread has the arguments of the first launch.",
        parallel._Worker, "prepare", _stale),
)  # fmt: skip


@functools.cache
def _engine(lanes: int) -> Engine:
    options = Options(background=False, threads=2, lanes=lanes)
    rule = Rule(when=_WHEN, backends=(Choice("llvm", options),))
    return Engine(policy=Policy(rules=(rule,), profile=Profile(loop_threshold=2)))


def outcome(engine: Engine, kind: int) -> tuple[object, list[str]]:
    """Result or trap, and the output."""
    printed: list[str] = []
    execution = engine.start(ferryvm.compile(_TEXT.format(kind=kind)))
    execution.output = printed.append
    try:
        return execution.run().value, printed
    except ferryvm.TrapError as error:
        return str(error), printed


@functools.cache
def expected(kind: int) -> tuple[object, list[str]]:
    """The outcome of the loop."""
    return outcome(Engine("threaded"), kind)


@contextmanager
def planted(fault: RangeFault | None) -> Iterator[None]:
    """Context in which items run on threads, however few they are, with the fault."""
    few = mock.patch.object(parallel, "_MOST_SUSPENDED", _SUSPENDED)
    with few, mock.patch.multiple(launching, WORTH=0.0, SAMPLE=0.0):
        if fault is None:
            yield
            return
        with mock.patch.object(fault.owner, fault.function, fault.faulty):
            yield


def find(fault: RangeFault | None) -> str | None:
    """The first case that shows the fault; None if none does."""
    for name, kind in _KINDS.items():
        for lanes in (1, 8):
            with planted(fault):
                try:
                    found = outcome(_engine(lanes), kind)
                except Exception as error:  # noqa: BLE001 - whatever a fault leads to
                    return f"{name}, {lanes} lanes: {type(error).__name__}"
            if found != expected(kind):
                return f"{name}, {lanes} lanes"
    return None
