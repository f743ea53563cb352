# SPDX-License-Identifier: Apache-2.0
"""The plan of a campaign: all that its workers need, as one line of JSON."""

from __future__ import annotations

import dataclasses
import json
import shlex

from ferryvm.backend import Forcing
from ferryvm.machine.memory import Limits
from ferryvm.testing.generate import (
    KERNEL_LIMITS,
    LIMITS,
    MUTATED,
    OBJECT_LIMITS,
    ProgramKind,
)
from ferryvm.testing.schedule import Schedule

GRACE = 3.0
"""Seconds that a worker's trial may still take when the campaign has ended."""

_KERNEL_PATIENCE = 6
"""Times the patience of other programs: a compiler takes 4 to 24 s of processor time for a
kernel."""

MIX = (*(ProgramKind.BYTECODE,) * 9, ProgramKind.SKIFF)
"""The default kinds: a program in Skiff costs as much as ten in bytecode, nearly all of it in the
compiler."""


@dataclasses.dataclass(frozen=True)
class CampaignPlan:
    """One campaign. Trial `n` is the n-th program of the seed, in any worker and at any time."""

    seed: int
    backends: tuple[str, ...]
    """The backends under test."""
    against: str = "reference"
    """The baseline."""
    kinds: tuple[ProgramKind, ...] = MIX
    """The kinds of programs, used in rotation."""
    schedules: tuple[Schedule, ...] = (Schedule.NONE,)
    weights: str | None = None
    """Path of a file of weights; None for the standard ones."""
    save: str | None = None
    """Folder for findings."""
    policy: str | None = None
    """Path of the policy that the backend `mixed` runs under; None where there is no such one."""
    forcing: frozenset[Forcing] = frozenset()
    """The behaviour that the backends under test are forced to."""
    thorough_every: int = 1
    """One trial in so many is thorough; in the others compilers generate machine code quickly, and
    only one form of the code is tried, the counting one or the other."""
    hosts: tuple[str, ...] = ()
    """Host functions that the programs call, as `--hosts` names them."""
    patience: float = 10.0
    """Seconds of processor time that a backend may take for a program before it is stopped; six
    times as many for a kernel."""
    object_limit: int | None = None
    """Bytes of object memory of each program; None for OBJECT_LIMITS, or KERNEL_LIMITS, in turn. A
    mutated file comes from a state under LIMITS, which it keeps."""
    memory: int = 1 << 30
    """Bytes of memory after which a worker is replaced: compilers leak with every region, LLVM's
    optimiser 0.1 MB."""

    @property
    def longest(self) -> float:
        """Seconds without progress after which a worker is ended: its backend cannot be stopped, or
        a program takes too long in all modes together."""
        return 6 * max(map(self.patience_of, range(len(self.kinds))))

    def patience_of(self, number: int) -> float:
        """Seconds of processor time that a backend may take for a trial's program."""
        is_kernel = self.kind(number) is ProgramKind.KERNEL
        return _KERNEL_PATIENCE * self.patience if is_kernel else self.patience

    def kind(self, number: int) -> ProgramKind:
        """The kind of a trial's program."""
        return self.kinds[number % len(self.kinds)]

    def is_thorough(self, number: int) -> bool:
        """True if a trial tries all forms of code, at the levels that users have."""
        return number % self.thorough_every == 0

    def limits(self, number: int) -> Limits:
        """The limits of a trial's program."""
        limit = self.object_limit
        if limit is None:
            kind, turn = self.kind(number), number // len(self.kinds)
            limits = KERNEL_LIMITS if kind is ProgramKind.KERNEL else OBJECT_LIMITS
            limit = LIMITS.objects if kind in MUTATED else limits[turn % len(limits)]
        return dataclasses.replace(LIMITS, objects=limit)

    def to_json(self) -> str:
        """Everything, in one line."""
        fields = dataclasses.asdict(self)
        fields["kinds"] = [kind.value for kind in self.kinds]
        fields["schedules"] = [schedule.value for schedule in self.schedules]
        fields["forcing"] = sorted(kind.value for kind in self.forcing)
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> CampaignPlan:
        """The plan in the result of `to_json`."""
        fields = json.loads(text)
        fields["backends"] = tuple(fields["backends"])
        fields["kinds"] = tuple(ProgramKind(value) for value in fields["kinds"])
        fields["schedules"] = tuple(Schedule(value) for value in fields["schedules"])
        fields["hosts"] = tuple(fields["hosts"])
        fields["forcing"] = frozenset(Forcing(value) for value in fields["forcing"])
        return cls(**fields)

    def command(self, number: int) -> str:
        """The line that repeats one trial."""
        words = ["ferry", "fuzz", "--seed", str(self.seed), "--first", str(number)]
        words += ["--programs", "1", "--kind", self.kind(number).value]
        words += ["--backends", ",".join(self.backends), "--against", self.against]
        for schedule in self.schedules:
            if schedule is not Schedule.NONE:
                words += ["--schedule", schedule.value]
        words += [f"--force-{kind.value}" for kind in Forcing if kind in self.forcing]
        if self.policy is not None:
            words += ["--policy", self.policy]
        if self.weights is not None:
            words += ["--weights", self.weights]
        for text in self.hosts:
            words += ["--hosts", text]
        if self.thorough_every != 1:
            words += ["--thorough-every", str(self.thorough_every)]
        if self.object_limit is not None or self.kind(number) not in MUTATED:
            words += ["--object-limit", str(self.limits(number).objects)]
        if self.patience != CampaignPlan.patience:
            words += ["--patience", f"{self.patience:g}"]
        return shlex.join(words)
