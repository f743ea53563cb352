# SPDX-License-Identifier: Apache-2.0
"""Comparison of backends: whole states, bit for bit, wherever a program stops.

Public names are imported on first use: pytest imports this package in every run where ferryvm is
installed, for its plugin.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferryvm.machine.difference import Difference
    from ferryvm.testing.differential import Comparison, Differ, Verdict
    from ferryvm.testing.kernel_check import check_kernel
    from ferryvm.testing.kernel_run import run_kernel
    from ferryvm.testing.python_check import PythonDifferenceError, check
    from ferryvm.testing.schedule import Schedule
    from ferryvm.testing.state import StoppedState, difference
    from ferryvm.testing.trial import Trial

_HOMES = {
    "Comparison": "differential",
    "Differ": "differential",
    "PythonDifferenceError": "python_check",
    "Difference": "state",
    "Schedule": "schedule",
    "StoppedState": "state",
    "Trial": "trial",
    "Verdict": "differential",
    "check": "python_check",
    "check_kernel": "kernel_check",
    "difference": "state",
    "run_kernel": "kernel_run",
}
"""The module of each name."""

__all__ = [
    "Comparison",
    "Differ",
    "Difference",
    "PythonDifferenceError",
    "Schedule",
    "StoppedState",
    "Trial",
    "Verdict",
    "check",
    "check_kernel",
    "difference",
    "run_kernel",
]


def __getattr__(name: str) -> object:
    """A public name, on its first use (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ferryvm.testing' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"ferryvm.testing.{home}"), name)
    globals()[name] = value
    return value
