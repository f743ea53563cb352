# SPDX-License-Identifier: Apache-2.0
"""Running verified programs on backends: start, stop, save, resume."""

from ferryvm.engine.execution import Engine, Execution
from ferryvm.engine.result import ProgramInterrupted, RunResult, TrapError, UncaughtError
from ferryvm.engine.runnable import runnable

__all__ = [
    "Engine",
    "Execution",
    "ProgramInterrupted",
    "RunResult",
    "TrapError",
    "UncaughtError",
    "runnable",
]
