# SPDX-License-Identifier: Apache-2.0
"""Proving that backends agree: whole states, compared bit for bit, wherever a program stops."""

from ferryvm.testing.differential import Comparison, Differ, Schedule, Verdict
from ferryvm.testing.state import Difference, State, difference

__all__ = ["Comparison", "Differ", "Difference", "Schedule", "State", "Verdict", "difference"]
