# SPDX-License-Identifier: Apache-2.0
"""The suite: every case as items, and the outcome of an item on a backend.

pytest and the command line both show the results of this module.

    checks() ──> Item ──run(backend)──> ItemOutcome ──expected.py──> ItemOutcome
"""

from __future__ import annotations

import dataclasses
import enum
import fnmatch
import functools
from collections import Counter
from collections.abc import Iterator

from ferryvm.backend import Artifact, Interpreter, RefusalError
from ferryvm.engine import runnable
from ferryvm.failure import one_line
from ferryvm.isa import INSTRUCTIONS
from ferryvm.registry import Registry
from ferryvm.testing.conformance.case import Case, cases
from ferryvm.testing.conformance.exception import describe, listening, raise_if_pressed
from ferryvm.testing.conformance.fault import Mismatch
from ferryvm.testing.conformance.golden import cases_of
from ferryvm.testing.conformance.instruction import scripts as instruction_scripts
from ferryvm.testing.conformance.perform import perform
from ferryvm.testing.conformance.prepared import Prepared
from ferryvm.testing.conformance.script import Script
from ferryvm.testing.conformance.together import batches
from ferryvm.testing.conformance.together import scripts as batch_scripts
from ferryvm.testing.watchdog import PATIENCE

ORACLE = "reference"
"""The backend whose states are expected."""


class ItemVerdict(enum.Enum):
    """The verdict on an item."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """The backend declares that it does not support this."""
    REFUSED = "refused"
    """The backend does not accept the program: unsupported, which is never agreement."""
    XFAILED = "xfailed"
    """It failed, as the author's table expects."""


class Golden(enum.Enum):
    """The ways to run golden cases of instructions."""

    EACH = "each"
    """Each in every dressing: dozens of programs for each instruction."""
    ROTATED = "rotated"
    """Each in one dressing: a third of that."""
    TOGETHER = "together"
    """Each in one dressing, in shared programs, for a backend with slow builds."""


_GOLDEN = "instruction"
"""The group of golden cases."""


@dataclasses.dataclass(frozen=True)
class ItemOutcome:
    """A verdict and its grounds."""

    verdict: ItemVerdict
    reason: str = ""
    """The reason that it is skipped or refused, or that the author expects it to fail."""
    fault: Mismatch | None = None
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
                f"    found:    {self.fault.found}".replace("\n", "\n" + 14 * " "),
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
        """Its name for users: `group/name/manner`."""
        return f"{self.group}/{self.name}/{self.manner}"

    def scripts(self, reference: Interpreter) -> Iterator[Script]:
        """The scripts to perform on a backend."""
        if self.case is not None:
            return self.case.scripts(self.manner, reference)
        return instruction_scripts(self.name, self.manner == "counting", reference)

    def run(self, backend: Interpreter, patience: float = PATIENCE) -> ItemOutcome:
        """Its outcome on a backend, with a time limit in seconds for each entry."""
        outcome = ItemOutcome(
            ItemVerdict.FAILED, f"{self.label}: there is nothing to do: no script"
        )
        with listening():
            for script in _scripts(self):
                outcome = _follow(script, backend, patience)
                if outcome.verdict is not ItemVerdict.PASSED:
                    return outcome
        return outcome


@functools.cache
def _reference() -> Interpreter:
    return runnable(Registry(), ORACLE)


@functools.lru_cache(maxsize=1)  # several backends may run the same item in sequence
def _scripts(item: Item) -> list[Script]:
    return list(item.scripts(_reference()))


def _follow(script: Script, backend: Interpreter, patience: float) -> ItemOutcome:
    if script.complaint is not None:
        reason = f"{script.about}: {script.complaint}, by the {ORACLE} backend itself"
        return ItemOutcome(ItemVerdict.FAILED, reason)
    try:
        obstacle, refusal = _objection(script, backend)
        if obstacle is not None:
            return ItemOutcome(ItemVerdict.SKIPPED, obstacle)
        if isinstance(refusal, str):
            return ItemOutcome(ItemVerdict.REFUSED, refusal)
        if refusal is not None:
            fault = Mismatch("accepts", "None, or the reason why not", repr(refusal))
            return ItemOutcome(ItemVerdict.FAILED, fault=fault, script=script)
        artifact = _prepared.get(backend, script.program)
    except BaseException as error:  # noqa: BLE001 - whatever a backend raises, it has failed
        raise_if_pressed(error)
        found: Mismatch | None = Mismatch("prepare", "an artifact", describe(error))
    else:
        if isinstance(artifact, Artifact):
            try:
                found = perform(script, artifact, patience)
            except RefusalError as error:
                return ItemOutcome(ItemVerdict.REFUSED, one_line(str(error)))
        else:
            found = Mismatch("prepare", "an Artifact", repr(artifact))
    if found is None:
        return ItemOutcome(ItemVerdict.PASSED)
    _prepared.forget()  # its leftovers must not affect other scripts
    return ItemOutcome(ItemVerdict.FAILED, fault=found, script=script)


