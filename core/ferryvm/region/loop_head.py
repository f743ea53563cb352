# SPDX-License-Identifier: Apache-2.0
"""Likely loop heads, found in one scan of the code, without its control-flow graphs.

Every cycle of control contains a jump to itself or backward. In the code of compilers the loop
begins at the target of that jump or, if the test is at the end, at the target of the jump over the
body:

    pc 3   local.get n   <──┐ head           pc 3   jump 7        ──┐
           ...              │                pc 4   body     <──┐   │
    pc 9   jump 3        ───┘                       ...         │   │
                                             pc 7   test        │ <─┘ head
                                             pc 9   jump_if 4  ─┘

So short programs need no graph. When a head has got hot, the graph of its function shows whether it
is the head of a loop.
"""

from __future__ import annotations

import sys

from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow
from ferryvm.program import Program
from ferryvm.verify import Verified

_HAVE_TARGETS = frozenset(
    row.opcode for row in INSTRUCTIONS if row.flow in (Flow.JUMP, Flow.BRANCH)
)
"""The jumps that follow a `jump_table` are instructions of their own."""

_JUMPS = frozenset(row.opcode for row in INSTRUCTIONS if row.flow is Flow.JUMP)

ENTER = BY_MNEMONIC["enter_jit"].opcode
_LAUNCH = BY_MNEMONIC["launch.test"].opcode.to_bytes(2, sys.byteorder)


def likely_loop_heads(verified: Verified) -> list[int]:
    """pcs at which loops probably begin, in rising order."""
    code = verified.program.code
    opcodes, immediates = code.opcodes.tolist(), code.immediates
    jumps = (pc for pc, opcode in enumerate(opcodes) if opcode in _HAVE_TARGETS)
    ends = {immediates[pc]: pc for pc in jumps if immediates[pc] <= pc}
    found = set()
    for first, last in ends.items():
        head = first
        if first and opcodes[first - 1] in _JUMPS:
            over = immediates[first - 1]
            if first < over <= last:
                head = over
        if verified.is_reachable(head):
            found.add(head)
    return sorted(found)


def scope_marks(verified: Verified) -> list[int]:
    """pcs of all `enter_jit`, in rising order."""
    opcodes = verified.program.code.opcodes.tolist()
    return [
        pc for pc, opcode in enumerate(opcodes) if opcode == ENTER and verified.is_reachable(pc)
    ]


def may_launch(program: Program) -> bool:
    """False if a program certainly has no launch."""
    return _LAUNCH in program.code.opcodes.tobytes()
