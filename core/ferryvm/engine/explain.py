# SPDX-License-Identifier: Apache-2.0
"""A report of mixed execution and its reasons, as data for people and for JSON.

Times of compiled code are measured by the code itself; the interpreter's time is that of its
entries, less these. The rest of a run is the engine's. Instructions are known if they were counted.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator

from ferryvm.backend import Activity, ArrayActivity
from ferryvm.engine.execution import Execution
from ferryvm.engine.installed_launch import LaunchActivity
from ferryvm.engine.journal import Attempt, Considered, Placement
from ferryvm.engine.mixed import Mixed
from ferryvm.engine.observer import Observer
from ferryvm.engine.result import Seconds
from ferryvm.engine.transition import SiteEvent, SiteState
from ferryvm.failure import described, kind_of
from ferryvm.isa.type import format_value
from ferryvm.region.fact import LaunchProfile
from ferryvm.region.known_word import KnownWord
from ferryvm.region.launch import CALL_DISTANCE
from ferryvm.region.region import candidates
from ferryvm.verify import Verified

REST = "the rest"
"""The step of a compilation that its backend does not time: mostly loading of libraries."""

_TOTAL = "total"
"""The name that backends give to the total of all steps."""


@dataclasses.dataclass(frozen=True)
class Tried:
    """One attempt of a backend to compile one region, and the activity of its code."""

    backend: str
    region: str
    outcome: str
    reason: str
    """The reason that there is no code; empty if there is code."""
    seconds: float
    """Time of the attempt, compilation included."""
    steps: dict[str, float]
    """Seconds of the steps of the compilation, by name, and of `REST`, so that they add up to
    `seconds`; empty if the backend reports no step."""
    guards: int
    """Paths that were left out."""
    is_quick: bool
    """True for quick code, which is replaced if it runs long."""
    entries: int
    """Transfers into the code."""
    code_seconds: float
    instructions: int | None
    guard_failures: dict[int, int]
    """By the pc of the branch; only guards that failed."""
    nests: tuple[str, ...]
    """Loop nests whose general version ran at least once, and why."""
    to_device: int
    """Bytes copied to a device's memory for it."""
    to_host: int
    """Bytes copied back."""
    transfer_seconds: float
    """Time of copying, not part of `code_seconds`."""
    arrays: tuple[ArrayActivity, ...]
    """The part of each array in that."""
    crowded: str
    """The reason for which entries were left at once, and their number; empty if there were
    none."""
    unfinished: int
    """Groups that it left in the middle, which an interpreter ends."""
    fault: str
    """The fault of the backend's metrics; empty if there is none."""


@dataclasses.dataclass(frozen=True)
class Explained:
    """A site that got hot, and its history."""

    pc: int
    position: str | None
    region: str
    kind: str
    why: str
    state: str
    considered: tuple[Considered, ...]
    remark: str
    """The reason that no rule decided, or the failure outside the backends; empty if neither."""
    tried: tuple[Tried, ...]
    recompilations: int
    guesses: tuple[str, ...]
    """Paths that its code left out, each with what became of that."""
    replacements: tuple[str, ...]
    """Steps of quick code that ran long, with the times since the program was prepared."""
    compared: int
    """Runs of its code that a shadow repeated."""
    differences: tuple[str, ...]
    """Differences that the shadow found."""
    profile: LaunchProfile | None
    """The items of a launch, as the policy saw them; None for other regions."""
    launches: tuple[LaunchActivity, ...]
    """Items of a launch that ran out of order: their place, expected and found times; one for each
    code of it."""


@dataclasses.dataclass(frozen=True)
class NotHot:
    """A site that was counted and did not get hot."""

    pc: int
    position: str | None
    region: str
    reached: int
    threshold: int


@dataclasses.dataclass(frozen=True)
class Share:
    """The share of one backend in a run."""

    backend: str
    entries: int
    seconds: float
    share_of_time: float
    """0 to 1."""
    instructions: int | None
    share_of_instructions: float | None
    """0 to 1."""


@dataclasses.dataclass(frozen=True)
class Explanation:
    """A run, region by region, and its totals."""

    backend: str
    status: str
    """`halt`, `fuel`, `trap`, `interrupted` or, where the engine or a host failed, `failed`."""
    counts: str
    """The reason that nothing was counted; empty if something was."""
    seconds: Seconds
    instructions: int | None
    compile_seconds: float
    """Time of all attempts; concurrent with the program if it was in the background."""
    regions: tuple[Explained, ...]
    not_hot: tuple[NotHot, ...]
    shares: tuple[Share, ...]
    """The compilers, then the interpreter, then the shadow if there is one."""
    other_seconds: float
    """The rest of the run: host calls, and work on hot sites."""
    other_share_of_time: float


