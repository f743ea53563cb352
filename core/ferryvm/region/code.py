# SPDX-License-Identifier: Apache-2.0
"""A verified program as analyses read it: Python lists, and a name of its own for each function."""

from __future__ import annotations

import collections
import re

from ferryvm.isa import INSTRUCTIONS, Flow, Immediate
from ferryvm.program import Clause
from ferryvm.region.memo import memoised
from ferryvm.verify import Verified

PROGRAM = "program"
"""Name of the region of a whole program."""

_AMBIGUOUS = re.compile(rf"^$|^{PROGRAM}$|/[a-z]+\.[0-9.]+$|#[0-9]+$")
"""Function names that could be taken for the name of another region."""

FLOWS = [row.flow for row in INSTRUCTIONS]
"""By opcode."""

_LAST = (Flow.RETURN, Flow.STOP, Flow.THROW)
_CALLS = (Flow.CALL, Flow.CALL_INDIRECT, Flow.HOST)
_ENDS = [flow in (Flow.JUMP, Flow.BRANCH, Flow.TABLE, *_LAST) for flow in FLOWS]
"""By opcode, whether control does not simply go on after it."""


class DecodedCode:
    """Opcodes and immediates of all instructions; names that tell all functions apart."""

    def __init__(self, verified: Verified) -> None:
        program = verified.program
        self.opcodes: list[int] = program.code.opcodes.tolist()
        self.immediates: list[int] = program.code.immediates.tolist()
        self.length = len(self.opcodes)
        self.handlers = _handlers(verified, self.opcodes)
        """The handlers in the function of exceptions of an instruction, by its pc."""
        self.ends = [
            pc for pc, opcode in enumerate(self.opcodes) if _ENDS[opcode] or pc in self.handlers
        ]
        """pcs of the instructions after which a block ends."""
        names = [function.name for function in program.functions]
        count = collections.Counter(names)
        self.names = [
            f"{name}#{number}" if count[name] > 1 or _AMBIGUOUS.search(name) else name
            for number, name in enumerate(names)
        ]
        """A function's name; with `#` and its number where that alone would not be clear."""

    def successors(self, pc: int) -> list[int]:
        """The successors in the function of an instruction: for a branch the next one,
        then the target; then the handlers of its exceptions."""
        flow = FLOWS[self.opcodes[pc]]
        if flow is Flow.JUMP:
            return [self.immediates[pc]]
        if flow is Flow.BRANCH:
            return [pc + 1, self.immediates[pc]]
        if flow is Flow.TABLE:
            return list(range(pc + 1, pc + 2 + self.immediates[pc]))
        onward = [] if flow in _LAST else [pc + 1]
        return onward + [to for to in self.handlers.get(pc, ()) if to not in onward]


def caught_locally(verified: Verified, pc: int) -> Clause | None:
    """The clause of the function that catches what the instruction at `pc` throws by itself; None
    for an instruction that throws nothing of its own, or what is not known before it runs."""
    program = verified.program
    if INSTRUCTIONS[program.code.opcodes[pc]].immediate is not Immediate.TAG:
        return None
    tag = program.code.immediates[pc]
    covering = verified.clauses.covering(pc)
    return next((clause for clause in covering if clause.tag in (None, tag)), None)


def _handlers(verified: Verified, opcodes: list[int]) -> dict[int, tuple[int, ...]]:
    found = {}
    for pc, opcode in enumerate(opcodes) if verified.clauses else ():
        flow = FLOWS[opcode]
        if not verified.is_reachable(pc) or flow not in (*_CALLS, Flow.THROW):
            continue
        covering = verified.clauses.covering(pc)
        if INSTRUCTIONS[opcode].immediate is Immediate.TAG:  # it throws that and nothing else
            own = caught_locally(verified, pc)
            covering = () if own is None else (own,)
        handlers = tuple(dict.fromkeys(clause.handler for clause in covering))
        if handlers:
            found[pc] = handlers
    return found


@memoised
def code(verified: Verified) -> DecodedCode:
    """The code of a program."""
    return DecodedCode(verified)
