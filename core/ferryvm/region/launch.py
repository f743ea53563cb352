# SPDX-License-Identifier: Apache-2.0
"""The loops of launches in code, by their instructions."""

from __future__ import annotations

from ferryvm.isa import BY_MNEMONIC
from ferryvm.program import Program

_STEP = tuple(
    BY_MNEMONIC[name].opcode for name in ("launch.test", "jump_unless", "launch.item", "call")
)
"""The instructions that run an item."""
_JUMP = BY_MNEMONIC["jump"].opcode

CALL_DISTANCE = len(_STEP) - 1
"""Instructions from `launch.test` to the call of the items' function."""


def item_call(program: Program, pc: int) -> int | None:
    """pc of the call of the items of the launch whose `launch.test` is at `pc`; None if the
    instructions there are others."""
    code = program.code
    call = pc + CALL_DISTANCE
    if tuple(code.opcodes[pc : call + 1]) != _STEP:
        return None
    return call if code.immediates[call - 1] == code.immediates[call] else None


def is_launch_head(program: Program, pc: int) -> bool:
    """True if the loop with its head at `pc` runs the items of a launch, and does nothing else."""
    call = item_call(program, pc)
    code = program.code
    if call is None or call + 1 >= len(code):
        return False
    return code.opcodes[call + 1] == _JUMP and code.immediates[call + 1] == pc
