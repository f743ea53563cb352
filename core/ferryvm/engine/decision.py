# SPDX-License-Identifier: Apache-2.0
"""Decisions: the policy's result for a hot site, recorded in its placement.

Short programs never get here, so the modules on regions are imported at the first use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from ferryvm import record
from ferryvm.engine.hook import ExtraFacts
from ferryvm.engine.journal import Considered, Journal, Placement
from ferryvm.engine.site import Site
from ferryvm.engine.transition import SiteEvent
from ferryvm.policy import Action, Policy, Rule, choose, here
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.region.region import Region


class Decider:
    """The policy of one program, applied to its regions."""

    def __init__(
        self,
        program: Verified,
        policy: Policy,
        journal: Journal,
        extra_facts: ExtraFacts | None,
        has_ranges: Callable[[str], bool],
    ) -> None:
        """`extra_facts`: facts about a region from plugins; `has_ranges`: True for the name of a
        backend whose code runs items of launches out of order by itself."""
        self._has_ranges = has_ranges
        self._program, self._policy = program, policy
        self._journal, self._extra_facts = journal, extra_facts

    def decide(self, site: Site, counted: Collection[tuple[int, bool]]) -> tuple[SiteEvent, str]:
        """The event that results from a site's decision, and the reason; `site.rule` and
        `site.region` are set.

        `counted`: keys of the sites, which have cells of their own.
        """
        if site.rule is not None:
            return SiteEvent.CHOSEN, site.placed(self._journal).decision
        from ferryvm.region.region import candidates

        placement = site.placed(self._journal)
        if site.regions is None:
            found = candidates(self._program, site.pc)
            site.regions = tuple(record.replace(one, entry=site.pc) for one in found)
        if not site.regions:
            placement.decision = self._why_no_region(site.pc)
            return SiteEvent.NO_REGION, placement.decision
        rule = self._rule(site, site.regions, placement)
        if rule is None:
            return SiteEvent.UNWANTED, placement.decision
        site.rule = rule
        if any(choice.options.speculate for choice in rule.backends):
            from ferryvm.engine.speculation import plan

            if plan(site, counted):
                return SiteEvent.UNOBSERVED, placement.decision
        return SiteEvent.CHOSEN, placement.decision

    def _rule(self, site: Site, regions: tuple[Region, ...], placement: Placement) -> Rule | None:
        """The first rule that selects one of the regions; None if there is none."""
        from ferryvm.region.fact import facts

        for region in regions:
            extra = self._extra_facts(region) if self._extra_facts is not None else {}
            decision = choose(self._policy, facts(region, site.threshold), here(), extra)
            placement.region, placement.kind = region.name, region.kind.value
            placement.decision = decision.reason
            considered = Considered(region.name, decision.reason, decision.lines())
            placement.considered.append(considered)
            rule = decision.rule
            if rule is not None and rule.action is Action.COMPILE and rule.backends:
                site.region = region
                return rule
        return None

    def launch(self, pc: int) -> Region | None:
        """The region of the launch at `pc`, if the policy's first backend for it runs items out of
        order."""
        from ferryvm.region.fact import facts
        from ferryvm.region.region import RegionKind, candidates

        region = candidates(self._program, pc)[0]
        if region.kind is not RegionKind.LAUNCH:
            return None
        extra = self._extra_facts(region) if self._extra_facts is not None else {}
        rule = choose(self._policy, facts(region, 1), here(), extra).rule
        if rule is None or rule.action is not Action.COMPILE or not rule.backends:
            return None
        choice = rule.backends[0]
        has_ranges = choice.options.threads != 1 or self._has_ranges(choice.backend)
        return region if has_ranges else None

    def _why_no_region(self, pc: int) -> str:
        from ferryvm.region.graph import graph

        loop = graph(self._program, self._program.owner(pc)).loop_at(pc)
        if loop is None:
            return "no region starts here"
        return f"no region starts here: it is in the loop whose head is pc {loop.head}"
