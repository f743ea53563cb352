# SPDX-License-Identifier: Apache-2.0
"""The pass: the items of a launch as a body of lanes."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ferryvm.ir.graph import Body, Module, Operation
from ferryvm.ir.headroom import frame_headroom
from ferryvm.ir.lane.cost import ratio
from ferryvm.ir.lane.item import UnvectorisedError, item_body
from ferryvm.ir.lane.linearise import linearised
from ferryvm.ir.lane.overflow_check import share_overflow_checks
from ferryvm.ir.lane.profit import REASON, is_better_scalar
from ferryvm.ir.lane.quotient import Quotient, quotients, versions
from ferryvm.ir.lift import lift
from ferryvm.ir.passes.inline import inline_all
from ferryvm.ir.passes.pipeline import checker, optimise
from ferryvm.ir.region_order import UnseenEdges
from ferryvm.region.region import Region

LARGEST = 400
"""Blocks of an item's code, at most."""

LARGEST_RATIO = 1.0
"""Estimated time in lanes to that one by one, at most."""


def vectorise(
    module: Module,
    region: Region,
    unseen: UnseenEdges = frozenset(),
    known: Collection[tuple[bool, int, int]] = (),
    *,
    always: bool = False,
    check: bool = False,
) -> None:
    """Give the module of a launch's loop a body of lanes, `module.lanes`; or, in `module.scalar`,
    the reason that it has none. `unseen`, `known`: as for `lift`; `always`: also where that does
    not pay; `check`: as for `optimise`.

    The function of the items is lifted anew, as a function: in the module it may be part of the
    loop.
    """
    source = lift(region, unseen=unseen, known=known)
    for body in source.functions.values():
        inline_all(source, body)
    optimise(source, 2, region.verified, check=check)
    try:
        module.lanes = lanes_of(source, always=always)
    except UnvectorisedError as error:
        module.scalar = str(error)
    else:
        module.headroom = max(map(frame_headroom, source.root.operations))
        checker(module, region.verified, check)(module.lanes)


def lanes_of(module: Module, *, always: bool = True) -> Body:
    """The body of lanes of a launch's items, from the module of its loop, in which they are called;
    `always`: also where that does not pay. Raises UnvectorisedError."""
    item = item_body(module)
    if not always and is_better_scalar(item):
        raise UnvectorisedError(REASON)
    if len(item.blocks) > LARGEST:
        raise UnvectorisedError(f"it has {len(item.blocks)} blocks, {LARGEST} are allowed")
    lanes, found = _linearised(item), quotients(item)
    shared = _linearised(item, found) if found else lanes
    if not always and (times := ratio(item, shared)) > LARGEST_RATIO:
        raise UnvectorisedError(f"its items would take {times:.2g} times as long, by an estimate")
    lanes = versions(lanes, shared, item, found) if found else lanes
    share_overflow_checks(lanes)
    return lanes


def _linearised(item: Body, found: Sequence[Quotient] = ()) -> Body:
    """The body of lanes of an item's code, in which some quotients are the same in all lanes."""
    return linearised(item, frozenset[Operation]().union(*(each.operations for each in found)))
