# SPDX-License-Identifier: Apache-2.0
"""Tiering: the handling of events at the sites of one prepared program.

    program's thread:  HOT, GUARD, ... ──> step ──> job ─────────┐
    compile thread:    STARTED ──> step ──> decide ──> step ──> compile ──> step ──> installed, ...

A step changes state and cells together, under one lock, as `ferryvm.engine.transition` says. Slow
work (deciding, compiling, notifying listeners) is done after it, without the lock. Whatever the
outcome of a compilation, the program continues, unless its policy requires the code.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from ferryvm.backend import Artifact, BackendError, CompilationError
from ferryvm.engine.attempt import Compilers
from ferryvm.engine.cell import SiteCells
from ferryvm.engine.decision import Decider
from ferryvm.engine.guess import CHANGED, FORGOTTEN, give_up
from ferryvm.engine.journal import Event, Journal, Placement
from ferryvm.engine.requirement import Requirements
from ferryvm.engine.site import Site
from ferryvm.engine.transition import CellChange, SiteEvent, SiteState, Transition, Work
from ferryvm.failure import described, is_ctrl_c
from ferryvm.machine.state import Machine
from ferryvm.policy import Policy
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.region.known_word import KnownWord

_COLD = frozenset([SiteState.COLD])
_INSTALLED = frozenset([SiteState.INSTALLED])
_COUNTED = frozenset(
    [
        SiteState.COLD,
        SiteState.OBSERVING,
        SiteState.COUNTING,
        SiteState.INTERPRETED,
        SiteState.GIVEN_UP,
    ]
)
"""States in which a count cell may lead to a step."""
_AT_WORK = frozenset([SiteState.DECIDING, SiteState.COMPILING, SiteState.RECOMPILING])
_PENDING = _AT_WORK | {SiteState.QUEUED}
_ENTERED = frozenset([SiteState.INSTALLED, SiteState.RECOMPILING])
"""States with code that can be entered."""
_RECOMPILING = frozenset([SiteState.RECOMPILING])


class Tiering:
    """The sites of one program, and the steps from one of their states to the next.

    A site that is queued and has no job yet belongs to the thread that took the step; one that is
    deciding or compiling to the compile thread.
    """

    def __init__(
        self,
        program: Verified,
        policy: Policy,
        inner: Artifact,
        journal: Journal,
        decider: Decider,
        compilers: Compilers,
        requirements: Requirements,
    ) -> None:
        """`inner`: the interpreter's artifact, which has the cells."""
        self._cells = SiteCells(program, policy.profile, inner, compilers.launches)
        self.sites = self._cells.sites
        self.counted_forms: set[bool] = set()
        """The forms of the code whose sites are counted."""
        self._program, self._policy = program, policy
        self._journal, self._decider = journal, decider
        self._compilers, self._requirements = compilers, requirements
        self._inner = inner
        decider.passes = self._passes
        self._lock, self._start_lock = threading.Lock(), threading.Lock()

    # --- events in the program -----------------------------------------------------------------

    def start(self, counting: bool) -> None:
        """Count the sites of a form of the code, and start compilations that the policy wants
        before the run."""
        with self._start_lock:
            if counting in self.counted_forms:
                return
            profile = self._policy.profile
            if profile.enabled:
                delay = 0.0 if self._requirements.may_wait else profile.delay_ms / 1000
                self._cells.count_all(counting, delay)
            if self._policy.whole_program:
                self._compile_whole(counting, profile.function_threshold)
            self.counted_forms.add(counting)

    def _compile_whole(self, counting: bool, threshold: int) -> None:
        """Compile the whole program before it runs."""
        from ferryvm.region.region import Region, RegionKind

        entry = self._program.program.functions[0].entry
        site = Site(entry, counting, threshold)
        counted = self.sites.get(site.key)
        site.is_counted = counted is not None and counted.is_counted
        self.sites[site.key] = site
        site.regions = (Region(self._program, RegionKind.PROGRAM, 0, entry),)
        why = "the whole program, before it starts"
        found = self._step(site, SiteEvent.WHOLE, why)
        assert found is not None
        site.placed(self._journal, why)
        self._do(found.work, site)

    def hot(self, pc: int, counting: bool) -> None:
        """A count cell came to its count."""
        site = self.sites.get((pc, counting))
        if site is None:
            return  # the target of an observed branch, and that would take centuries
        with self._lock:
            if not site.is_counted:
                return  # another machine met the same cell
            if site.state not in _COUNTED:  # it was queued for another reason: continue to count
                self._cells.count(site, site.threshold)
                return
            site.is_counted = False
        if site.history and site.history[-1].event is SiteEvent.NESTED:
            why = site.history[-1].reason
        else:
            why = "reached once" if site.threshold == 1 else f"reached {site.threshold} times"
        found = self._step(site, SiteEvent.HOT, why, _COUNTED)
        if found is None:
            return
        placement = site.placed(self._journal, why)
        if found.cells is not CellChange.STOP_OBSERVING:  # otherwise the decision remains
            site.regions = site.rule = None
            placement.why = why
        self._do(found.work, site)

    def count_on(self, pc: int) -> bool:
        """Count a pc again that is hot, since other code is under way of which it is a part; False
        if it is not counted, or is hot at once."""
        site = self.sites.get((pc, False))
        with self._lock:
            if site is None or not site.is_counted or site.threshold == 1:
                return False
            times = site.threshold
            site.threshold += times  # or `_passes` would forget those so far
            self._cells.count(site, times)
            return True

    def hot_in_launch(self, machine: Machine) -> bool:
        """Code is hot where a machine stands: note the launch that it is at, or whose item it runs,
        and request code for that. True if it runs an item, and code of the launch is under way."""
        from ferryvm.engine.launch_profile import sight  # few programs have launches

        hot = machine.control.pc
        launches = self._compilers.launches
        at = hot if launches is not None and launches.has(hot) else -1
        seen = sight(machine, at, self._passes)
        if seen is None or launches is None or not launches.has(seen[0]):
            return False
        pc = seen[0]
        self._decider.note(*seen)
        if pc == hot:
            return False
        self._request_launch(pc, f"its items are hot, at pc {hot}")
        site = self.sites.get((pc, False))
        return site is not None and site.state in _PENDING

    def _passes(self, pc: int, counting: bool = False) -> int | None:
        """See `Passes`."""
        site = self.sites.get((pc, counting))
        if site is None:
            return None
        left = self._inner.counted(pc, counting) if site.is_counted else 0
        return site.threshold - left

    def sliced(self, pc: int, counting: bool) -> None:
        """Compiled code left in the middle: request code that starts there, unless it was requested
        before."""
        site = self.sites.setdefault((pc, counting), Site(pc, counting, 1))
        why = "compiled code was interrupted there, at the end of its time slice"
        found = self._step(site, SiteEvent.SLICED, why, _COLD)
        if found is not None:
            site.delay = 0.0
            site.placed(self._journal, why)
            self._do(found.work, site)

    def guess_failed(self, launch: int, wrong: int | frozenset[KnownWord]) -> None:
        """A guess in the code of the launch at a pc was wrong too often: request code without it.
        `wrong`: pc of the branch, or words that have other values."""
        site = self.sites.get((launch, False))
        if site is None:
            return
        if isinstance(wrong, int):
            self._doubt(site, wrong)
            return
        reason = "words that it takes for constant have other values"
        found = self._step(site, SiteEvent.GUARD, reason, _ENTERED)
        if found is None:
            return  # another machine was first
        self._decider.changed(launch, wrong)
        give_up(site.placed(self._journal).guesses, wrong, CHANGED)
        self._compile_again(site, found, launch)

    def _doubt(self, site: Site, branch: int) -> None:
        """Too many items of a launch failed a guard: request code without it. They run in order
        meanwhile, by the code that there is: where a guard fails, that takes a microsecond."""
        reason = f"too many items failed the guard at pc {branch}"
        found = self._step(site, SiteEvent.DOUBTED, reason, _INSTALLED)
        if found is None:
            return  # another machine was first
        assert self._compilers.launches is not None
        self._compilers.launches.run_in_order(site.pc, reason)
        self._cells.branches.fail(site, branch)
        self._compile_again(site, found, branch)

    def guard_failed(self, branch: int, counting: bool) -> None:
        """A guard failed too often: request code without it."""
        for site in list(self.sites.values()):
            if site.counting != counting or not any(pc == branch for pc, _ in site.unseen):
                continue
            if self._tolerates(site, branch):
                continue
            reason = f"the guard at pc {branch} failed too often"
            found = self._step(site, SiteEvent.GUARD, reason, _INSTALLED)
            if found is None:
                continue  # its code is being compiled, or another machine was first
            self._cells.branches.fail(site, branch)
            self._compile_again(site, found, branch)

    def _compile_again(self, site: Site, found: Transition, pc: int) -> None:
        """Compile a site again without the guess at a pc; without any, if that was done too
        often."""
        placement = site.placed(self._journal)
        placement.recompilations += 1
        self._journal.notify(Event.GUARD, placement, pc)
        if found.cells is CellChange.CLEAR:
            self._journal.notify(Event.REMOVED, placement, pc)
        assert site.choice is not None
        if placement.recompilations > site.choice.options.recompile_limit:
            self._cells.branches.forget(site)
            give_up(placement.guesses, site.known, FORGOTTEN)
            site.is_cautious, site.known = True, frozenset()
            placement.why = (
                f"its guards made it compile {placement.recompilations} times: "
                "nothing is speculated on any more"
            )
        self._do(found.work, site)

    def _tolerates(self, site: Site, branch: int) -> bool:
        """True if a launch's code may keep a guard, in view of all items that ran out of order."""
        launches = self._compilers.launches
        return launches is not None and not site.counting and launches.tolerates(site.pc, branch)

    def lost(self, counting: bool) -> None:
        """Code cannot run any more: request code from the next backends, or continue without it."""
        for site in list(self.sites.values()):
            code, choice = site.code, site.choice
            if site.counting != counting or code is None or choice is None or not code.lost:
                continue
            event = SiteEvent.DENIED if choice.options.required else SiteEvent.LOST
            reason = code.lost
            found = self._step(site, event, reason, _ENTERED)
            if found is not None:
                self._compilers.lose(site, reason)
                self._journal.notify(Event.REMOVED, site.placed(self._journal))
                site.error = BackendError(reason)
                self._do(found.work, site)

    def ran_long(self, pc: int, counting: bool) -> None:
        """Quick code has run long: request better code, and first good code that starts at its
        exit, unless that was requested before."""
        for site in list(self.sites.values()):
            code = site.code
            if site.counting != counting or code is None or not code.long or site.has_run_long:
                continue
            found = self._step(site, SiteEvent.LONG, code.long, _INSTALLED)
            if found is None:
                continue  # another machine was first
            site.has_run_long = True
            where = self.sites.setdefault((pc, counting), Site(pc, counting, 1))
            if where.state is SiteState.COLD:
                where.has_run_long = True
                self.sliced(pc, counting)
            self._do(found.work, site)

    def differed(self, placement: Placement) -> None:
        """The shadow found the code of a site wrong: remove it."""
        for site in list(self.sites.values()):
            if site.placement is placement:
                self._step(site, SiteEvent.DIFFERED, placement.differences[-1], _ENTERED)
        self._journal.notify(Event.REMOVED, placement)

    # --- steps ----------------------------------------------------------------------------------

    def _step(
        self,
        site: Site,
        event: SiteEvent,
        reason: str,
        states: frozenset[SiteState] | None = None,
    ) -> Transition | None:
        """Take a site to its next state, with its cells; the transition.

        `states`: in any other state the event is redundant, and the site does not change: None.
        Raises TransitionError for an event that the state has no row for.
        """
        with self._lock:
            if states is not None and site.state not in states:
                return None
            now = self._journal.now()
            return site.step(event, reason, now, lambda change: self._cells.change(site, change))

    def _do(self, work: Work, site: Site) -> None:
        """Do the work that follows a step; for the compile thread's part see `_work`."""
        match work:
            case Work.QUEUE:
                self._queue(site)
            case Work.RECOMPILE:
                from ferryvm.region.region import RegionKind

                assert site.region is not None
                # A program enters its own better code at its next start, so it does not wait.
                is_whole = site.region.kind is RegionKind.PROGRAM
                self._submit(site, Tiering._recompile, is_awaited=not is_whole)
            case Work.HASTEN:
                self._hasten_head(site)
            case Work.END:
                assert site.error is not None
                self._requirements.refuse(site.error)

    def _queue(self, site: Site) -> None:
        """Queue a site for the compile thread.

        The compile thread also determines whether programs wait for it, from the rule that applies:
        a decision takes longer than many programs run.
        """
        self._submit(site, Tiering._work, site.delay if site.rule is None else 0.0)

    def _submit(
        self,
        site: Site,
        work: Callable[[Tiering, Site], None],
        delay: float = 0.0,
        is_awaited: bool = True,
    ) -> None:
        """Submit a job that does some work for a site; programs that wait for code wait for it."""
        from ferryvm.engine.compilation import (  # where nothing is hot, there is no thread
            Job,
            submit,
        )

        me = weakref.ref(self)  # a program that has ended need not be compiled any more

        def action() -> None:
            tiering = me()
            if tiering is None:
                return
            try:
                work(tiering, site)
            except BaseException as error:
                if is_ctrl_c(error):
                    raise
                tiering._broke(site, error)

        site.job = job = Job(action, delay)
        try:
            if is_awaited:
                self._requirements.expect(site)
            submit(job)
        except BaseException:  # a signal handler's, the end of Python's stack
            job.end()  # programs need not wait for it
            raise

    def _work(self, site: Site) -> None:
        """Continue with a queued site, in the compile thread."""
        event, reason = SiteEvent.STARTED, "the compile thread took it"
        while True:
            code = site.code
            found = self._step(site, event, reason)
            assert found is not None
            if found.work is Work.DECIDE:
                event, reason = self._decider.decide(site, self.sites)
            elif found.work is Work.COMPILE:
                assert site.job is not None
                if self._compilers.is_beside(site):
                    site.job.let_go()
                event, reason = self._compilers.compile(site)
            else:
                break
        if found.cells is CellChange.ENTER:
            self._journal.notify(Event.INSTALLED, site.placed(self._journal), code)
            self._request_launches(site)
        self._do(found.work, site)

    def _request_launches(self, site: Site) -> None:
        """Request code for the launches that a site's code contains, where the policy has a backend
        that runs their items out of order."""
        assert site.choice is not None
        why = f"code around it was compiled: {site.placed(self._journal).region}"
        for pc, _ in sorted(self._compilers.launches_of(site, site.choice)):
            self._request_launch(pc, why)

    def _request_launch(self, pc: int, why: str) -> None:
        """Request code for the launch at `pc`, unless it was requested before, if the policy has
        backends that run items out of order."""
        if not self._decider.has_ranges:
            return
        launch = self.sites.setdefault((pc, False), Site(pc, False, 1))
        found = self._step(launch, SiteEvent.LAUNCH, why, _COLD)
        if found is not None:
            launch.delay = 0.0
            launch.placed(self._journal, why)
            self._do(found.work, launch)

    def _recompile(self, site: Site) -> None:
        """Request better code to replace a site's, in the compile thread. The code that there is is
        entered meanwhile, and remains if there is none."""
        job = site.job
        assert job is not None
        if site.state is not SiteState.RECOMPILING:
            return  # its code was lost or found wrong before the job started
        if self._compilers.is_beside(site):
            job.let_go()
        event, reason, site.better = self._compilers.recompile(site)
        better = site.better
        found = self._step(site, event, reason, _RECOMPILING)
        site.better = None
        if found is None:
            return  # it was lost meanwhile
        if found.cells is CellChange.REPLACE:
            self._journal.notify(Event.REPLACED, site.placed(self._journal), better)
        self._do(found.work, site)

    def _broke(self, site: Site, error: BaseException) -> None:
        """Record a failure outside the backends."""
        what = f"it could not be done: {described(error)}"
        self._step(site, SiteEvent.BROKE, what, _AT_WORK)
        site.placed(self._journal).decision = what
        if self._requirements.is_strict:
            self._requirements.refuse(CompilationError(f"pc {site.pc}: {described(error)}"))
        else:
            self._compilers.say_once(f"pc {site.pc}: what is hot there cannot be compiled: {what}")

    def _hasten_head(self, site: Site) -> None:
        """Compile a loop from its head when it is next entered, if a loop in it waits for that, or
        its code has an entry in the middle: a compiler does not see its loops as nested then."""
        assert site.region is not None
        loop, head = site.region.loop, site.other
        why = f"it comes often, and the loop in it at pc {site.pc} is hot"
        if head is None:
            head = self.sites.get((loop.head, site.counting)) if loop is not None else None
            why = f"begun again after it was compiled from inside, at pc {site.pc}"
        if head is None or head is site:
            return
        head.more = 1
        head.has_run_long |= site.has_run_long
        if head is site.other:
            head.delay = 0.0
        self._step(head, SiteEvent.NESTED, why, _COLD)
