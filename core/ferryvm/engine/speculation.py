# SPDX-License-Identifier: Apache-2.0
"""Which ways branches never went: what code is compiled without, behind a guard.

Before a place is compiled its branches are watched for a part of its threshold, by count cells that
nothing exhausts. A way that was not taken in that time is left out of the code.
"""

from __future__ import annotations

from collections.abc import Collection

from ferryvm.backend import Artifact
from ferryvm.engine.site import NEVER, Site
from ferryvm.isa import Flow
from ferryvm.region.code import FLOWS, code
from ferryvm.region.region import Region

_OBSERVED = 10
"""Part of a threshold for which branches are watched before code is speculated on."""


def watch(artifact: Artifact, place: Site, counted: Collection[tuple[int, bool]]) -> int:
    """Have the branches of the place's region watched, and say how many times more the place should
    be reached meanwhile; 0 if they are not. `counted`: keys of the places with cells of their own.
    """
    more = place.threshold // _OBSERVED
    if not more or place.has_watched:
        return 0  # what nobody has watched is not speculated on
    assert place.region is not None
    place.has_watched = True
    pcs = {pc for ways in _branches(place.region).values() for pc in ways}
    place.watched = frozenset(pc for pc in pcs if (pc, place.counting) not in counted)
    if not place.watched:
        return 0  # there is nothing to see
    for pc in place.watched:
        artifact.count(pc, NEVER, place.counting)
    place.threshold += more
    return more


def stop_watching(artifact: Artifact, place: Site) -> None:
    """Note which ways were never taken, in `place.unseen`."""
    assert place.region is not None
    seen = {pc for pc in place.watched if artifact.counted(pc, place.counting) != NEVER}
    ways = set()
    own = place.region.graph
    for branch, targets in _branches(place.region).items():
        loop = own.loop_at(branch)
        if loop is not None and not loop.blocks.issuperset(targets):
            continue  # the way out of a loop is taken once, after all the others
        unseen = [pc for pc in targets if pc in place.watched and pc not in seen]
        if len(unseen) == 1 and len(set(targets)) > 1:
            ways.add((branch, unseen[0]))
    for pc in place.watched:
        artifact.remove(pc, place.counting)
    place.unseen, place.watched = frozenset(ways), frozenset()


def _branches(region: Region) -> dict[int, tuple[int, ...]]:
    """The branches of a region's own code, with the pcs that each can go to."""
    opcodes = code(region.verified).opcodes
    return {
        block.last: block.successors
        for block in region.graph.blocks.values()
        if FLOWS[opcodes[block.last]] is Flow.BRANCH
        and len(block.successors) == 2
        and block.last in region.pcs
    }
