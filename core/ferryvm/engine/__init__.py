# SPDX-License-Identifier: Apache-2.0
"""Running verified programs on backends: start, stop, save, resume."""

from ferryvm.engine.engine import Engine
from ferryvm.engine.execution import Execution
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
