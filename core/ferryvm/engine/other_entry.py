# SPDX-License-Identifier: Apache-2.0
"""Other entries of a nest: sites whose code makes that of a hot inner loop unnecessary.

Code of a whole nest may be entered at any of its loop heads, and an inner one gets hot first. Code
that is entered at the head of the nest takes less time to compile and to run, since a loop with two
entries is no nested loop to a compiler. So an inner loop waits

- for the head of a loop around it that comes often, which is compiled when it comes next;
- for code of the same nest that is being compiled;
- for code of the same nest that was installed a moment ago, which takes the program out of the
  interpreter.

It is counted on meanwhile, and waits once for each: what is hot all the same is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from ferryvm.engine.site import Site
from ferryvm.engine.transition import SiteState

_OFTEN = 16
"""The times that a head has come from which on it is taken to come soon: the wait is about a
sixteenth of the time so far."""

_PENDING = frozenset(
    [SiteState.QUEUED, SiteState.DECIDING, SiteState.OBSERVING, SiteState.COMPILING]
)
_ENTERED = frozenset([SiteState.INSTALLED, SiteState.RECOMPILING])


class Passes(Protocol):
    """Counts of control at a pc."""

    def __call__(self, pc: int, counting: bool = False) -> int | None:
        """The times that control has come there, in a form of the code; at least, if it is not
        counted any more; None if it never was."""


def wait_for_other(
    site: Site, sites: Mapping[tuple[int, bool], Site], passes: Passes
) -> str | None:
    """Make a site whose region was selected wait for another one; the reason, or None if there is
    none to wait for."""
    site.other = None
    loop = site.region.loop if site.region is not None else None
    if loop is None or loop.head == site.pc or site.threshold == 1:
        return None
    for pc in _heads_around(site):
        head = sites.get((pc, site.counting))
        if head is None or head.state not in _PENDING | {SiteState.COLD}:
            continue
        if head.state in _PENDING:
            return _wait(site, head, f"code is requested for the loop around it, at pc {pc}")
        if head not in site.waited and (passes(*head.key) or 0) >= _OFTEN:
            site.waited.append(head)
            return _wait(site, head, f"the loop around it, at pc {pc}, comes often")
    for other in list(sites.values()):
        code = other.code if other.state in _ENTERED and other.counting == site.counting else None
        if code is None or code in site.waited or other.region is None:
            continue
        if other.region.loop is loop:
            site.waited.append(code)
            return _wait(site, other, f"there is code of its nest, for pc {other.pc}")
    return None


def _wait(site: Site, other: Site, reason: str) -> str:
    """Count a site as often as before, and then decide anew."""
    site.other, site.rule = other, None
    site.more = site.threshold
    site.threshold += site.more
    return reason


def _heads_around(site: Site) -> Iterator[int]:
    """Heads of the loops around a site that its region contains, from the outside in."""
    assert site.region is not None
    loop, found = site.region.graph.loop_at(site.pc), list[int]()
    while loop is not None:
        found.append(loop.head)
        loop = loop.parent if loop is not site.region.loop else None
    yield from (head for head in reversed(found) if head != site.pc)
