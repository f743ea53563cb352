# SPDX-License-Identifier: Apache-2.0
"""Outcomes of trials, and findings, which a campaign looks for."""

from __future__ import annotations

import dataclasses
import enum
import json
import re

from ferryvm.machine.control import Status
from ferryvm.machine.difference import Difference
from ferryvm.testing.generate import ProgramKind
from ferryvm.testing.trial import IN_COMPILER, MALFORMED, failing


class TrialOutcome(enum.Enum):
    """The outcome of a trial; its value heads a column of the table."""

    HALTED = "halted"
    """All agree, the program reached its `halt`."""
    TRAPPED = "trapped"
    """All agree, it trapped."""
    STOPPED = "stopped"
    """All agree, it was still running at the limit of instructions."""
    DIVERGED = "diverged"
    """A backend ended elsewhere in a way that is listed as legal; the others agree."""
    UNSUPPORTED = "unsupported"
    """A backend could not run it; nothing is said of agreement."""
    REFUSED = "refused"
    """A mutated image that is no program, or a Python function that cannot be compiled, in one
    clear line."""
    DISAGREE = "disagree"
    MALFORMED = "malformed"
    """A pass of a compiler left IR that breaks a rule."""
    ERROR = "error"
    """Something raised an exception."""
    CRASH = "crash"
    """The process ended."""
    HANG = "hang"
    """The process got no further."""


FINDINGS = (
    TrialOutcome.DISAGREE,
    TrialOutcome.MALFORMED,
    TrialOutcome.ERROR,
    TrialOutcome.CRASH,
    TrialOutcome.HANG,
)
"""Outcomes that a campaign looks for."""

ENDS = {
    Status.HALT: TrialOutcome.HALTED,
    Status.TRAP: TrialOutcome.TRAPPED,
    Status.HOST: TrialOutcome.TRAPPED,  # a host function raised
    Status.FUEL: TrialOutcome.STOPPED,
}
"""Outcomes of trials in which all agree, by the status in which the program was left."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """A trial that ended as none should."""

    number: int
    kind: ProgramKind
    outcome: TrialOutcome
    """One of FINDINGS."""
    backends: str
    """The suspected backends: one, those between which the program moved, or none known."""
    what: str
    """The field that differs, the signal, the exception."""
    text: str
    """Description in one line."""
    detail: str = dataclasses.field(default="", repr=False)
    """More about it, in many lines: a traceback."""
    mnemonic: str = ""
    """The instruction at which backends diverge, if known."""
    path: str | None = None
    """The file that shows it."""

    @property
    def signature(self) -> tuple[str, ...]:
        """Key that findings with one cause probably share."""
        return self.outcome.value, self.backends, self.what, self.mnemonic

    def to_json(self) -> str:
        """Everything, in one line."""
        fields = dataclasses.asdict(self)
        return json.dumps({**fields, "kind": self.kind.value, "outcome": self.outcome.value})

    @classmethod
    def from_json(cls, text: str) -> Finding:
        """The finding in the result of `to_json`."""
        fields = json.loads(text)
        fields["kind"], fields["outcome"] = (
            ProgramKind(fields["kind"]),
            TrialOutcome(fields["outcome"]),
        )
        return cls(**fields)


def what_differs(found: Difference) -> str:
    """The field of a difference as findings with one cause have it, or how a backend failed."""
    return how_it_failed(found) or without_place(found.field)


def how_it_failed(found: Difference) -> str | None:
    """The failure of a backend to compile a program; None for any other difference."""
    return failing(found.right) if found.field == "failure" else None


def outcome_of(found: Difference) -> TrialOutcome:
    """The outcome of a trial in which a comparison found this."""
    if found.field == "failure" and found.right.startswith(MALFORMED):
        return TrialOutcome.MALFORMED
    if found.field == "failure" and found.right.startswith(IN_COMPILER):
        return TrialOutcome.ERROR
    return TrialOutcome.DISAGREE


def without_place(field: str) -> str:
    """A field of a state without the numbers and names that only one program has.

    `local 2 of f3` is a `local`, `heap at byte 40` is the `heap`.
    """
    return re.split(r" (?:of|at|\d)", field, maxsplit=1)[0]
