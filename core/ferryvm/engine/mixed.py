# SPDX-License-Identifier: Apache-2.0
"""Mixed execution: an interpreter's artifact with compiled regions in it, as one artifact.

    enter ──> interpreter ──> HOT    ──> which region? policy: which compilers? ──> compile ──> install
                 ▲    │  ▲ └─> GUARD  ──> compile again without the speculation ───────┘            │
                 │    │  └─────────────── go on meanwhile ─────────────────────────────────────────┘
                 │    └───> anything else: give it to the engine
                 └── compiled code leaves with LEAVE, without coming through here

Whatever happens to a compilation, the program goes on in the interpreter, unless its policy says
that the backend is required.
"""

from __future__ import annotations

import dataclasses
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ferryvm.backend import (
    Artifact,
    BackendError,
    Capabilities,
    CompilationError,
    Forcing,
    Interpreter,
    RefusalError,
)
from ferryvm.engine.attempt import Compilers, Find
from ferryvm.engine.compilation import Job, submit
from ferryvm.engine.hook import ExtraFacts
from ferryvm.engine.journal import Considered, Event, Journal, Listener, Outcome, Placement
from ferryvm.engine.site import Site
from ferryvm.failure import described, is_ctrl_c
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.state import Machine
from ferryvm.policy import Action, Policy, Rule, choose, here
from ferryvm.region.loop_head import likely_loop_heads, scope_marks
from ferryvm.verify import Verified

if TYPE_CHECKING:
    from ferryvm.engine.shadow import Shadow
    from ferryvm.region.loop import Loop
    from ferryvm.region.region import Region


_LAST = frozenset([Status.HALT, Status.TRAP, Status.FUEL])
"""Statuses after which nobody may come back."""


class Mixed(Interpreter):
    """An interpreter and the compilers of a policy, under one name."""

    def __init__(
        self,
        name: str,
        policy: Policy,
        interpreter: Interpreter,
        find: Find,
        observe: bool = False,
        listeners: tuple[Listener, ...] = (),
        extra_facts: ExtraFacts | None = None,
        strict: bool = False,
    ) -> None:
        """`find`: the backend of a name, as `Registry.get`; `observe`: keep metrics of `Activity`;
        `listeners`: told of what happens; `extra_facts`: of a region, from plugins; `strict`: for
        tests, a compiler that fails ends the program, and IR is verified between passes."""
        self._strict = strict
        self.name, self.policy, self._interpreter, self._find = name, policy, interpreter, find
        self.version = interpreter.version
        self.observe, self.listeners, self.extra_facts = observe, listeners, extra_facts
        own = interpreter.capabilities
        forcing = own.forcing | {Forcing.HOT, Forcing.DEOPT}
        self.capabilities: Capabilities = dataclasses.replace(own, forcing=frozenset(forcing))
        self._shadow: Interpreter | None = None
        if policy.shadow is not None:
            from ferryvm.engine.shadow import shadow_backend  # hardly any policy has one

            self._shadow = shadow_backend(find(policy.shadow.against), interpreter)
            heaps = [h for h in (own.heap, self._shadow.capabilities.heap) if h is not None]
            self.capabilities = dataclasses.replace(
                self.capabilities, heap=min(heaps, default=None)
            )

    def accepts(self, program: Verified) -> str | None:
        return self._interpreter.accepts(program)

    def watch(self, listener: Listener, around: Callable[[Interpreter], Interpreter]) -> None:
        """Tell a listener too, keep metrics of `Activity`, and put something around the
        interpreter; what has been prepared already stays as it is."""
        self.observe, self.listeners = True, (*self.listeners, listener)
        self._interpreter = around(self._interpreter)

    def prepare(self, program: Verified) -> Artifact:
        return self.prepare_forced(program, frozenset())

    def prepare_forced(self, program: Verified, forcing: frozenset[Forcing]) -> Artifact:
        inner = self._interpreter.prepare(program)
        if not self._interpreter.capabilities.cells:
            raise RefusalError(f"backend {self._interpreter.name!r} has no cells to enter code at")
        if Forcing.DEOPT in forcing:
            self._refuse_what_stays()
        policy = self.policy if Forcing.HOT not in forcing else _forced(self.policy)
        journal, shadow = Journal(self.listeners), None
        if self._shadow is not None:
            from ferryvm.engine.shadow import Shadow

            shadow = Shadow(program, self._shadow)
        compilers = Compilers(self._find, journal, self.observe, forcing, shadow, self._strict)
        artifact = MixedArtifact(
            program, inner, policy, journal, compilers, forcing, self.extra_facts, shadow
        )
        if self._strict:
            artifact.be_strict()
        return artifact

    def _refuse_what_stays(self) -> None:
        """Raise RefusalError if a compiler of the policy cannot be forced to leave."""
        for name in {choice.backend for rule in self.policy.rules for choice in rule.backends}:
            if Forcing.DEOPT not in self._find(name).capabilities.forcing:
                raise RefusalError(f"backend {name!r} has nothing to force: deopt")


