# SPDX-License-Identifier: Apache-2.0
"""The instructions of a function that control can get to, by the definition of each flow."""

from __future__ import annotations

from ferryvm.isa import INSTRUCTIONS, Flow, Immediate
from ferryvm.verify import Verified

_THROWING = (Flow.CALL, Flow.CALL_INDIRECT, Flow.HOST, Flow.THROW)


def reached_pcs(verified: Verified, function: int) -> list[int]:
    """Their pcs. Less than the verifier's, which takes a handler for reachable if an instruction
    that it covers is: of an exception whose tag is known only its own handler is one."""
    program = verified.program
    found, worklist = set[int](), [program.functions[function].entry]
    while worklist:
        pc = worklist.pop()
        if pc in found:
            continue
        found.add(pc)
        row, immediate = INSTRUCTIONS[program.code.opcodes[pc]], program.code.immediates[pc]
        flow = row.flow
        if flow in (Flow.JUMP, Flow.BRANCH):
            worklist.append(immediate)
        if flow is Flow.TABLE:
            worklist += range(pc + 1, pc + 2 + immediate)
        elif flow not in (Flow.JUMP, Flow.RETURN, Flow.STOP, Flow.THROW):
            worklist.append(pc + 1)
        if flow in _THROWING:
            for clause in (one for one in program.clauses if one.covers(pc)):
                is_known = row.immediate is Immediate.TAG
                if not is_known or clause.tag in (None, immediate):
                    worklist.append(clause.handler)
                    if is_known:
                        break
    return sorted(found)
