# SPDX-License-Identifier: Apache-2.0
"""Guesses that code was compiled with, and the share of items of a launch that may fail them.

In a launch whose items run out of order an item that fails a guess is suspended, so guesses are
judged by their share of the items. Elsewhere the code itself counts up to a limit.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ferryvm import record
from ferryvm.named_tuple import NamedTuple

if TYPE_CHECKING:
    from ferryvm.region.known_word import KnownWord

_LEAST = 16
"""Failures from which on a share means something."""


@record.dataclass
class Guess:
    """A guess in the code of a site."""

    subject: tuple[int, int] | KnownWord
    """The path that it leaves out, from the branch at a pc to another one; or the word that it
    takes for constant."""
    outcome: str = ""
    """The reason that it is not made any more; empty as long as it is."""


class GuessLimit(NamedTuple):
    """The guesses in code of a launch, and the failures that they may have."""

    branches: frozenset[int]
    """pcs of the branches with guards."""
    share: float
    """The share of items that may fail one guard, 0 to 1."""
    least: int
    """Failures from which on it counts."""
    words: frozenset[KnownWord] = frozenset()
    """Words that it takes for constant."""

    def is_exceeded(self, failures: int, items: int) -> bool:
        """True if a guard has failed too often; `items`: all that have begun."""
        return self.is_many(failures) and failures > self.share * items

    def is_many(self, failures: int) -> bool:
        """True if so many failures mean something."""
        return failures >= min(self.least, _LEAST)


NO_GUESSES = GuessLimit(frozenset(), 1.0, 1)
"""The limit of code without guesses."""

WRONG = "wrong too often: compiled again without it"
FORGOTTEN = "given up with the others"
CHANGED = "it changed: compiled again without it"


def give_up(guesses: list[Guess], subjects: Collection[object], outcome: str) -> None:
    """Note the reason that guesses are not made any more."""
    for guess in guesses:
        if guess.subject in subjects and not guess.outcome:
            guess.outcome = outcome
