# SPDX-License-Identifier: Apache-2.0
"""Speculation on paths that branches never took: code leaves them out, behind a guard.

Before a site is compiled its branches are observed, by count cells that never reach zero: for a
part of its threshold, or for the first items of a launch, with the branches of what items call. A
path that was not taken in that time is left out of the code. The method is the uncommon trap of
HotSpot (M. Paleczny, C. Vick, C. Click: The Java HotSpot Server Compiler, JVM 2001), with cells
instead of a profile at every branch.

A guess that failed too often is never made again, at no site: so making code again comes to an end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from ferryvm.backend import Artifact
from ferryvm.engine.guess import FORGOTTEN, WRONG, Guess, give_up
from ferryvm.engine.site import NEVER, Edges, Site
from ferryvm.isa import Flow
from ferryvm.region.code import FLOWS, code
from ferryvm.region.fact import LaunchProfile
from ferryvm.region.graph import graph
from ferryvm.region.region import Region, RegionKind

_OBSERVED = 10
"""The part of a threshold for which branches are observed before code speculates."""

_OBSERVED_WORK = 1_000_000
"""Instructions of the items of a launch that are observed: about a millisecond of an
interpreter."""

_FEWEST_ITEMS, _MOST_ITEMS = 16, 10_000
"""Items of a launch that are observed, however long or short they are."""

_AGAIN = "not made again: it failed before"

Keys = Collection[tuple[int, bool]]
Edge = tuple[int, int]
"""pc of a branch, pc of one of its targets."""


def items_of(profile: LaunchProfile) -> int:
    """The number of items of a launch to observe."""
    return min(max(_OBSERVED_WORK // profile.item_work, _FEWEST_ITEMS), _MOST_ITEMS)


def plan(site: Site, counted: Keys, items: int | None) -> bool:
    """True if the branches of the site's region must be observed first; then `site.observed` and
    `site.more` have the pcs and the count. `counted`: keys of the sites; `items`: to observe, for a
    launch."""
    more = site.threshold // _OBSERVED if items is None else items
    if not more or site.has_observed:
        return False  # no speculation on unobserved branches
    assert site.region is not None
    site.has_observed = True
    pcs = {pc for targets in _branches(site.region).values() for pc in targets}
    site.observed = frozenset(pc for pc in pcs if (pc, site.counting) not in counted)
    if not site.observed:
        return False
    site.threshold += more
    site.more = more + 1  # a waiting program passes once before its next iteration
    return True


class BranchProfile:
    """The cells at the targets of branches that sites observe, of one program.

    Several sites may observe a branch at once. Each remembers the counts from which on it does.
    """

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._observers: Counter[tuple[int, bool]] = Counter()
        """Sites that observe a pc in a form of the code."""
        self._began: dict[tuple[int, bool], Mapping[int, int]] = {}
        """The counts from which on a site observes pcs, by its key; 0 where nothing counts."""
        self.failed: set[Edge] = set()
        """Paths that were left out, and taken too often."""

    def observe(self, site: Site) -> None:
        """Put a count cell at each target of the site's branches."""
        artifact, counting = self._artifact, site.counting
        for pc in site.observed:
            if not self._observers[pc, counting]:
                artifact.count(pc, NEVER, counting)
            self._observers[pc, counting] += 1
        assert site.region is not None
        pcs = {pc for targets in _branches(site.region).values() for pc in targets}
        self._began[site.key] = {pc: artifact.counted(pc, counting) for pc in pcs}

    def stop(self, site: Site, counted: Keys) -> None:
        """Record the paths that were never taken in `site.unseen`, and remove the cells.

        A branch itself must have been observed: its other path was taken.
        """
        artifact, counting, region = self._artifact, site.counting, site.region
        assert region is not None
        began = self._began.pop(site.key)
        seen = {pc for pc, count in began.items() if artifact.counted(pc, counting) != count}
        edges = set()
        for branch, targets in _branches(region).items():
            own = graph(region.verified, region.verified.owner(branch))
            loop = own.loop_at(branch)
            is_own = own.function == region.function
            if is_own and loop is not None and not loop.blocks.issuperset(targets):
                continue  # the exit of a loop is taken only once, after all its iterations
            unseen = [pc for pc in targets if pc in site.observed and pc not in seen]
            if len(unseen) == 1 and not seen.isdisjoint(targets):
                edges.add((branch, unseen[0]))
        for pc in site.observed:
            self._observers[pc, counting] -= 1
            if not self._observers[pc, counting] and (pc, counting) not in counted:
                artifact.remove(pc, counting)  # else it is a site, with its cell
        site.unseen, site.observed = frozenset(edges - self.failed), frozenset()
        placement = site.placement
        if placement is not None:
            again = edges & self.failed
            placement.guesses += [Guess(edge) for edge in sorted(site.unseen)]
            placement.guesses += [Guess(edge, _AGAIN) for edge in sorted(again)]

    def fail(self, site: Site, branch: int) -> None:
        """Leave out a path of a branch no more: its guard failed too often."""
        wrong = {edge for edge in site.unseen if edge[0] == branch}
        self.failed |= wrong
        _give_up(site, frozenset(wrong), WRONG)

    def forget(self, site: Site) -> None:
        """Leave out no path at all any more."""
        _give_up(site, site.unseen, FORGOTTEN)


def _give_up(site: Site, edges: Edges, outcome: str) -> None:
    site.unseen -= edges
    if site.placement is not None:
        give_up(site.placement.guesses, edges, outcome)


def _branches(region: Region) -> dict[int, tuple[int, ...]]:
    """The branches of a region's own code, and of all that the items of a launch call, with the pcs
    of their targets."""
    opcodes = code(region.verified).opcodes
    found = {}
    places = [(region.function, region.pcs)]
    if region.kind is RegionKind.LAUNCH:
        places += [(callee, region.pcs_of(callee)) for callee in region.callees]
    for function, pcs in places:
        for block in graph(region.verified, function).blocks.values():
            is_branch = FLOWS[opcodes[block.last]] is Flow.BRANCH and len(block.successors) == 2
            if is_branch and block.last in pcs and len({*block.successors}) > 1:
                found[block.last] = block.successors
    return found