_prepared = Prepared()


def _objection(script: Script, backend: Interpreter) -> tuple[str | None, object]:
    """The declared limit that keeps a backend from following a script, and if that is a refusal."""
    obstacle = script.obstacle(backend.capabilities)
    return obstacle, backend.accepts(script.program) if obstacle is None else None


@dataclasses.dataclass(frozen=True)
class Batch(Item):
    """The golden cases of several instructions, each in one dressing."""

    mnemonics: tuple[str, ...] = ()

    def scripts(self, reference: Interpreter) -> Iterator[Script]:
        """The scripts to perform on a backend."""
        are_shared = self.group == Golden.TOGETHER.value
        return batch_scripts(self.mnemonics, self.manner == "counting", are_shared, reference)


class Admission(Item):
    """A check that a backend accepts some case: one that refuses every case would fail none."""

    def scripts(self, reference: Interpreter) -> Iterator[Script]:
        """None: there is nothing to export."""
        return iter(())

    def run(self, backend: Interpreter, patience: float = PATIENCE) -> ItemOutcome:
        """Passed as soon as the backend accepts a case; failed with its reasons if it accepts
        none."""
        reasons: Counter[str] = Counter()
        with listening():
            for item in items():
                for script in item.scripts(_reference()):
                    try:
                        obstacle, refusal = _objection(script, backend)
                    except BaseException as error:  # noqa: BLE001 - as above
                        raise_if_pressed(error)
                        fault = Mismatch("accepts", "None, or the reason why not", describe(error))
                        return ItemOutcome(ItemVerdict.FAILED, fault=fault, script=script)
                    if obstacle is None and refusal is None:
                        return ItemOutcome(ItemVerdict.PASSED)
                    reasons[str(obstacle or refusal)] += 1
        lines = [f"  {count} times: {why}" for why, count in reasons.most_common(_MOST_REASONS)]
        return ItemOutcome(ItemVerdict.FAILED, "\n".join(("it takes no case at all", *lines)))


_MOST_REASONS = 3


@functools.cache
def items() -> tuple[Item, ...]:
    """Every item, instructions first. Raises CaseError."""
    found = [
        Item(_GOLDEN, row.mnemonic, manner, row.summary.splitlines()[0])
        for row in INSTRUCTIONS
        if cases_of(row.mnemonic)
        for manner in ("plain", "counting")
    ]
    found += [
        Item(case.group, case.name, manner, case.about, case)
        for case in cases()
        for manner in case.manners
    ]
    return tuple(found)


@functools.cache
def checks() -> tuple[Item, ...]:
    """The checks of a backend: that it accepts any case, and every item. Raises CaseError."""
    about = "The backend takes at least one case"
    return (Admission("backend", "accepts", "anything", about), *items())


def checks_of(golden: Golden, alone: frozenset[str] = frozenset()) -> tuple[Item, ...]:
    """As `checks`, with golden cases run in a given mode, except those with labels in `alone`.
    Raises CaseError."""
    if golden is Golden.EACH:
        return checks()
    found = []
    for manner in ("plain", "counting"):
        omitted = {item.name for item in items() if item.manner == manner and item.label in alone}
        for mnemonics in batches(frozenset(omitted)):
            name = f"{mnemonics[0]}-to-{mnemonics[-1]}" if mnemonics[1:] else mnemonics[0]
            about = f"Golden cases of {len(mnemonics)} instructions"
            found.append(Batch(golden.value, name, manner, about, mnemonics=mnemonics))
    selected = [check for check in checks() if check.group != _GOLDEN or check.label in alone]
    return (*selected, *found)


def select(pattern: str) -> list[Item]:
    """The checks that a pattern names: whole labels, beginnings of them, or with `*` and `?`."""
    return [
        check
        for check in checks()
        if fnmatch.fnmatchcase(check.label, pattern)
        or check.label.startswith(pattern.rstrip("/") + "/")
    ]
