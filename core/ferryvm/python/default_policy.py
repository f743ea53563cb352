# SPDX-License-Identifier: Apache-2.0
"""The default policy with guesses in launches, for Python functions.

Items of maps are ordinary Python: branches for errors and rare cases, numbers that are the same for all.
What their first items do not do is left out of the code (docs/mixed-execution.md).
"""

from __future__ import annotations

from ferryvm import record
from ferryvm.policy import Policy, Rule, default


def python_policy() -> Policy:
    """The policy of Python functions that are given none."""
    found = default()
    return record.replace(found, rules=tuple(map(_guessing, found.rules)))


def _guessing(rule: Rule) -> Rule:
    if rule.name != "launches":
        return rule
    first, *others = rule.backends
    options = record.replace(first.options, speculate=True)
    return record.replace(rule, backends=(record.replace(first, options=options), *others))
