# SPDX-License-Identifier: Apache-2.0
"""How a program ends on an engine."""

from __future__ import annotations

from ferryvm.engine import Engine, TrapError
from ferryvm.machine.state import Snapshot
from ferryvm.program import Program


def ended(engine: Engine, program: Program) -> tuple[object, Snapshot]:
    """The result or the trap, and the state."""
    execution = engine.start(program)
    result: object
    try:
        result = execution.run().value
    except TrapError as error:
        result = str(error)
    return result, execution.machine.snapshot()