def explain(execution: Execution, observer: Observer, status: str) -> Explanation:
    """The explanation of a run that has ended, which `observer` recorded from its start."""
    verified = execution.machine.verified
    counted = execution.statistics.instructions
    regions = tuple(_explained(one, verified, counted is not None) for one in observer.placements)
    total = execution.statistics.seconds.run
    other = max(total - observer.entry_seconds, 0.0)
    return Explanation(
        backend=execution.engine.backend.name,
        status=status,
        counts=_why_nothing_is_counted(execution),
        seconds=execution.statistics.seconds,
        instructions=counted,
        compile_seconds=sum(tried.seconds for one in regions for tried in one.tried),
        regions=regions,
        not_hot=tuple(
            NotHot(
                cold.pc,
                _position(verified, cold.pc),
                _name(verified, cold.pc),
                cold.reached,
                cold.threshold,
            )
            for cold in observer.cold()
        ),
        shares=_shares(execution, observer, regions),
        other_seconds=other,
        other_share_of_time=_part(other, total),
    )


def regions(execution: Execution) -> tuple[Explained, ...]:
    """The hot sites of a started program so far; none if no policy runs it. Entries and times of
    code are known if an observer watches its engine."""
    verified = execution.machine.verified
    return tuple(
        _explained(placement, verified, is_counted=False) for placement in execution.placements
    )


def _why_nothing_is_counted(execution: Execution) -> str:
    backend = execution.engine.backend
    if not isinstance(backend, Mixed):
        return f"backend {backend.name!r} runs alone"
    return "" if backend.policy.profile.enabled else "the policy's profile is off"


def _explained(placement: Placement, verified: Verified, is_counted: bool) -> Explained:
    return Explained(
        placement.pc,
        _position(verified, placement.pc),
        placement.region,
        placement.kind,
        placement.why,
        placement.state.value,
        tuple(placement.considered),
        _remark(placement),
        tuple(_tried(attempt, verified, is_counted) for attempt in placement.attempts),
        placement.recompilations,
        tuple(_guesses(placement, verified)),
        tuple(_replacements(placement)),
        placement.compared,
        tuple(placement.differences),
        placement.profile,
        tuple(dataclasses.replace(one) for one in placement.launches),
    )


def _guesses(placement: Placement, verified: Verified) -> Iterator[str]:
    """A line for each path that a site's code left out."""
    for guess in placement.guesses:
        yield f"{_subject(guess.subject, placement.pc, verified)}: {guess.outcome or 'kept'}"


def _subject(subject: tuple[int, int] | KnownWord, launch: int, verified: Verified) -> str:
    """The text of a guess; `launch`: pc of the launch whose argument it may be about."""
    if not isinstance(subject, KnownWord):
        branch, target = subject
        position = _position(verified, branch)
        at = f"{branch} ({position})" if position else str(branch)
        return f"the branch at pc {at} never goes to pc {target}"
    program, number = verified.program, subject.number
    if subject.is_static:
        t, name = program.statics[number].type, program.statics[number].name
        what = f"static {name or number}"
    else:
        item = program.code.immediates[launch + CALL_DISTANCE]
        names, t = (
            program.functions[item].parameters,
            program.signature(item).parameters[number + 1],
        )
        what = f"argument {(names[number + 1] if names else '') or number + 1} of the items"
    return f"{what} is {format_value(t, subject.bits)}"


def _replacements(placement: Placement) -> Iterator[str]:
    """A line for each step of a site's quick code that ran long."""
    is_quick = False
    for step in placement.history:
        is_quick |= step.event is SiteEvent.LONG
        if not is_quick:
            continue
        if step.event is SiteEvent.LONG:
            yield f"quick code is made again after {step.at:.3f} s: {step.reason}"
        elif step.before is SiteState.RECOMPILING:
            is_new = step.event is SiteEvent.COMPILED
            ended = (
                "replaced" if is_new else "kept" if step.after is SiteState.INSTALLED else "left"
            )
            yield f"quick code is {ended} after {step.at:.3f} s: {step.reason}"


def _remark(placement: Placement) -> str:
    """The state of a site, if its rules do not explain it."""
    decisions = [each.decision for each in placement.considered]
    if placement.decision and placement.decision not in decisions:
        return placement.decision
    if not decisions and placement.state in (SiteState.QUEUED, SiteState.DECIDING):
        return "not asked yet: the program ended before"
    return ""


def _slow_nests(activity: Activity, verified: Verified) -> Iterator[str]:
    """A line for each nest that has no fast version, or whose general version ran."""
    for nest in sorted(activity.nests, key=lambda nest: nest.pc):
        if nest.has_versions and not nest.slow:
            continue
        places = dict.fromkeys(_position(verified, pc) or f"pc {pc}" for pc in nest.pcs)
        where = f" ({', '.join(places)})" if places else ""
        at = _position(verified, nest.pc) or f"pc {nest.pc}"
        if nest.has_versions:
            times = f"{nest.slow} of {nest.slow + nest.fast} times"
            yield f"loop at {at}: slow copy {times}: {nest.reason}{where}"
        else:
            yield f"loop at {at}: no fast copy: {nest.reason}{where}"