def _forced(policy: Policy) -> Policy:
    """The policy with every threshold at 1."""
    profile = dataclasses.replace(
        policy.profile,
        enabled=True,
        loop_threshold=1,
        function_threshold=1,
        scope_threshold=1,
    )
    return dataclasses.replace(policy, profile=profile)


class MixedArtifact(Artifact):
    """A program in an interpreter's form, with cells."""

    def __init__(
        self,
        program: Verified,
        inner: Artifact,
        policy: Policy,
        journal: Journal,
        compilers: Compilers,
        forcing: frozenset[Forcing],
        extra_facts: ExtraFacts | None,
        shadow: Shadow | None,
    ) -> None:
        """`extra_facts`: of a region, from plugins; `shadow`: repeats what compiled code does."""
        self.program, self.inner, self.policy = program, inner, policy
        self.journal = journal
        self._compilers, self._forcing = compilers, forcing
        self._extra_facts, self._shadow = extra_facts, shadow
        self._places: dict[tuple[int, bool], Site] = {}
        self._is_set_up: set[bool] = set()
        choices = [choice for rule in policy.rules for choice in rule.backends[:1]]
        self._may_wait = bool(forcing) or not all(c.options.background for c in choices)
        self._lock = threading.Lock()
        self._awaited: dict[tuple[int, bool], Site] = {}
        """Places whose code is waited for, also in the next run where that was interrupted."""
        required = [c.options for r in policy.rules for c in r.backends if c.options.required]
        self._is_strict = bool(required)
        """Whether there is something that the policy requires."""
        self._must_succeed = False
        """Whether compilers may refuse, but not fail."""
        self._may_stop = any(options.background for options in required)
        self._entered: list[ControlBlock] = []
        """Of the machines that are under way, where they may have to be stopped."""
        self._refused: BackendError | None = None
        """Why what the policy requires could not be had; then nothing is run any more."""

    def be_strict(self) -> None:
        """Have a compiler that fails end the program, whatever the policy says of it."""
        choices = [choice for rule in self.policy.rules for choice in rule.backends]
        self._is_strict = self._must_succeed = True
        self._may_stop = any(choice.options.background for choice in choices)

    def enter(self, machine: Machine, counting: bool) -> Status:
        if self._shadow is not None:
            return self._shadow.run(machine, counting, self._enter, self._give_up)
        return self._enter(machine, counting)

    def _enter(self, machine: Machine, counting: bool) -> Status:
        if counting not in self._is_set_up:
            with self._lock:
                if counting not in self._is_set_up:
                    self._set_up(counting)
                    self._is_set_up.add(counting)
        while True:
            if not self._wait(machine):
                machine.control.status = Status.INTERRUPTED
                return Status.INTERRUPTED
            status = self._interpret(machine, counting)
            if status is Status.HOT:
                self._hot(machine.control.pc, counting)
            elif status is Status.GUARD:
                self._failed(machine.control.pc, counting)
            elif status is Status.SLICED:
                self._sliced(machine.control.pc, counting)
            elif status is Status.LOST:
                self._lost(counting)
            elif status is not Status.INTERRUPTED or self._refused is None:
                if self._may_stop and status in _LAST:
                    self._wait_for_verdicts(machine)
                return status

    def metrics(self) -> Mapping[str, Mapping[str, object]]:
        from ferryvm.engine.metric import metrics  # few runs are asked

        found = metrics(self.journal.placements, self._compilers.find)
        return {**self.inner.metrics(), **found}

    def _interpret(self, machine: Machine, counting: bool) -> Status:
        if not self._may_stop:
            return self.inner.enter(machine, counting)
        with self._lock:
            self._entered.append(machine.control)
        try:
            return self.inner.enter(machine, counting)
        finally:
            with self._lock:
                self._entered.remove(machine.control)

    def _wait(self, machine: Machine) -> bool:
        """Wait for what is to be waited for; False if that was interrupted.

        Raises what the policy requires and could not be had.
        """
        for key, place in list(self._awaited.items()):
            assert place.job is not None
            began = self.journal.now()
            has_ended = place.job.wait(machine.control)
            self.waited += self.journal.now() - began
            if not has_ended and self._refused is None:
                return False
            self._awaited.pop(key, None)
        if self._refused is not None:
            raise type(self._refused)(str(self._refused))
        return True

    def _wait_for_verdicts(self, machine: Machine) -> None:
        """Wait for what is required and still being compiled for a program that has ended: whether
        it could be had must not depend on who is faster."""
        for place in list(self._places.values()):
            if place.job is not None and not place.job.wait(machine.control, to_the_end=True):
                return
        if self._refused is not None:
            raise type(self._refused)(str(self._refused))

    def _refuse(self, error: BackendError) -> None:
        """Run nothing any more: the policy requires what could not be had."""
        with self._lock:
            self._refused = error
            for control in self._entered:
                control.interrupt = 1

    # --- profile ----------------------------------------------------------------------------

    def _set_up(self, counting: bool) -> None:
        """Put the count cells of the policy, and begin with what is to be compiled at once."""
        profile = self.policy.profile
        if profile.enabled:
            for place in self._counted(counting):
                self._places[place.key] = place
                self.inner.count(place.pc, place.threshold, counting)
        if self.policy.whole_program:
            entry = self.program.program.functions[0].entry
            place = Site(entry, counting, profile.function_threshold)
            self._places[entry, counting] = place
            from ferryvm.region.region import Region, RegionKind

            place.regions = (Region(self.program, RegionKind.PROGRAM, 0, entry),)
            place.why = "the whole program, before it starts"
            self._have_done(place, MixedArtifact._decide)

    def _counted(self, counting: bool) -> Iterable[Site]:
        """The places that are counted; a pc that is several things is the last of them."""
        profile, program = self.policy.profile, self.program
        delay = 0.0 if self._may_wait else profile.delay_ms / 1000
        found = {}
        for head in likely_loop_heads(program):
            found[head] = Site(head, counting, profile.loop_threshold, delay)
        for function in program.program.functions[1:]:  # the first one is entered once
            entry = function.entry
            found[entry] = Site(entry, counting, profile.function_threshold, delay)
        for mark in scope_marks(program):
            found[mark] = Site(mark, counting, profile.scope_threshold, delay)
        return found.values()

    def _hot(self, pc: int, counting: bool) -> None:
        """A place got hot."""
        place = self._places.get((pc, counting))
        if place is None:  # only a watched branch, and that would take centuries
            return
        if place.watched:
            from ferryvm.engine.speculation import stop_watching

            stop_watching(self.inner, place)
            self._have_done(place, MixedArtifact._compile)
            return
        times = "once" if place.threshold == 1 else f"{place.threshold} times"
        place.why = place.cause or f"reached {times}"
        place.regions = None
        self._have_done(place, MixedArtifact._decide, place.delay)

    def _decide(self, place: Site) -> None:
        """Ask the policy about a place, and do what it says."""
        # Short programs never come here, so they need not load it.
        from ferryvm.region.fact import facts
        from ferryvm.region.region import candidates

        placement = place.placed(self.journal)
        placement.why = place.why
        if place.regions is None:
            found = candidates(self.program, place.pc)
            place.regions = tuple(dataclasses.replace(r, entry=place.pc) for r in found)
        placement.decision = "" if place.regions else self._count_around(place)
        for region in place.regions:
            extra = self._extra_facts(region) if self._extra_facts is not None else {}
            decision = choose(self.policy, facts(region, place.threshold), here(), extra)
            placement.region, placement.kind = region.name, region.kind.value
            placement.decision = decision.reason
            passed = decision.told()
            placement.considered.append(Considered(region.name, decision.reason, passed))
            rule = decision.rule
            if rule is not None and rule.action is Action.COMPILE and rule.backends:
                place.region, place.rule = region, rule
                if not self._watch(place, rule):
                    self._compile(place)
                return
        placement.state = "interpreted"

    def _count_around(self, place: Site) -> str:
        """Count the loops around a place that starts none, where nobody counts them yet; why it
        gets no code."""
        from ferryvm.region.graph import graph

        innermost = graph(self.program, self.program.owner(place.pc)).loop_at(place.pc)
        if innermost is None:
            return "no region starts here"
        loop: Loop | None = innermost
        while loop is not None:
            times = 1 if loop is innermost else self.policy.profile.loop_threshold
            around = Site(loop.head, place.counting, times)
            if around.key not in self._places:
                self._places[around.key] = around
                self.inner.count(around.pc, times, around.counting)
            loop = loop.parent
        return f"no region starts here: it is in the loop whose head is pc {innermost.head}"

    # --- speculation ------------------------------------------------------------------------

    def _watch(self, place: Site, rule: Rule) -> bool:
        """See which way the branches of a region go for a while, if its rule wants to know."""
        if not any(choice.options.speculate for choice in rule.backends):
            return False
        from ferryvm.engine.speculation import watch

        more = watch(self.inner, place, self._places)
        if not more:
            return False
        place.placed(self.journal).state = "observing"
        # If the program waits here it comes by once before it goes round.
        self.inner.count(place.pc, more + 1, place.counting)
        return True

    def _failed(self, branch: int, counting: bool) -> None:
        """A guard failed too often: compile without it."""
        for place in list(self._places.values()):
            if place.counting != counting or not any(pc == branch for pc, _ in place.unseen):
                continue
            assert place.choice is not None
            assert place.region is not None
            assert place.rule is not None
            placement = place.placed(self.journal)
            placement.recompilations += 1
            self.journal.tell(Event.GUARD, placement, branch)
            self.inner.remove(place.pc, counting)
            self.journal.tell(Event.REMOVED, placement, branch)
            place.unseen = frozenset(way for way in place.unseen if way[0] != branch)
            if placement.recompilations > place.choice.options.recompile_limit:
                place.unseen = frozenset()
                placement.why = (
                    f"its guards made it compile {placement.recompilations} times: "
                    "nothing is speculated on any more"
                )
            self._have_done(place, MixedArtifact._compile)

    def _sliced(self, pc: int, counting: bool) -> None:
        """Compiled code stopped in the middle, for its time was over: have code that begins there,
        unless that was asked for before."""
        place = self._places.get((pc, counting))
        if place is None:
            place = self._places[pc, counting] = Site(pc, counting, 1)
        if place.job is None:
            place.why = "compiled code stopped there, at the end of its slice of time"
            place.regions = None
            self._have_done(place, MixedArtifact._decide)

    def _lost(self, counting: bool) -> None:
        """Code cannot be run any more: ask the next backends, or go on without it."""
        for place in list(self._places.values()):
            placement = place.placement
            code = placement.code if placement is not None else None
            if place.counting != counting or code is None or not code.lost:
                continue
            assert placement is not None
            assert place.choice is not None
            if place.choice.backend in place.lost:
                continue
            self.inner.remove(place.pc, counting)
            self._compilers.lose(place, code.lost)
            self.journal.tell(Event.REMOVED, placement)
            if place.choice.options.required:
                self._refuse(BackendError(code.lost))
            else:
                self._have_done(place, MixedArtifact._compile)

    def _give_up(self, placement: Placement) -> None:
        """Have the code of a place entered no more."""
        for place in self._places.values():
            if place.placement is placement:
                place.unseen = frozenset()  # or a guard of another region would compile it again
                self.inner.remove(place.pc, place.counting)
        placement.state = "given up"
        self.journal.tell(Event.REMOVED, placement)

    # --- compilation ------------------------------------------------------------------------

    def _have_done(
        self, place: Site, what: Callable[[MixedArtifact, Site], None], delay: float = 0.0
    ) -> None:
        """Have something done for a place in the background, after so many seconds.

        It is waited for where the rule that applies says so, which is found out in the background
        too: deciding takes longer than many programs run.
        """
        place.placed(self.journal).state = "compiling"
        me = weakref.ref(self)  # a program that has ended need not be compiled any more

        def action() -> None:
            artifact = me()
            if artifact is None:
                return
            try:
                what(artifact, place)
            except BaseException as error:
                if is_ctrl_c(error):
                    raise
                artifact._broke(place, error)

        place.job = Job(action, delay)
        if self._may_wait:
            self._awaited[place.key] = place
        submit(place.job)

    def _broke(self, place: Site, error: BaseException) -> None:
        """Note what went wrong outside the backends."""
        placement, what = place.placed(self.journal), f"it could not be done: {described(error)}"
        placement.state, placement.decision = "given up", what
        if self._is_strict:
            self._refuse(CompilationError(f"pc {place.pc}: {described(error)}"))
        else:
            self._compilers.say_once(f"pc {place.pc}: what is hot there cannot be compiled: {what}")

    def _compile(self, place: Site) -> None:
        """Ask the backends of the rule in their order, and install what the first one makes."""
        placement, region, rule = place.placed(self.journal), place.region, place.rule
        assert region is not None
        assert rule is not None
        assert place.job is not None
        if rule.backends[0].options.background and not self._forcing:
            place.job.let_go()
        for choice in rule.backends:
            if choice.backend in place.lost:
                continue
            wanted = choice.options.threshold
            if wanted is not None and place.threshold < wanted and not self._forcing:
                self._compilers.skip(place, choice, f"its threshold is {wanted}")
                self._count_on(place, wanted - place.threshold, "counting")
                return
            attempt = self._compilers.attempt(place, choice)
            self.compiled += attempt.seconds  # one thread compiles
            if attempt.code is not None:
                place.choice = choice
                placement.state = "installed"
                self.inner.install(place.pc, attempt.code.address, place.counting)
                self.journal.tell(Event.INSTALLED, placement, attempt.code)
                self._hasten_head(place, region)
                return
            if attempt.outcome is Outcome.TOO_LARGE:
                if choice.options.required:
                    self._compilers.say_once(
                        f"backend {choice.backend!r}: region {region.name}: {attempt.reason}"
                    )
                rest = place.regions[place.regions.index(region) + 1 :] if place.regions else ()
                if choice is rule.backends[-1] and rest:
                    place.regions = rest  # smaller ones
                    self._decide(place)
                    return
                continue
            assert attempt.error is not None
            is_failure = isinstance(attempt.error, CompilationError)
            if choice.options.required or (self._must_succeed and is_failure):
                self._refuse(attempt.error)
                break
        placement.state = state = "given up"
        retry = min(choice.options.retry_after for choice in rule.backends)
        if retry:
            self._count_on(place, retry, state)

    def _hasten_head(self, place: Site, region: Region) -> None:
        """Have a loop that was compiled from a loop inside it compiled from its own head, too, when
        it is begun again: code that begins in the middle is slower, since its loops are not nested
        for a compiler."""
        if region.loop is None:
            return
        head = self._places.get((region.loop.head, place.counting))
        if head is None or head is place or head.job is not None:
            return
        head.cause = f"begun again after it was compiled from inside, at pc {place.pc}"
        self.inner.count(head.pc, 1, head.counting)

    def _count_on(self, place: Site, times: int, state: str) -> None:
        """Look at a place again after so many times more."""
        place.threshold += times
        place.has_watched = False
        place.placed(self.journal).state = state
        self.inner.count(place.pc, times, place.counting)
