# SPDX-License-Identifier: Apache-2.0
"""Disagreements as data, and their construction from a comparison."""

from __future__ import annotations

import dataclasses
import platform
from collections.abc import Callable, Mapping
from importlib import metadata

import ferryvm
from ferryvm.backend import Forcing
from ferryvm.deadline import Deadline
from ferryvm.engine.host_log import HostLog
from ferryvm.engine.runnable import MIXED
from ferryvm.errors import FerryError
from ferryvm.failure import described
from ferryvm.machine.difference import Difference
from ferryvm.machine.memory import Limits
from ferryvm.policy import Policy
from ferryvm.program import Program
from ferryvm.registry import Registry
from ferryvm.testing.bisect import Bisector, LateError, Parting
from ferryvm.testing.differential import Comparison, Differ
from ferryvm.testing.mixed import MixedRegistry, named, policy_of
from ferryvm.testing.schedule import Schedule
from ferryvm.testing.trace import TraceLine
from ferryvm.testing.watchdog import PATIENCE
from ferryvm.verify import Verified

BACKEND = "backend "
"""Prefix of a backend's name among versions."""

_SEEDS = 32
"""Random schedules that are tried to show a disagreement."""


@dataclasses.dataclass(frozen=True)
class Disagreement:
    """A disagreement of backends, with everything that is needed to repeat it."""

    program: Program
    limits: Limits
    good: str
    """The baseline."""
    bad: str
    """The backend that diverges from it."""
    backends: tuple[str, ...]
    """The backends between which the program moves, without `good`; only `bad` if it did not
    move."""
    schedule: Schedule
    seed: int
    versions: Mapping[str, str]
    """Versions of the backends, of ferryvm and its libraries; and the machine."""
    most: int
    """Instructions after which the program was stopped."""
    forcing: frozenset[Forcing]
    """The behaviour that the backends were forced to."""
    difference: Difference
    """The first field in which the ends differ."""
    parting: Parting | None
    """The point of divergence; None if no search found it."""
    origin: str | None = None
    """The origin of the program."""
    patience: float = PATIENCE
    """Seconds within which a backend had to return."""
    unbisected: str | None = None
    """The reason that there is no parting; None if there is one."""
    policy: Policy | None = None
    """The policy of the backend `mixed`; None if it is not among the backends."""
    arguments: tuple[str, ...] = ()
    """The arguments of the program."""
    log: HostLog | None = None
    """The host calls of the program on the good backend; None if it only writes."""

    @property
    def good_trace(self) -> tuple[TraceLine, ...]:
        """The last instructions on the good side."""
        return self.parting.good_trace if self.parting else ()

    @property
    def bad_trace(self) -> tuple[TraceLine, ...]:
        """The last instructions on the bad side."""
        return self.parting.bad_trace if self.parting else ()

    def differ(self, registry: Registry | None = None) -> Differ:
        """A `Differ` that compares the same backends in the same way. Raises as `Differ`."""
        names = self.backends, self.good, registry or MixedRegistry(self.policy)
        return Differ(
            *names,
            self.limits,
            self.most,
            self.forcing,
            self.patience,
            log=self.log,
            arguments=self.arguments,
        )


def record(
    differ: Differ,
    program: Verified,
    comparison: Comparison,
    schedule: Schedule = Schedule.NONE,
    seed: int = 0,
    origin: str | None = None,
    progress: Callable[[], object] = lambda: None,
    seconds: float | None = None,
) -> Disagreement:
    """The disagreement that a comparison found, bisected if possible.

    `seconds`: time limit of bisection; 0: none. A disagreement that cannot be bisected has the
    reason for that.
    """
    assert comparison.difference is not None
    entered = tuple(name for name in comparison.backends if name != differ.against)
    # A schedule distributes its moves over all of them, whether or not each was reached.
    backends = entered if schedule is Schedule.NONE else differ.backends
    names = (differ.against, *backends)
    deadline = Deadline(seconds)
    parting, reason = None, "no search found where they part"
    for name in entered:
        if deadline.is_over:
            reason = "comparing took all the time" if seconds == 0 else _late(seconds)
            break
        try:
            bisector = Bisector(
                differ, name, program, progress, seconds=deadline.remaining, schedule=schedule
            )
            parting = bisector.find(seed=seed, names=names)
        except LateError:
            reason = _late(seconds)
        except FerryError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - a faulty backend may leave anything behind
            reason = described(error)
        if parting is not None:
            break
    return Disagreement(
        program.program,
        differ.limits or Limits(),
        differ.against,
        parting.bad if parting else (*entered, differ.against)[0],
        backends,
        schedule,
        seed,
        versions((differ.against, *backends), differ.registry),
        differ.most,
        differ.forcing,
        comparison.difference,
        parting,
        origin,
        differ.patience,
        None if parting else reason,
        policy_of(differ.registry) if MIXED in names else None,
        differ.arguments,
        differ.log_of(program),
    )


def _late(seconds: float | None) -> str:
    return f"it was not found within {seconds:g} s"


def showing(
    differ: Differ, program: Verified, seed: int = 0, varies_environment: bool = False
) -> tuple[Comparison, Schedule, int] | None:
    """A comparison that shows a disagreement, with its schedule and seed: without moves if
    possible, then with moves at every boundary, then at random ones. None if none of them shows it.

    `varies_environment`: it shows in other floating-point environments alone.
    """
    tries = [(Schedule.NONE, 0), (Schedule.EVERY_BOUNDARY, 0)]
    by_chance = Schedule.ENVIRONMENT if varies_environment else Schedule.RANDOM
    tries += [(by_chance, one) for one in dict.fromkeys((seed, *range(_SEEDS)))]
    for schedule, one in tries:
        for comparison in differ.compare(program, schedule, one):
            if comparison.difference is not None:
                return comparison, schedule, one
    return None


def versions(backends: tuple[str, ...], registry: Registry) -> dict[str, str]:
    """Versions of everything that a comparison depends on."""
    policy = policy_of(registry)
    if MIXED in backends and policy is not None:
        backends = tuple(name for name in (*backends, *named(policy)) if name != MIXED)
    found = {f"{BACKEND}{name}": registry.get(name).version for name in backends}
    found["ferryvm"] = ferryvm.__version__
    for library in ("llvmlite", "numpy"):
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            found[library] = "not installed"
    found["python"] = platform.python_version()
    found["machine"] = f"{platform.system()} {platform.machine()}"
    return found