def _tried(attempt: Attempt, verified: Verified, is_counted: bool) -> Tried:
    activity, wrong = _activity(attempt)
    steps, also_wrong = _steps(attempt)
    what = " and ".join(filter(None, (wrong, also_wrong)))
    fault = f"backend {attempt.backend!r} gives no metrics: {what}" if what else ""
    return Tried(
        backend=attempt.backend,
        region=attempt.region,
        outcome=attempt.outcome.value,
        reason=attempt.reason,
        seconds=attempt.seconds,
        steps=steps,
        guards=attempt.guards,
        is_quick=attempt.is_quick,
        entries=activity.entries,
        code_seconds=activity.seconds,
        instructions=activity.instructions if is_counted else None,
        guard_failures={pc: times for pc, times in activity.failures.items() if times},
        nests=tuple(_slow_nests(activity, verified)),
        to_device=activity.to_device,
        to_host=activity.to_host,
        transfer_seconds=activity.transfer_seconds,
        arrays=activity.arrays,
        crowded=_crowded(activity),
        unfinished=activity.unfinished,
        fault=fault,
    )


def _crowded(activity: Activity) -> str:
    """The reason for which code was left at its entry; empty if it was not."""
    if not activity.crowded:
        return ""
    return (
        f"{activity.crowded} entries left at once: the thread's stack has no room "
        f"for its {activity.stack} bytes"
    )


def _activity(attempt: Attempt) -> tuple[Activity, str]:
    """The metrics of an attempt's code, and their fault."""
    if attempt.code is None:
        return Activity(), ""
    try:
        given: object = attempt.code.activity()
    except Exception as error:  # noqa: BLE001 - third-party code
        what = f"its activity raised {described(error)}"
    else:
        if isinstance(given, Activity):
            return given, ""
        what = f"its activity returned {kind_of(given)}, not an Activity"
    return Activity(), what


def _steps(attempt: Attempt) -> tuple[dict[str, float], str]:
    """The steps of an attempt, with the rest, and the fault of the metrics."""
    if attempt.code is None:
        return {}, ""
    steps: dict[str, float] = {}
    for name, seconds in attempt.code.notes.items():  # as a plugin gave them
        is_number = isinstance(seconds, int | float) and 0 <= seconds < math.inf
        if not isinstance(name, str) or not is_number:
            return {}, f"its notes say {name!r}: {seconds!r}, not seconds by name"
        if name != _TOTAL:
            steps[name] = seconds
    rest = attempt.seconds - sum(steps.values())
    return ({**steps, REST: rest} if steps and rest > 0 else steps), ""


def _shares(
    execution: Execution, observer: Observer, regions: tuple[Explained, ...]
) -> tuple[Share, ...]:
    """The share of each backend; the rest is the interpreter's."""
    total, counted = execution.statistics.seconds.run, execution.statistics.instructions
    entries, instructions = collections.Counter[str](), collections.Counter[str]()
    seconds = collections.defaultdict[str, float](float)
    for tried in (tried for one in regions for tried in one.tried):
        if tried.entries:
            entries[tried.backend] += tried.entries
            seconds[tried.backend] += tried.code_seconds + tried.transfer_seconds
            instructions[tried.backend] += tried.instructions or 0
    for one in regions:
        made = [tried.backend for tried in one.tried if tried.entries]
        for launch in one.launches:
            if launch.places:  # the code of a device has measured its own time
                seconds[one.tried[0].backend] += launch.places[0].seconds
            else:
                seconds[made[-1] if made else one.tried[-1].backend] += launch.seconds
    backend = execution.engine.backend
    interpreter = backend.policy.interpreter if isinstance(backend, Mixed) else backend.name
    entries[interpreter] = len(observer.entries) + observer.dropped[interpreter]
    shadow = _shadow_shares(execution, observer)
    beside = sum(share.seconds for share in shadow)
    seconds[interpreter] = max(observer.entry_seconds - beside - sum(seconds.values()), 0.0)
    instructions[interpreter] = (counted or 0) - instructions.total()
    shares = tuple(
        Share(
            name,
            entries[name],
            spent,
            _part(spent, total),
            None if counted is None else instructions[name],
            instructions[name] / counted if counted else None,
        )
        for name, spent in seconds.items()
    )
    return shares + shadow


def _shadow_shares(execution: Execution, observer: Observer) -> tuple[Share, ...]:
    """Time of the shadow, including copies and comparisons; its instructions are not counted as the
    program's."""
    backend = execution.engine.backend
    if not isinstance(backend, Mixed) or backend.policy.shadow is None:
        return ()
    seconds = sum(placement.compare_seconds for placement in observer.placements)
    part = _part(seconds, execution.statistics.seconds.run)
    compared = sum(placement.compared for placement in observer.placements)
    name = f"{backend.policy.shadow.against} (shadow)"
    return (Share(name, compared, seconds, part, None, None),)


def _part(seconds: float, total: float) -> float:
    return seconds / total if total else 0.0


def _name(verified: Verified, pc: int) -> str:
    """The smallest region that starts at a pc."""
    found = candidates(verified, pc)
    return found[-1].name if found else ""


def _position(verified: Verified, pc: int) -> str | None:
    position = verified.program.source_map.position(pc)
    return str(position) if position else None
