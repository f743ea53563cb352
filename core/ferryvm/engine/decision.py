# SPDX-License-Identifier: Apache-2.0
"""Decisions: the policy's result for a hot site, recorded in its placement.

Short programs never get here, so the modules on regions are imported at the first use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from ferryvm import record
from ferryvm.engine.guess import Guess
from ferryvm.engine.hook import ExtraFacts
from ferryvm.engine.journal import Considered, Journal, Placement
from ferryvm.engine.other_entry import Passes, wait_for_other
from ferryvm.engine.site import Site
from ferryvm.engine.transition import SiteEvent
from ferryvm.policy import Action, Choice, Policy, Rule, choose, here
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.engine.launch_profile import LaunchSight
    from ferryvm.region.fact import LaunchProfile
    from ferryvm.region.known_word import KnownWord
    from ferryvm.region.region import Region

_LAUNCH = "launch"
"""The kind of a region that is a launch."""


class Decider:
    """The policy of one program, applied to its regions."""

    def __init__(
        self,
        program: Verified,
        policy: Policy,
        journal: Journal,
        extra_facts: ExtraFacts | None,
        has_ranges: Callable[[Choice], bool],
    ) -> None:
        """`extra_facts`: facts about a region from plugins; `has_ranges`: True for a choice whose
        code runs items of launches out of order."""
        self._runs_ranges = has_ranges
        self.sights: dict[int, LaunchSight] = {}
        """Launches as machines last had them, by the pc of `launch.test`."""
        self._words: dict[int, frozenset[KnownWord]] = {}
        """Words of a launch that had one value whenever machines had it, likewise."""
        self._changed: set[tuple[int, bool, int]] = set()
        """Words that were taken for constant and are not: pc of the launch or -1, kind, number."""
        self._works: dict[int, int] = {}
        """The largest work of an item so far, by its function."""
        self.passes: Passes = lambda pc, counting=False: None
        """The times that control has come to a pc, if it is counted."""
        self._program, self._policy = program, policy
        self._journal, self._extra_facts = journal, extra_facts

    @functools.cached_property
    def has_ranges(self) -> bool:
        """True if the policy has choices whose code runs items of launches out of order."""
        return any(self._runs_ranges(one) for rule in self._policy.rules for one in rule.chain)

    def note(self, pc: int, seen: LaunchSight) -> None:
        """Note how a machine has the launch at `pc`."""
        self.sights[pc] = seen
        self._words[pc] = self._words.get(pc, seen.words) & seen.words

    def decide(self, site: Site, sites: Mapping[tuple[int, bool], Site]) -> tuple[SiteEvent, str]:
        """The event that results from a site's decision, and the reason; `site.rule` and
        `site.region` are set.

        `sites`: all of them, which have cells of their own.
        """
        if site.rule is not None:
            site.known = self._known(site, site.rule)
            return SiteEvent.CHOSEN, site.placed(self._journal).decision
        from ferryvm.region.region import candidates

        placement = site.placed(self._journal)
        if site.regions is None:
            found = candidates(self._program, site.pc)
            if site.is_launch_only:
                found = found[:1]  # for the loops around it their own heads get hot
            site.regions = tuple(record.replace(one, entry=site.pc) for one in found)
        if not site.regions:
            placement.decision = self._why_no_region(site.pc)
            return SiteEvent.NO_REGION, placement.decision
        rule = self._rule(site, site.regions, placement)
        if rule is None:
            return SiteEvent.UNWANTED, placement.decision
        if site.is_launch_only and not self._runs_ranges(rule.chain[0]):
            placement.decision += "; its items run in order, so it waits until it is hot"
            return SiteEvent.UNWANTED, placement.decision
        awaited = wait_for_other(site, sites, self.passes)
        if awaited is not None:
            placement.decision = f"it waits: {awaited}"
            return SiteEvent.WAITED, awaited
        site.rule = rule
        if any(choice.options.speculate for choice in rule.chain):
            from ferryvm.engine.speculation import plan

            items = self._observed_items(rule, placement) if _is_launch(site) else None
            if plan(site, sites, items):
                return SiteEvent.UNOBSERVED, placement.decision
            site.known = self._known(site, rule)
        return SiteEvent.CHOSEN, placement.decision

    def _rule(self, site: Site, regions: tuple[Region, ...], placement: Placement) -> Rule | None:
        """The first rule that selects one of the regions; None if there is none."""
        from ferryvm.region.fact import facts

        for region in regions:
            extra = self._extra_facts(region) if self._extra_facts is not None else {}
            profiled = self._launch_profile(region)
            placement.profile = profiled or placement.profile
            found = facts(region, site.threshold, profiled)
            decision = choose(self._policy, found, here(), extra)
            placement.region, placement.kind = region.name, region.kind.value
            placement.decision = decision.reason
            considered = Considered(region.name, decision.reason, decision.lines())
            placement.considered.append(considered)
            rule = decision.rule
            if rule is not None and rule.action is Action.COMPILE and rule.chain:
                site.region = region
                return rule
        return None

    def _known(self, site: Site, rule: Rule) -> frozenset[KnownWord]:
        """The words of a launch that its code may take for constant."""
        is_guessing = any(choice.options.speculate for choice in rule.backends)
        if not is_guessing or site.is_cautious or site.counting or not _is_launch(site):
            return frozenset()
        assert site.region is not None
        launch = site.region.entry
        words = self._words.get(launch, frozenset())
        found = frozenset(one for one in words if _word_key(launch, one) not in self._changed)
        guesses = site.placed(self._journal).guesses
        known = {guess.subject for guess in guesses}
        guesses += [Guess(word) for word in sorted(found) if word not in known]
        return found

    def changed(self, launch: int, words: Collection[KnownWord]) -> None:
        """Take words of a launch for constant no more: they had other values."""
        self._changed |= {_word_key(launch, word) for word in words}

    def _observed_items(self, rule: Rule, placement: Placement) -> int:
        """The items of a launch that are observed before code of it speculates."""
        from ferryvm.engine.speculation import items_of

        wanted = max(one.options.observe_items for one in rule.backends)
        assert placement.profile is not None
        return wanted or items_of(placement.profile)

    def _launch_profile(self, region: Region) -> LaunchProfile | None:
        """The profile of a region that is a launch; None for any other."""
        if region.kind.value != _LAUNCH:
            return None
        from ferryvm.engine.launch_profile import profile
        from ferryvm.region.launch import CALL_DISTANCE

        found = profile(region, self.sights.get(region.entry), self.passes)
        item = self._program.program.code.immediates[region.entry + CALL_DISTANCE]
        # What is compiled is not counted any more, so later profiles may find less.
        work = self._works[item] = max(found.item_work, self._works.get(item, 0))
        return record.replace(found, item_work=work)

    def _why_no_region(self, pc: int) -> str:
        from ferryvm.region.graph import graph

        loop = graph(self._program, self._program.owner(pc)).loop_at(pc)
        if loop is None:
            return "no region starts here"
        return f"no region starts here: it is in the loop whose head is pc {loop.head}"


def _word_key(launch: int, word: KnownWord) -> tuple[int, bool, int]:
    return -1 if word.is_static else launch, word.is_static, word.number


def _is_launch(site: Site) -> bool:
    """True if the selected region of a site is the loop of a launch."""
    return site.region is not None and site.region.kind.value == _LAUNCH
