# SPDX-License-Identifier: Apache-2.0
"""The suite: every case as items, and what became of an item on a backend.

pytest and the command line are two ways of showing what is decided here.

    items() ──> Item ──run(backend)──> Outcome ──expect(table)──> Outcome
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from ferryvm.backend import Backend
from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.isa import INSTRUCTIONS
from ferryvm.registry import Registry
from ferryvm.testing.conformance.case import Case, cases
from ferryvm.testing.conformance.fault import Fault
from ferryvm.testing.conformance.instruction import scripts as instruction_scripts
from ferryvm.testing.conformance.perform import perform
from ferryvm.testing.conformance.script import Script

ORACLE = "reference"
"""The backend whose states are expected."""


class Verdict(enum.Enum):
    """What became of an item."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """The backend declares that it cannot do this."""
    REFUSED = "refused"
    """The backend does not accept the program: unsupported, which is never agreement."""
    XFAILED = "xfailed"
    """It failed, as the author's table says."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A verdict and its grounds."""

    verdict: Verdict
    reason: str = ""
    """Why it is skipped or refused, or why the author expects it to fail."""
    fault: Fault | None = None
    script: Script | None = None
    """The script that it comes from."""

    @property
    def message(self) -> str:
        """The grounds, in a few lines."""
        if self.fault is None or self.script is None:
            return self.reason
        return "\n".join(
            (
                f"{self.script.about}, step {self.fault.step}:",
                f"  {self.fault.field}",
                f"    expected: {self.fault.expected}",
                f"    found:    {self.fault.found}",
            )
        )


@dataclasses.dataclass(frozen=True)
class Item:
    """One case in one manner."""

    group: str
    name: str
    manner: str
    about: str
    case: Case | None = None
    """None for the golden cases of an instruction."""

    @property
    def label(self) -> str:
        """What users call it by: `group/name/manner`."""
        return f"{self.group}/{self.name}/{self.manner}"

    def scripts(self, reference: Backend) -> Iterator[Script]:
        """What is to be done with a backend."""
        if self.case is not None:
            return self.case.scripts(self.manner, reference)
        return instruction_scripts(self.name, self.manner == "counting", reference)

    def run(self, backend: Backend) -> Outcome:
        """What becomes of it on a backend."""
        outcome = Outcome(Verdict.FAILED, f"{self.label}: there is nothing to do: no script")
        for script in self.scripts(_reference()):
            outcome = _follow(script, backend)
            if outcome.verdict is not Verdict.PASSED:
                return outcome
        return outcome


@functools.cache
def _reference() -> Backend:
    return Registry().get(ORACLE)


def _follow(script: Script, backend: Backend) -> Outcome:
    if script.complaint is not None:
        reason = f"{script.about}: {script.complaint}, by the {ORACLE} backend itself"
        return Outcome(Verdict.FAILED, reason)
    obstacle = script.obstacle(backend.capabilities)
    if obstacle is not None:
        return Outcome(Verdict.SKIPPED, obstacle)
    try:
        refusal = backend.accepts(script.program)
        if refusal is not None:
            return Outcome(Verdict.REFUSED, refusal)
        artifact = backend.prepare(script.program)
    except Exception as error:  # noqa: BLE001 - whatever a backend raises, it has failed
        fault = Fault("prepare", "an artifact", f"raises {type(error).__name__}: {error}")
    else:
        found = perform(script, artifact)
        if found is None:
            return Outcome(Verdict.PASSED)
        fault = found
    return Outcome(Verdict.FAILED, fault=fault, script=script)


@functools.cache
def items() -> tuple[Item, ...]:
    """Every item, instructions first. Raises CaseError."""
    found = [
        Item("instruction", row.mnemonic, manner, row.summary.splitlines()[0])
        for row in INSTRUCTIONS
        for manner in ("plain", "counting")
    ]
    found += [
        Item(case.group, case.name, manner, case.about, case)
        for case in cases()
        for manner in case.manners
    ]
    return tuple(found)


# --- failures that the author expects -------------------------------------------------------


def check_expected(table: Mapping[str, str], where: str) -> dict[str, str]:
    """A table of expected failures, from labels to reasons.

    Raises UnknownNameError for a label that no item has, FerryError for a reason that is none.
    """
    known = [item.label for item in items()]
    for label, reason in table.items():
        if label not in known:
            raise UnknownNameError(f"case in {where}", str(label), known)
        if not isinstance(reason, str) or not reason.strip():
            raise FerryError(f"{where}: {label}: a reason is needed, in words")
    return dict(table)


def read_expected(path: Path) -> dict[str, str]:
    """The table `[xfail]` of a TOML file. Raises FerryError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FerryError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FerryError(f"{path}: {error}") from None
    if set(content) != {"xfail"} or not isinstance(content["xfail"], dict):
        raise FerryError(f"{path}: exactly one table, [xfail], is expected")
    return check_expected(content["xfail"], str(path))


def expect(outcome: Outcome, reason: str | None) -> Outcome:
    """The outcome, where the author expects a failure for that reason (None: does not)."""
    if reason is None:
        return outcome
    if outcome.verdict is Verdict.FAILED:
        return dataclasses.replace(outcome, verdict=Verdict.XFAILED, reason=reason)
    if outcome.verdict is Verdict.PASSED:
        told = f"passes, but is expected to fail ({reason}): take it out of the table"
        return Outcome(Verdict.FAILED, told)
    return outcome
