# SPDX-License-Identifier: Apache-2.0
"""Guesses that code was compiled with, and the share of items of a launch that may fail them.

In a launch whose items run out of order an item that fails a guess is suspended, so guesses are
judged by their share of the items. Elsewhere the code itself counts up to a limit.
"""

from __future__ import annotations

from ferryvm import record
from ferryvm.named_tuple import NamedTuple

_LEAST = 16
"""Failures from which on a share means something."""


@record.dataclass
class Guess:
    """A path that the code of a site leaves out: from the branch at a pc to another one."""

    branch: int
    target: int
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

    def is_exceeded(self, failures: int, items: int) -> bool:
        """True if a guard has failed too often; `items`: all that have begun."""
        return failures >= min(self.least, _LEAST) and failures > self.share * items


NO_GUESSES = GuessLimit(frozenset(), 1.0, 1)
"""The limit of code without guesses."""
