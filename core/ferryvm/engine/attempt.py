# SPDX-License-Identifier: Apache-2.0
"""Attempts of backends to compile a region. The journal records each of them, whatever its outcome,
and none of them stops the program by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ferryvm import record
from ferryvm.backend import (
    Backend,
    BackendError,
    Code,
    CompilationError,
    Compiler,
    Forcing,
    MalformedError,
    Options,
    RefusalError,
    Tiers,
    TooLargeError,
)
from ferryvm.engine.hook import checked_code, checked_reason
from ferryvm.engine.journal import Attempt, Event, Journal, Outcome
from ferryvm.engine.site import Site
from ferryvm.engine.transition import SiteEvent
from ferryvm.failure import described, is_ctrl_c, one_line
from ferryvm.notice import Log
from ferryvm.policy import Choice, LaunchPlacing
from ferryvm.policy.machine import cpus

if TYPE_CHECKING:
    from ferryvm.engine.launching import Launches
    from ferryvm.engine.shadow import Shadow
    from ferryvm.region.region import Region

_LOG = Log(__name__)

_NAMED = 5
"""The number of functions that a remark names."""

Find = Callable[[str], Backend]
"""The backend of a name, as `Registry.get`."""


class Compilers:
    """The backends that compile for one program."""

    def __init__(
        self,
        find: Find,
        journal: Journal,
        observe: bool,
        forcing: frozenset[Forcing],
        shadow: Shadow | None,
        launches: Launches | None,
        strict: bool = False,
    ) -> None:
        """`find`: the backend of a name; `observe`: make code record metrics of `Activity`;
        `strict`: verify the IR between passes, and read no code from the cache, because cached code
        was compiled without these checks."""
        self.find, self._journal, self._observe = find, journal, observe
        self._strict = strict
        self._forcing, self._shadow = forcing, shadow
        self._said: set[str] = set()
        self.natives: frozenset[int] = frozenset()
        """The host imports that are native functions."""
        self.seconds = 0.0
        """Time of all attempts."""
        self.launches = launches

    def is_beside(self, site: Site) -> bool:
        """True if the program continues while the site's region is compiled."""
        assert site.rule is not None
        return site.rule.chain[0].options.background and not self._forcing

    def compile(self, site: Site) -> tuple[SiteEvent, str]:
        """Request code from the backends of a site's rule in order; the resulting event and its
        reason.

        `site.code` then has the code, or `site.more` the number of further entries to count.
        """
        rule, region = site.rule, site.region
        assert rule is not None
        assert region is not None
        reason = "each backend of the rule has lost its code for it"
        for choice in rule.chain:
            if choice.backend in site.lost:
                continue
            wanted = choice.options.threshold
            if wanted is not None and site.threshold < wanted and not self._forcing:
                reason = f"its threshold is {wanted}"
                self._skip(site, choice, reason)
                _count_on(site, wanted - site.threshold)
                return SiteEvent.EARLY, f"backend {choice.backend!r}: {reason}"
            attempt = self._attempt(site, choice, self._recompile_after(site, choice))
            self.seconds += attempt.seconds  # one thread compiles
            reason = f"backend {choice.backend!r}: {attempt.reason or attempt.outcome.value}"
            if attempt.code is not None:
                site.choice, site.code = choice, attempt.code
                return SiteEvent.COMPILED, reason
            if attempt.outcome is Outcome.TOO_LARGE:
                if choice.options.required:
                    self.say_once(
                        f"backend {choice.backend!r}: region {region.name}: {attempt.reason}"
                    )
                smaller = _smaller(site)
                if choice is rule.chain[-1] and smaller:
                    site.regions, site.rule = smaller, None
                    return SiteEvent.TOO_LARGE, reason
                continue
            is_failure = isinstance(attempt.error, CompilationError)
            is_required = choice.options.required and not site.is_launch_only
            if is_required or (self._strict and is_failure):
                site.error = attempt.error
                return SiteEvent.DENIED, reason
        _count_on(site, min(choice.options.retry_after for choice in rule.chain))
        return SiteEvent.REFUSED, reason

    def recompile(self, site: Site) -> tuple[SiteEvent, str, Code | None]:
        """Request good code from the backend of a site's quick code; the resulting event, its
        reason, and the code. The site does not change."""
        choice = site.choice
        assert choice is not None
        attempt = self._attempt(site, choice)
        self.seconds += attempt.seconds
        reason = f"backend {choice.backend!r}: {attempt.reason or attempt.outcome.value}"
        event = SiteEvent.REFUSED if attempt.code is None else SiteEvent.COMPILED
        if self._strict and isinstance(attempt.error, CompilationError):
            site.error, event = attempt.error, SiteEvent.DENIED
        return event, reason, attempt.code

    def _recompile_after(self, site: Site, choice: Choice) -> int:
        """The work after which a choice's quick code is replaced; 0: compile at the wanted level at
        once."""
        tiers = self._tiers(choice)
        if site.has_run_long or tiers is None or choice.options.optimize <= tiers.quick:
            return 0
        wanted = choice.options.recompile_after
        if wanted is None:
            is_beside = choice.options.background and not self._forcing
            return tiers.recompile_after if is_beside else 0
        return wanted

    def _tiers(self, choice: Choice) -> Tiers | None:
        try:
            return self.find(choice.backend).capabilities.tiers
        except BackendError:
            return None  # the attempt reports the fault

    def _attempt(self, site: Site, choice: Choice, recompile_after: int = 0) -> Attempt:
        """Make one backend compile the site's region; quickly if `recompile_after` is not 0."""
        began = self._journal.now()
        options = self._options(site, choice, recompile_after)
        code, outcome, reason, raised = None, Outcome.COMPILED, "", CompilationError
        try:
            code, reason = self._code(site, choice, options)
        except TooLargeError as error:
            outcome, reason = Outcome.TOO_LARGE, one_line(str(error))
        except RefusalError as error:
            outcome, reason = Outcome.REFUSED, one_line(str(error))
        except BackendError as error:
            outcome, reason = Outcome.FAILED, one_line(str(error))
        except BaseException as error:
            if is_ctrl_c(error):
                raise
            outcome, reason = Outcome.FAILED, f"it raised {described(error)}"
            if _is_of_ir(error):
                raised, reason = MalformedError, f"malformed IR: {one_line(str(error))}"
        else:
            if code.is_from_cache:
                outcome = Outcome.CACHED
        attempt = self._noted(site, choice, outcome, reason, began, code, options)
        if code is not None:
            return attempt
        text = f"backend {choice.backend!r}: region {attempt.region}: {reason}"
        is_refusal = outcome in (Outcome.REFUSED, Outcome.TOO_LARGE)
        failure = RefusalError(text) if is_refusal else raised(text)
        return record.replace(attempt, error=failure)

    def _skip(self, site: Site, choice: Choice, reason: str) -> None:
        """Record that no code was requested from a backend."""
        self._noted(site, choice, Outcome.SKIPPED, reason, self._journal.now())

    def lose(self, site: Site, reason: str) -> None:
        """Record that the code of a site cannot run any more."""
        assert site.choice is not None
        site.lost.add(site.choice.backend)
        self._noted(site, site.choice, Outcome.LOST, one_line(reason), self._journal.now())

    def say_once(self, failure: str) -> None:
        """Warn of a failure, at its first occurrence."""
        if failure not in self._said:
            self._said.add(failure)
            _LOG.warning("%s; the program goes on without it", failure)

    def _code(self, site: Site, choice: Choice, options: Options) -> tuple[Code, str]:
        """The code of the site's region, and a remark on the parts left out, or on a launch that
        is not run in lanes, if there are any."""
        region = site.region
        assert region is not None
        compiler = self.compiler(choice.backend)
        if options.device and not compiler.capabilities.devices:
            raise RefusalError(f"it has no devices, and so no {options.device!r}")
        region, remark = _within(region, compiler)
        reason = None
        if not compiler.capabilities.references:
            from ferryvm.region.reference import refused  # most runs compile nothing

            reason = refused(region, choice.backend)
        if reason is None:
            reason = compiler.accepts(region)
        if reason is not None:
            raise RefusalError(checked_reason(reason))
        code = checked_code(compiler.compile(region, options))
        scalar = f"not in lanes: {code.scalar}" if code.scalar else ""
        threads = choice.options.threads or cpus()
        if Forcing.PARALLEL in self._forcing:
            threads = max(threads, 2)
        is_shared = site.rule is not None and site.rule.place is not LaunchPlacing.FIRST
        can_share = compiler.capabilities.native and not options.counting
        if (threads > 1 or code.lanes or is_shared) and can_share:
            code, in_order = self._threaded(compiler, code, region, threads)
            scalar = in_order or scalar
        elif compiler.capabilities.ranges and not options.counting:
            self._finish_slots(code, region, threads)
        remark = "; ".join(filter(None, (remark, scalar, code.limited, *_of_groups(code, region))))
        if self._shadow is not None:
            code = self._shadow.checked(
                code, site.placed(self._journal), choice.backend, region.name
            )
        elif region.kind.value == "launch" and not options.counting:
            code = self._placed(code, site, choice)
        return code, remark

    def _options(self, site: Site, choice: Choice, recompile_after: int) -> Options:
        wanted, tiers = choice.options, self._tiers(choice) if recompile_after else None
        return Options(
            wanted.optimize if tiers is None else tiers.quick,
            site.counting,
            wanted.cache and not self._strict,
            site.unseen if wanted.speculate else frozenset(),
            wanted.guard_limit,
            self._observe,
            self._forcing,
            wanted.device,
            self._strict,
            natives=self.natives,
            launches=self.launches_of(site, choice),
            lanes=self._lanes(wanted.lanes),
            recompile_after=recompile_after,
            known=self._known(site, choice),
        )

    def _known(self, site: Site, choice: Choice) -> frozenset[tuple[bool, int, int]]:
        """The words that a site's code, of a launch's loop, may take for constant."""
        if self.launches is None or not self.launches.has(site.pc) or not choice.options.speculate:
            return frozenset()
        return site.known if self.find(choice.backend).capabilities.known else frozenset()

    def _lanes(self, wanted: int) -> int:
        """Lanes for the items of launches; as few as possible where they are forced, since what
        does not fill a vector is not run in lanes."""
        return wanted or (2 if Forcing.PARALLEL in self._forcing else 0)

    def launches_of(self, site: Site, choice: Choice) -> frozenset[tuple[int, int]]:
        """The launches in the region of a site that its code leaves for."""
        region = site.region
        if site.counting or region is None or self.launches is None:
            return frozenset()
        is_able = self.find(choice.backend).capabilities.launches
        return self.launches.within(region) if is_able else frozenset()

    def _threaded(
        self, compiler: Compiler, code: Code, region: Region, threads: int
    ) -> tuple[Code, str]:
        """The code, on several threads where the region is the loop of a launch; a remark if the
        items run in order all the same."""
        if region.kind.value != "launch":
            return code, ""
        from ferryvm.engine.parallel import ThreadedCode  # few programs have launches
        from ferryvm.region.launch import why_in_order

        if self.launches is None or not self.launches.has(region.entry):
            return code, why_in_order(region.verified, region.entry)
        loop = compiler.chunk_loop()
        if loop is None:
            return code, f"its items run in order: {compiler.name} has no functions for chunks"
        return ThreadedCode(code, region, threads, loop), ""

    def _finish_slots(self, code: Code, region: Region, threads: int) -> None:
        """Let threads run the rest of items that a device suspends."""
        launches, ranges = self.launches, code.ranges
        if ranges is None or launches is None or launches.bind_slots is None:
            return
        from ferryvm.engine.slot_run import LEAST, ThreadedSlots  # few programs have launches

        least = 1 if Forcing.PARALLEL in self._forcing else LEAST
        ranges.finish_slots = ThreadedSlots(region, threads, launches.bind_slots, least)

    def _placed(self, code: Code, site: Site, choice: Choice) -> Code:
        """The code of a launch, with the other backends of its rule as places of its items, where
        the rule says so."""
        rule = site.rule
        assert rule is not None
        if rule.place is LaunchPlacing.FIRST or choice is not rule.chain[0]:
            return code
        from ferryvm.engine.launch_place.maker import placed

        def ask(other: Choice) -> Attempt:
            attempt = self._attempt(site, other)
            self.seconds += attempt.seconds  # one thread compiles
            return attempt

        return placed(site, code, self.compiler, ask)

    def compiler(self, name: str) -> Compiler:
        """The compiler of a name. Raises BackendError if there is none that is usable."""
        found = self.find(name)
        if not isinstance(found, Compiler):
            raise BackendError(f"backend {name!r} compiles no regions")
        return found

    def _noted(
        self,
        site: Site,
        choice: Choice,
        outcome: Outcome,
        reason: str,
        began: float,
        code: Code | None = None,
        options: Options | None = None,
    ) -> Attempt:
        assert site.region is not None
        name, seconds = site.region.name, self._journal.now() - began
        guards = 0 if options is None else len(options.unseen)
        is_quick = options is not None and options.recompile_after > 0
        attempt = Attempt(
            choice.backend, name, outcome, reason, began, seconds, code, guards, is_quick
        )
        placement = site.placed(self._journal)
        placement.attempts.append(attempt)
        self._journal.notify(Event.ATTEMPT, placement, attempt)
        if outcome in (Outcome.FAILED, Outcome.LOST) and not choice.options.required:
            self.say_once(f"backend {choice.backend!r} failed on region {name}: {reason}")
        return attempt


