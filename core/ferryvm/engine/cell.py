# SPDX-License-Identifier: Apache-2.0
"""The sites of one prepared program, and the cells before them.

The interpreter owns the cells; this module records which cell each site has, and why.
`ferryvm.engine.tiering` changes the states of sites, and cells only together with a state.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ferryvm.backend import Artifact
from ferryvm.engine.guess import GuessLimit
from ferryvm.engine.site import Site
from ferryvm.engine.transition import CellChange
from ferryvm.policy import Profile
from ferryvm.region.loop_head import likely_loop_heads, scope_marks
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.engine.launching import Launches
    from ferryvm.engine.speculation import BranchProfile


class SiteCells:
    """The sites by pc and form of the code, with the artifact that has their cells."""

    def __init__(
        self, program: Verified, profile: Profile, inner: Artifact, launches: Launches | None
    ) -> None:
        """`inner`: the interpreter's artifact; `launches`: None if the program has none."""
        self._launches = launches
        self.sites: dict[tuple[int, bool], Site] = {}
        self._program, self._profile, self._inner = program, profile, inner

    @functools.cached_property
    def branches(self) -> BranchProfile:
        """The branches that sites observe."""
        from ferryvm.engine.speculation import BranchProfile  # few programs speculate

        return BranchProfile(self._inner)

    def count_all(self, counting: bool, delay: float) -> None:
        """Count at each loop head, function entry and marked scope, in one form of the code.

        `delay`: seconds by which the decisions on hot sites are deferred. A pc that is several of
        them counts as the last.
        """
        program, profile = self._program, self._profile
        thresholds = dict.fromkeys(likely_loop_heads(program), profile.loop_threshold)
        for function in program.program.functions[1:]:  # the first one is entered once
            thresholds[function.entry] = profile.function_threshold
        for mark in scope_marks(program):
            thresholds[mark] = profile.scope_threshold
        for pc, threshold in thresholds.items():
            site = self.sites[pc, counting] = Site(pc, counting, threshold, delay)
            self.count(site, threshold)

    def count(self, site: Site, times: int) -> None:
        """Put a count cell before a site; no cell for 0 times."""
        if times:
            site.is_counted = True  # first, because the program may reach the cell at once
            self._inner.count(site.pc, times, site.counting)

    def change(self, site: Site, change: CellChange) -> None:
        """Change the cells of a site as a transition requires."""
        match change:
            case CellChange.COUNT:
                self.count(site, site.more)
            case CellChange.COUNT_AROUND:
                for around, times in self._around(site):
                    self.sites[around.key] = around
                    self.count(around, times)
            case CellChange.OBSERVE:
                self.branches.observe(site)
                if self._launches is not None and not site.counting:
                    self._launches.observe(site.pc)
                self.count(site, site.more)
            case CellChange.STOP_OBSERVING:
                if self._launches is not None and not site.counting:
                    self._launches.remove(site.pc)
                self.branches.stop(site, self.sites)
            case CellChange.ENTER:
                assert site.code is not None
                self._inner.install(site.pc, site.code.address, site.counting)
                site.is_counted = False
                self._leave_for(site)
            case CellChange.REPLACE:
                assert site.better is not None
                self._inner.install(site.pc, site.better.address, site.counting)
                site.code, site.better = site.better, None
                self._leave_for(site)
            case CellChange.CLEAR:
                if self._launches is not None and not site.counting:
                    self._launches.remove(site.pc)
                self._inner.remove(site.pc, site.counting)
                site.code = None

    def _leave_for(self, site: Site) -> None:
        """Let code around a launch leave for it, if the site's code is that of its loop."""
        launches, region, code = self._launches, site.region, site.code
        if launches is None or site.counting or region is None or code is None:
            return
        if region.kind.value == "launch":
            assert site.choice is not None
            options = site.choice.options
            branches = frozenset(branch for branch, _ in site.unseen)
            limit = GuessLimit(branches, options.guard_share, options.guard_limit, site.known)
            activity = launches.install(site.pc, code, limit)
            if activity is not None and site.placement is not None:
                site.placement.launches.append(activity)

    def _around(self, site: Site) -> Iterator[tuple[Site, int]]:
        """The loops around a site at which no region starts, except those that are sites already,
        each with the count of its cell."""
        from ferryvm.region.graph import graph

        program = self._program
        innermost = loop = graph(program, program.owner(site.pc)).loop_at(site.pc)
        while loop is not None:
            times = 1 if loop is innermost else self._profile.loop_threshold
            if (loop.head, site.counting) not in self.sites:
                yield Site(loop.head, site.counting, times), times
            loop = loop.parent
