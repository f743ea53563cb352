# SPDX-License-Identifier: Apache-2.0
"""Speculation on paths that branches never took: code leaves them out, behind a guard.

Before a site is compiled its branches are observed for a part of its threshold, by count cells that
never reach zero. A path that was not taken in that time is left out of the code. The method is the
uncommon trap of HotSpot (M. Paleczny, C. Vick, C. Click: The Java HotSpot Server Compiler, JVM
2001), with cells instead of a profile at every branch.
"""

from __future__ import annotations

from collections.abc import Collection

from ferryvm.backend import Artifact
from ferryvm.engine.site import NEVER, Site
from ferryvm.isa import Flow
from ferryvm.region.code import FLOWS, code
from ferryvm.region.region import Region

_OBSERVED = 10
"""The part of a threshold for which branches are observed before code speculates."""

Keys = Collection[tuple[int, bool]]


def plan(site: Site, counted: Keys) -> bool:
    """True if the branches of the site's region must be observed first; then `site.observed` and
    `site.more` have the pcs and the count. `counted`: keys of the sites."""
    more = site.threshold // _OBSERVED
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


def observe(artifact: Artifact, site: Site) -> None:
    """Put a count cell at each target of the site's branches."""
    for pc in site.observed:
        artifact.count(pc, NEVER, site.counting)


def stop_observing(artifact: Artifact, site: Site, counted: Keys) -> None:
    """Record the paths that were never taken in `site.unseen`, and remove the cells."""
    assert site.region is not None
    seen = {pc for pc in site.observed if artifact.counted(pc, site.counting) != NEVER}
    edges = set()
    own = site.region.graph
    for branch, targets in _branches(site.region).items():
        loop = own.loop_at(branch)
        if loop is not None and not loop.blocks.issuperset(targets):
            continue  # the exit of a loop is taken only once, after all its iterations
        unseen = [pc for pc in targets if pc in site.observed and pc not in seen]
        if len(unseen) == 1 and len(set(targets)) > 1:
            edges.add((branch, unseen[0]))
    for pc in site.observed:
        if (pc, site.counting) not in counted:  # else it is a site, with its cell
            artifact.remove(pc, site.counting)
    site.unseen, site.observed = frozenset(edges), frozenset()


def _branches(region: Region) -> dict[int, tuple[int, ...]]:
    """The branches of a region's own code, with the pcs of their targets."""
    opcodes = code(region.verified).opcodes
    return {
        block.last: block.successors
        for block in region.graph.blocks.values()
        if FLOWS[opcodes[block.last]] is Flow.BRANCH
        and len(block.successors) == 2
        and block.last in region.pcs
    }