def _count_on(site: Site, times: int) -> None:
    """Count a site's entries so many more times before the next attempt; never for 0."""
    site.threshold += times
    site.more, site.has_observed, site.unseen = times, False, frozenset()


def _smaller(site: Site) -> tuple[Region, ...]:
    """The regions that start at a site and are smaller than the last one attempted."""
    if not site.regions or site.region is None:
        return ()
    return site.regions[site.regions.index(site.region) + 1 :]


def _is_of_ir(error: BaseException) -> bool:
    """True if an error is the one that the IR verifier raises."""
    from ferryvm.ir.operation import IrError  # hardly any compilation fails

    return isinstance(error, IrError)


def _within(region: Region, compiler: Compiler) -> tuple[Region, str]:
    """The part of a region that fits a compiler's limits, and a remark on the rest, if there is
    any.

    Raises TooLargeError if the region is too large by itself.
    """
    from ferryvm.region.cost import too_costly, within

    limits = compiler.capabilities.limits
    reason = too_costly(region, limits)
    if reason is None or limits is None:
        return region, ""
    part = within(region, limits)
    if part is None:
        raise TooLargeError(reason)
    functions = region.verified.program.functions
    names = [functions[number].name for number in sorted(part.outside)]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return part, f"without {', '.join(names[:_NAMED])}{more}, which it leaves for: {reason}"


def _of_groups(code: Code, region: Region) -> Iterator[str]:
    """The reasons that items which wait leave compiled code at barriers, or run one by one between
    them."""
    position = region.verified.program.source_map.position
    for pc, reason in code.ungrouped.items():
        yield f"items of the launch at {position(pc) or f'pc {pc}'} leave it at barriers: {reason}"
    for pc, reason in code.one_by_one.items():
        yield f"items run one by one from {position(pc) or f'pc {pc}'}: {reason}"
