# SPDX-License-Identifier: Apache-2.0
"""A verified program in the form for analyses: Python lists, and a unique name for each
function."""

from __future__ import annotations

import collections
import re

from ferryvm.isa import INSTRUCTIONS, Flow, Immediate
from ferryvm.program import Clause
from ferryvm.region.memo import memoised
from ferryvm.verify import Verified

PROGRAM = "program"
"""The name of the region of a whole program."""

_AMBIGUOUS = re.compile(rf"^$|^{PROGRAM}$|/[a-z]+\.[0-9.]+$|#[0-9]+$")
"""Function names that could be confused with the name of another region."""

FLOWS = [row.flow for row in INSTRUCTIONS]
"""The control flow of each opcode."""

_LAST = (Flow.RETURN, Flow.STOP, Flow.THROW)
_CALLS = (Flow.CALL, Flow.CALL_INDIRECT, Flow.HOST)
_ENDS = [flow in (Flow.JUMP, Flow.BRANCH, Flow.TABLE, *_LAST) for flow in FLOWS]
"""For each opcode, True if its successor is not just the next instruction."""


class DecodedCode:
    """Opcodes and immediates of all instructions, and unique names of functions."""

    def __init__(self, verified: Verified) -> None:
        program = verified.program
        self.opcodes: list[int] = program.code.opcodes.tolist()
        self.immediates: list[int] = program.code.immediates.tolist()
        self.length = len(self.opcodes)
        self.handlers = _handlers(verified, self.opcodes)
        """The handlers within the function of exceptions of an instruction, by its pc."""
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
        """A function's name; with `#` and its number if the name alone would be ambiguous."""

    def successors(self, pc: int) -> list[int]:
        """The successors of an instruction in the function: for a branch the next one, then the
        target; then the handlers of its exceptions."""
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
    """The clause of the function that catches the exception thrown by the instruction at `pc`
    itself; None for an instruction that throws none of its own, or one that is not known
    statically."""
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
        if INSTRUCTIONS[opcode].immediate is Immediate.TAG:  # it throws that tag and nothing else
            own = caught_locally(verified, pc)
            covering = () if own is None else (own,)
        handlers = tuple(dict.fromkeys(clause.handler for clause in covering))
        if handlers:
            found[pc] = handlers
    return found


@memoised
def code(verified: Verified) -> DecodedCode:
    """The decoded code of a program."""
    return DecodedCode(verified)
