# SPDX-License-Identifier: Apache-2.0
"""Proving that backends agree: whole states, compared bit for bit, wherever a program stops."""

from ferryvm.testing.differential import Comparison, Differ, Verdict
from ferryvm.testing.schedule import Schedule
from ferryvm.testing.state import Difference, State, difference
from ferryvm.testing.trial import Trial

__all__ = [
    "Comparison",
    "Differ",
    "Difference",
    "Schedule",
    "State",
    "Trial",
    "Verdict",
    "difference",
]
