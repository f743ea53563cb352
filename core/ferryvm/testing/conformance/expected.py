# SPDX-License-Identifier: Apache-2.0
"""Failures that an author expects: a table from cases to reasons, which must be up to date.

A case is named as on the command line, so one entry may match several items. An entry is stale when
all of its items pass: then it is a failure itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path

import tomli

from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.testing.conformance.suite import Item, ItemOutcome, ItemVerdict, checks, select


@dataclasses.dataclass(frozen=True)
class Expected:
    """One entry of a table."""

    name: str
    """Its name in the table: a case, the beginning of one, or a pattern."""
    reason: str
    items: tuple[Item, ...] = ()
    """The items of an entry: those that it matches, except items of entries with fewer matches."""

    def stale(self, verdict_of: Callable[[Item], ItemVerdict]) -> Item | None:
        """The item that shows that the entry is stale, the first that passes; None if it is not.

        `verdict_of`: the verdict on an item by itself, FAILED if it is unknown.
        """
        first = None
        for item in self.items:
            verdict = verdict_of(item)
            if verdict is ItemVerdict.FAILED:
                return None
            if verdict is ItemVerdict.PASSED and first is None:
                first = item
        return first

    @property
    def complaint(self) -> ItemOutcome:
        """The failure of an entry that is stale."""
        head = "passes, but is"
        if len(self.items) > 1:
            head = f"none of the {len(self.items)} items of {self.name!r} fails, but they are"
        text = f"{head} expected to fail ({self.reason}): take it out of the table"
        return ItemOutcome(ItemVerdict.FAILED, text)


Table = dict[str, Expected]
"""Entries by the labels of their items."""


def check_expected(stated: Mapping[str, str], where: str) -> Table:
    """The entries of a table from names to reasons.

    Raises UnknownNameError for a name that matches no item, FerryError for an invalid reason.
    """
    chosen: dict[str, list[Item]] = {}
    for name, reason in stated.items():
        chosen[name] = select(name) if isinstance(name, str) else []
        if not chosen[name]:
            raise UnknownNameError(f"case in {where}", str(name), [x.label for x in checks()])
        if not isinstance(reason, str) or not reason.strip():
            raise FerryError(f"{where}: {name}: a reason is needed, in words")
    names = sorted(chosen, key=lambda name: len(chosen[name]))
    owner = {item.label: name for name in reversed(names) for item in chosen[name]}
    return {
        item.label: entry
        for name in names
        if (mine := tuple(item for item in chosen[name] if owner[item.label] == name))
        for entry in [Expected(name, stated[name], mine)]
        for item in mine
    }


def read_expected(path: Path) -> Table:
    """The table `[xfail]` of a TOML file. Raises FerryError."""
    try:
        content = tomli.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FerryError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomli.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FerryError(f"{path}: {error}") from None
    if set(content) != {"xfail"} or not isinstance(content["xfail"], dict):
        raise FerryError(f"{path}: exactly one table, [xfail], is expected")
    return check_expected(content["xfail"], str(path))


def expect(outcome: ItemOutcome, entry: Expected | None) -> ItemOutcome:
    """The outcome of an item, for which the author may expect a failure."""
    if entry is None or outcome.verdict is not ItemVerdict.FAILED:
        return outcome
    return dataclasses.replace(outcome, verdict=ItemVerdict.XFAILED, reason=entry.reason)
