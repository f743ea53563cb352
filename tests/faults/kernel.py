# SPDX-License-Identifier: Apache-2.0
"""Planted faults of barriers, for which random kernels look.

    python -m tests.faults.kernel [NAME | BACKEND ...]

Four families: the definition (`ferryvm.machine.barrier`), which the reference runs, held against
the native one; stores of the native one left out, held against the reference; parallel regions
(`ferryvm.ir.group`), in code of llvm and of vliw; and items of regions in lanes of vectors
(`ferryvm.ir.group.lanes`), in code of llvm, where every loop that can have lanes has four.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple
from unittest import mock

from ferryvm.backend import Forcing, Options
from ferryvm.ir.graph import BOOLEAN, Block, Edge, Module, Value
from ferryvm.ir.group import form, group_builder, home, launch
from ferryvm.ir.group.copy import Node, RegionCopy
from ferryvm.ir.group.home import Homes
from ferryvm.ir.group.lanes import run_in_lanes
from ferryvm.ir.instruction import InstructionLifter
from ferryvm.ir.lane.emission import Emission
from ferryvm.machine import barrier as defined
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.piece import Block as Words
from ferryvm.machine.piece import Piece, add_again, add_item, add_phase, opened
from ferryvm.testing import Differ, Verdict
from ferryvm.testing.generate import LIMITS, MOST_INSTRUCTIONS, ProgramKind, generate
from ferryvm.testing.trial import Trial
from ferryvm.verify import Verified, verify
from ferryvm_backends.llvm import build
from ferryvm_backends.threaded import BACKEND, symbol

from . import barrier, lane
from .item_batch import StoreFault, code_of, taking

SEED = 1
MOST = 60
"""Programs within which each fault is to be found."""
_LIMITS = dataclasses.replace(LIMITS, objects=1 << 20)
_MOST = MOST_INSTRUCTIONS + 1000
"""Instructions, where a fault makes a launch endless."""


class KernelFault(NamedTuple):
    """A patch of the code of barriers, and the backends that are compared under it."""

    name: str
    about: str
    planted: Callable[[], contextlib.AbstractContextManager[object]]
    backend: str
    """The one with the fault."""
    against: str
    forcing: frozenset[Forcing] = frozenset()


# --- the definition ---------------------------------------------------------------------------


def _in_definition(name: str, about: str, function: str, faulty: object) -> KernelFault:
    def planted() -> contextlib.AbstractContextManager[object]:
        return mock.patch.object(defined, function, faulty, create=function == "sorted")

    return KernelFault(name, about, planted, "reference", "threaded")


def _in_item(name: str, about: str, change: Callable[[Words], Words]) -> KernelFault:
    def faulty(objects: ObjectMemory, item: int, block: Words, following: int) -> int:
        return add_item(objects, item, change(block), following)

    return _in_definition(name, about, "add_item", faulty)


def _lost(objects: ObjectMemory, piece: Piece, following: int) -> int:
    return following if piece.first == 1 else add_again(objects, piece, following)


def _in_order(pieces: Iterable[Piece], *, reverse: bool = False) -> list[Piece]:
    return sorted(pieces)


def _unsorted(pieces: Iterable[Piece], *, reverse: bool = False) -> list[Piece]:
    return list(pieces)


def _innermost(objects: ObjectMemory, piece: Piece) -> tuple[int, ...]:
    return (piece.pc,)


def _without_ended(objects: ObjectMemory, phase: Piece) -> object:
    waiting = [*defined.pieces(objects, phase.waiting)]
    places = {defined._place(objects, piece) for piece in waiting}
    return defined.Waiting(0, ()) if len(places) > 1 else None


def _only_last(objects: ObjectMemory, record: int) -> tuple[Piece | None, int]:
    phase, others = opened(objects, record)
    return (None if phase is None else phase._replace(waiting=0)), others


_DEFINITION = (
    _in_item(
        "item-waits-again",
        "An item waits again where it has waited.",
        lambda block: block._replace(words=array("Q", (*block.words[:-1], 0))),
    ),
    _in_item(
        "item-without-references",
        "References of an item that waits are null.",
        lambda block: block._replace(references=array("Q", bytes(8 * len(block.references)))),
    ),
    _in_item(
        "item-with-references-in-reverse",
        "References of an item that waits are in reverse.",
        lambda block: block._replace(references=block.references[::-1]),
    ),
    _in_item(
        "item-with-other-number",
        "An item that waits goes on with the number of the next one.",
        lambda block: block._replace(words=array("Q", (block.words[0] + 1, *block.words[1:]))),
    ),
    _in_definition(
        "order-reversed", "Items go on in reverse order behind a barrier.", "sorted", _in_order
    ),
    _in_definition("order-of-arrival", "Items go on as they came.", "sorted", _unsorted),
    _in_definition("one-item-lost", "Item 1 does not go on.", "add_again", _lost),
    _in_definition(
        "others-lost",
        "Items that wait for others forget these.",
        "add_phase",
        lambda objects, items, waiting, others: add_phase(
            objects, items, waiting, 0 if waiting else others
        ),
    ),
    _in_definition(
        "waiting-lost",
        "Only the last one of the items that wait goes on.",
        "opened",
        _only_last,
    ),
    _in_definition(
        "one-too-many",
        "A launch has one item too many.",
        "add_phase",
        lambda objects, items, waiting, others: add_phase(
            objects, items + (not waiting), waiting, others
        ),
    ),
    _in_definition(
        "divergence-unseen", "No divergence traps.", "divergence", lambda objects, phase: None
    ),
    _in_definition(
        "divergence-of-ended-unseen",
        "Items that have ended are not missed.",
        "divergence",
        _without_ended,
    ),
    _in_definition(
        "divergence-of-calls-unseen", "Calls around barriers may differ.", "_place", _innermost
    ),
)


# --- native code ------------------------------------------------------------------------------


def _in_native(fault: StoreFault) -> KernelFault:
    @contextlib.contextmanager
    def planted() -> Iterator[None]:
        code = _code(fault)
        loaded = BACKEND._interpreters.whole
        with mock.patch.object(loaded, "resumption", code.address(symbol.RESUME)):
            yield

    return KernelFault(fault.name, fault.about, planted, "threaded", "reference")


@functools.cache
def _code(fault: StoreFault) -> Any:
    return code_of(fault, taking)


# --- parallel regions -------------------------------------------------------------------------


def _in_regions(name: str, about: str, owner: object, attribute: str, faulty: Any) -> KernelFault:
    right = getattr(owner, attribute)

    def planted() -> contextlib.AbstractContextManager[object]:
        if not callable(right):
            return mock.patch.object(owner, attribute, faulty)

        def wrapped(*given: Any, **named: Any) -> Any:
            return faulty(right, *given, **named)

        return mock.patch.object(owner, attribute, wrapped)

    return KernelFault(name, about, planted, "llvm", "reference", frozenset({Forcing.HOT}))


def _one_slot(right: Callable[..., None], self: Homes, given: launch.Launch) -> None:
    right(self, given)
    values = [*self.slots]
    for value, before in zip(values[1::2], values[::2], strict=False):
        self.slots[value] = self.slots[before]


def _stored_but_last(right: Any, self: Homes, at: Any) -> Any:
    return right(self, at)[:-1]


def _not_compared(right: Any, self: Any, a: Any, b: Any) -> Any:
    return a


def present(
    right: Callable[[RegionCopy, Node, Edge], tuple[Value, ...]],
    self: RegionCopy,
    node: Node,
    edge: Edge,
) -> tuple[Value, ...]:
    """The arguments of an edge: of one back to a loop around the barrier, those with which the
    region began."""
    passed, head = right(self, node, edge), edge.block
    if not edge.is_back or head not in {loop.header for loop in self._around[node[1] :]}:
        return passed
    ends = {value for each in head.operations for value in each.arguments}  # or it never ends
    return tuple(
        [
            self.read(self.first, p) if p in self.homes.slots and p not in ends else new
            for p, new in zip(head.parameters, passed, strict=True)
        ]
    )


def _held(
    right: Callable[[InstructionLifter], frozenset[int]], self: InstructionLifter
) -> frozenset[int]:
    if self.own.all_read or self.own.all_written:
        return right(self)
    return self.own.statics_read | self.own.statics_written


def _complete_lost(right: Any, self: Any, at: Any) -> Any:
    wait = right(self, at)
    words = (*wait.words[:-1], dataclasses.replace(wait.words[-1], bits=0))
    return dataclasses.replace(wait, words=words)


_FORMATION = form._Formation
_REGIONS = (
    _in_regions(
        "context-slot-shared", "Two values have one context array.", Homes, "__init__", _one_slot
    ),
    _in_regions(
        "context-not-stored",
        "A value that lives across a barrier is not stored.",
        Homes,
        "stored",
        _stored_but_last,
    ),
    _in_regions(
        "context-arrays-overlap",
        "The second half of a context array is the first one of the next.",
        group_builder,
        "ARRAY_STRIDE",
        4,
    ),
    _in_regions(
        "ends-not-compared",
        "Items that come to another barrier than the first go on with it.",
        _FORMATION,
        "any",
        _not_compared,
    ),
    _in_regions(
        "wait-not-complete",
        "Items that wait where control leaves wait again.",
        _FORMATION,
        "_wait",
        _complete_lost,
    ),
    _in_regions(
        "phase-of-next-item",
        "Where control leaves, one item too many has come to the barrier.",
        _FORMATION,
        "phase",
        lambda right, self, region, arrived, started: right(self, region, started, started),
    ),
    _in_regions(
        "phase-of-other-region",
        "Where control leaves, items are in the region before.",
        _FORMATION,
        "phase",
        lambda right, self, region, arrived, started: right(
            self, max(0, region - 1), arrived, started
        ),
    ),
    _in_regions(
        "dear-values-computed-anew",
        "What the group has changed is computed anew behind a barrier.",
        home,
        "PURE",
        home.PURE | {"element_load"},
    ),
    _in_regions(
        "uniform-stale",
        "An element that all items read is read once, in front of the group.",
        home,
        "FIXED",
        home.FIXED | {"element_load"},
    ),
    _in_regions(
        "iteration-begun-again",
        "Behind a barrier in a loop the next iteration begins with variables of the present one.",
        RegionCopy,
        "_passed",
        present,
    ),
    _in_regions(
        "static-stale",
        "A static that an item has written is not read again behind a barrier.",
        InstructionLifter,
        "_promoted_statics",
        _held,
    ),
)


# --- lanes ------------------------------------------------------------------------------------


def _in_four(module: Module, options: Options, rests: Collection[Block]) -> None:
    for body in () if module.counting else module.bodies:
        module.one_by_one |= run_in_lanes(body, lambda lanes: 4, rests, always=True)


def _in_lanes(name: str, about: str, owner: object, attribute: str, faulty: Any) -> KernelFault:
    @contextlib.contextmanager
    def planted() -> Iterator[None]:
        with (
            mock.patch.object(build, "_run_groups_in_lanes", _in_four),
            mock.patch.object(owner, attribute, faulty),
        ):
            yield

    return KernelFault(name, about, planted, "llvm", "reference", frozenset({Forcing.HOT}))


def _while_all(self: Emission) -> Value:
    """The condition with which a loop goes on, and others that ask for any lane of the mask."""
    others = self.emit("any_lane", BOOLEAN, (), (self.none(self.mask),))
    return self.none(others)


_LANE_FAULTS = {one.name: one for one in lane.FAULTS}
_SHARED = (
    "lane-blended-backwards",
    "lane-stores-unmasked",
    "lane-mask-dropped",
)
_LANES = (
    *(
        _in_lanes(name, one.about, one.owner, one.function, one.faulty)
        for name, one in ((name, _LANE_FAULTS[name]) for name in _SHARED)
    ),
    _in_lanes(
        "lane-loop-ends-with-first",
        "A loop ends when the first lane has left it.",
        Emission,
        "some",
        _while_all,
    ),
)

WITHOUT = _in_lanes(
    "", "Lanes wherever they can be, and no fault.", Emission, "some", Emission.some
)

OWN = (*_DEFINITION, *_REGIONS)
"""Those that are planted for random kernels alone."""

COMPILED = ("llvm", "vliw")
"""The backends whose parallel regions have faults."""

FAULTS = (
    *_DEFINITION,
    *map(_in_native, barrier.FAULTS),
    *(fault._replace(backend=backend) for backend in COMPILED for fault in _REGIONS),
    *_LANES,
)


# --- the search -------------------------------------------------------------------------------


@functools.lru_cache(maxsize=MOST)
def program(number: int) -> Verified:
    """A random kernel."""
    return verify(generate(SEED, number, ProgramKind.KERNEL))


@functools.lru_cache(maxsize=2 * MOST)
def _expected(number: int, against: str) -> Trial:
    other = "threaded" if against == "reference" else "reference"
    differ = Differ([other], against, limits=_LIMITS, most=_MOST)
    return differ.finish(differ.start(program(number)))


def is_found(fault: KernelFault | None, number: int, backend: str = "threaded") -> bool:
    """True if a program shows the fault."""
    name, against = (backend, "reference") if fault is None else (fault.backend, fault.against)
    hot = frozenset({Forcing.HOT}) if backend in COMPILED else frozenset[Forcing]()
    forcing = hot if fault is None else fault.forcing
    differ = Differ([name], against, limits=_LIMITS, most=_MOST, forcing=forcing)
    differ.form = False if forcing else None
    if name in COMPILED:  # with a fresh program, of which nothing is compiled
        program.cache_clear()
        _expected.cache_clear()
    expected = _expected(number, against)
    with contextlib.ExitStack() as stack:
        if name in COMPILED:  # whose code on disk is that of another fault, or of none
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            stack.enter_context(mock.patch.dict(os.environ, FERRYVM_CACHE_DIR=folder))
        if fault is not None:
            stack.enter_context(fault.planted())
        try:
            found = differ.compare(program(number), seed=number, expected=expected)
        except Exception:  # noqa: BLE001 - whatever a fault leads to
            return True
    return any(one.verdict is Verdict.DISAGREE for one in found)


def search(fault: KernelFault, programs: int = MOST) -> int | None:
    """The number of the first program that shows the fault, counted from 1; None if none does."""
    return next((n + 1 for n in range(programs) if is_found(fault, n)), None)


def main(names: list[str]) -> int:
    """Print after how many programs each fault is found; 1 if fewer than 95 % are."""
    chosen = [one for one in FAULTS if not names or {one.name, one.backend} & {*names}]
    found = 0
    for fault in chosen:
        began = time.process_time()
        number = search(fault)
        found += number is not None
        spent = time.process_time() - began
        print(f"{fault.name:36} {fault.backend:9} {number or '-':>4} {spent:8.1f} s", flush=True)
    print(f"{found} of {len(chosen)} found")
    return 0 if found >= 0.95 * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
