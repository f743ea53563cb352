# SPDX-License-Identifier: Apache-2.0
"""Where in a program an instruction is: its function, the loops around it, its basic block."""

from __future__ import annotations

import dataclasses

from ferryvm.errors import Position
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Immediate
from ferryvm.program import Program
from ferryvm.verify import Verified

_ENDS = (Flow.JUMP, Flow.BRANCH, Flow.TABLE, Flow.RETURN, Flow.STOP)
"""What a basic block ends with. Calls come back, so a block goes on after them."""


@dataclasses.dataclass(frozen=True)
class Region:
    """A run of instructions, both ends included."""

    kind: str
    """`function`, `loop` or `block`."""
    first: int
    last: int
    name: str = ""
    """The function's, or the label at its start, as `ferry dis` writes it."""
    position: Position | None = None

    def __str__(self) -> str:
        named = f"{self.kind} {self.name}" if self.name else self.kind
        source = f", {self.position}" if self.position else ""
        return f"{named} (pc {self.first} to {self.last}{source})"


def regions(verified: Verified, pc: int) -> list[Region]:
    """The regions around an instruction that can be reached, widest first, its block last."""
    program, owner = verified.program, verified.owner(pc)
    entry = program.functions[owner].entry
    mine = [at for at in range(len(program.code)) if verified.owner(at) == owner]
    jumps = _jumps(program, mine)
    targets = sorted({target for _, target in jumps})
    labels = {target: f":L{number}" for number, target in enumerate(targets)}

    def make(kind: str, first: int, last: int, name: str) -> Region:
        return Region(kind, first, last, name, program.source_map.position(first))

    found = [make("function", min(mine), max(mine), program.functions[owner].name)]
    loops = {(target, at) for at, target in jumps if target <= pc <= at}
    for first, last in sorted(loops, key=lambda loop: loop[0] - loop[1]):
        found.append(make("loop", first, last, labels[first]))
    flows = {at: INSTRUCTIONS[int(program.code["opcode"][at])].flow for at in mine}
    leaders = {entry, *targets, *(at + 1 for at in mine if flows[at] in _ENDS)}
    first = max((at for at in leaders if at <= pc), default=min(mine))
    last = min((at - 1 for at in leaders if at > pc), default=max(mine))
    return [*found, make("block", first, min(last, max(mine)), labels.get(first, ""))]


def _jumps(program: Program, pcs: list[int]) -> list[tuple[int, int]]:
    """(pc, target) of each jump, those of jump tables included."""
    opcodes, immediates = program.code["opcode"], program.code["immediate"]
    are_jumps = {row.opcode for row in BY_MNEMONIC.values() if row.immediate is Immediate.TARGET}
    return [(pc, int(immediates[pc])) for pc in pcs if int(opcodes[pc]) in are_jumps]
