# SPDX-License-Identifier: Apache-2.0
"""Whether a schedule is right, found out without the scheduler.

code ─ reference ─> what each block means ─┐
                                           ├─ proof ─> nothing, or a ScheduleError
bundles ─ resource, follow ─> what is done ┘

Of the compiler it knows the data alone: operations, programs, and what is live. Both sides are
worked out on terms (`term`, `memory`), so what is found to be equal is so for all inputs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ferryvm_backends.vliw.code.operation import MachineCode
    from ferryvm_backends.vliw.code.program import Program
    from ferryvm_backends.vliw.prove.claim import Claim

ENVIRONMENT = "FERRYVM_CHECK_VLIW"
"""The variable which, set to 1, has every program proved that is compiled."""


def prove_if_asked(code: MachineCode, program: Program, claim: Claim) -> None:
    """Raise ScheduleError for a program that is wrong, if the environment asks for that."""
    if os.environ.get(ENVIRONMENT) == "1":
        from ferryvm_backends.vliw.prove.proof import prove  # costs as much as compiling

        prove(code, program, claim)
