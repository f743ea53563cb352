# SPDX-License-Identifier: Apache-2.0
"""Planted faults of items on threads: `ferryvm.engine.chunked_run` with one mistake each.

A launch of native code whose items store, print, trap or make arrays runs on two threads, in lanes
and one by one, and is held against the loop.
"""

from __future__ import annotations

import ctypes
import functools
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

import ferryvm
from ferryvm import Engine
from ferryvm.engine import chunked_run, launching, parallel, team
from ferryvm.engine.chunked_run import ChunkedRun
from ferryvm.engine.team import Team
from ferryvm.machine.launch import Left
from ferryvm.machine.piece import Block
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When

from ..launching import expanded

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


_finish, _prepare, _rest = chunked_run.finish, Team.prepare, ChunkedRun._left
_suspended = Team.suspended


def _left(change: Callable[[list[Left]], list[Left]]) -> Callable[..., None]:
    def faulty(objects: Any, limit: int, left: Sequence[Left]) -> None:
        _finish(objects, limit, change(expanded(objects, left)))

    return faulty


def _shifted(left: list[Left]) -> list[Left]:
    blocks = [what for _, what in left if not isinstance(what, int)]
    following = iter(blocks[1:] + blocks[:1])
    return [(n, what) if isinstance(what, int) else (n, next(following)) for n, what in left]


def _without(kept: Callable[[Left], bool]) -> Callable[..., None]:
    return _left(lambda left: [one for one in left if kept(one)])


def _begun(by: int) -> Callable[..., None]:
    def faulty(self: Team, objects: Any, first: int, limit: int, size: int) -> None:
        _prepare(self, objects, first + by, limit, size)

    return faulty


def _stale(self: Team, objects: Any, first: int, limit: int, size: int) -> None:
    """The frame of the first launch that the threads have seen."""
    _prepare(self, objects, first, limit, size)
    range_: Any = self.range
    text = ctypes.string_at(range_.frame, range_.frame_bytes)
    seen = self.__dict__.setdefault("seen", ctypes.create_string_buffer(text, len(text)))
    range_.frame = ctypes.addressof(seen)


def _blocks(change: Callable[[Block], Block]) -> Callable[..., None]:
    return _left(
        lambda left: [(n, change(what) if isinstance(what, Block) else what) for n, what in left]
    )


def _cut(block: Block) -> Block:
    return block._replace(words=array("Q", (*block.words[:-1], block.words[-1] ^ 1)))


def _chunks(self: ChunkedRun) -> list[Left]:
    self._team.range.next = self._team.range.limit
    for worker in self._team.workers:
        worker.refused = worker.range  # no item
    return _rest(self)


def _without_last(self: Team, number: int) -> tuple[array[int], array[int]]:
    addresses, pcs = _suspended(self, number)
    return addresses[:-1], pcs[:-1]


def _first_twice(self: Team, number: int) -> tuple[array[int], array[int]]:
    addresses, pcs = _suspended(self, number)
    return addresses[:1] + addresses, pcs[:1] + pcs


def _no_rest(self: ChunkedRun, first: int, worker: Any) -> None:
    worker.item = worker.end


FAULTS = (
    RangeFault("thread-first-lost", "The first item of a range is not done.",
        Team, "prepare", _begun(1)),
    RangeFault("thread-item-done-twice", "The item before a range is in it, too.",
        Team, "prepare", _begun(-1)),
    RangeFault("thread-stale-frame", "A thread has the arguments of the first launch.",
        Team, "prepare", _stale),
    RangeFault("thread-slot-lost", "The last item that a thread has suspended is taken as done.",
        Team, "suspended", _without_last),
    RangeFault("thread-slot-twice", "The first item that a thread has suspended is finished twice.",
        Team, "suspended", _first_twice),
    RangeFault("thread-rest-lost", "Items of a chunk that have not begun are taken as done.",
        ChunkedRun, "_leave_rest", _no_rest),
    RangeFault("thread-chunks-lost", "Chunks that no thread has begun are taken as done.",
        ChunkedRun, "_left", _chunks),
    RangeFault("thread-suspended-lost", "A suspended item is taken as done.",
        chunked_run, "finish", _without(lambda one: isinstance(one[1], int))),
    RangeFault("thread-last-left-lost", "The last of the items that are left is taken as done.",
        chunked_run, "finish", _left(lambda left: left[:-1])),
    RangeFault("thread-order-reversed", "Suspended items go on from the highest to the lowest.",
        chunked_run, "finish", _left(lambda left: left[::-1])),
    RangeFault("thread-frame-of-another", "An item goes on with the frames of the next one.",
        chunked_run, "finish", _left(_shifted)),
    RangeFault("thread-word-changed", "The topmost word of a suspended item is another.",
        chunked_run, "finish", _blocks(_cut)),
    RangeFault("thread-behind-exit", "A suspended item goes on behind its exit.",
        chunked_run, "finish", _blocks(lambda block: block._replace(pc=block.pc + 1))),
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
    few = mock.patch.object(team, "MOST_SUSPENDED", _SUSPENDED)
    many = mock.patch.multiple(parallel, _CHUNK_WORTH=1e-12, _THREAD_SECONDS=1e-12)
    with few, many, mock.patch.multiple(launching, WORTH=0.0, SAMPLE=0.0):
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
