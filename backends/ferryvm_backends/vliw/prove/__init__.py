# SPDX-License-Identifier: Apache-2.0
"""Translation validation: prove a schedule right, independently of the scheduler.

    code ─ reference ─────────────> meaning of each block ─┐
                                                           ├─ proof ─> nothing, or a ScheduleError
    bundles ─ resource, symbolic ─> effect of the bundles ─┘

The prover shares only data with the compiler: operations, programs, live registers. Both sides are
evaluated on terms (`term`, `memory`), so an equality that is found holds for all inputs. (Pnueli,
Siegel, Singerman: Translation Validation, TACAS 1998; for pipelined loops Tristan, Leroy: A Simple,
Verified Validator for Software Pipelining, POPL 2010.)
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


def is_proof_enabled() -> bool:
    """True if the environment variable enables proofs."""
    return os.environ.get(ENVIRONMENT) == "1"


def prove_if_enabled(code: MachineCode, program: Program, claim: Claim) -> None:
    """Raise ScheduleError for a wrong program, if proofs are enabled."""
    if is_proof_enabled():
        from ferryvm_backends.vliw.prove.proof import prove  # costs as much as compiling

        prove(code, program, claim)
