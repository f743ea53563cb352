# SPDX-License-Identifier: Apache-2.0
"""Where in a program an instruction is: its function, the loops around it, its basic block."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from ferryvm.errors import Position
from ferryvm.isa import Flow, Immediate
from ferryvm.program import Program
from ferryvm.testing.trace import instruction_at
from ferryvm.verify import Verified

_ENDS = (Flow.JUMP, Flow.BRANCH, Flow.TABLE, Flow.RETURN, Flow.STOP)
"""What a basic block ends with. Calls come back, so a block goes on after them."""

_JUMPS = (Flow.JUMP, Flow.BRANCH)


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
    onward = {at: _successors(program, at) for at in mine}
    flows = {at: instruction_at(program, at)[0].flow for at in mine}
    targets = sorted({to for at in mine if flows[at] in _JUMPS for to in _targets(program, at)})
    labels = {target: f":L{number}" for number, target in enumerate(targets)}

    def make(kind: str, first: int, last: int, name: str, head: int) -> Region:
        return Region(kind, first, last, name, program.source_map.position(head))

    found = [make("function", mine[0], mine[-1], program.functions[owner].name, entry)]
    for head, loop in _loops(onward, entry, pc):
        found.append(make("loop", min(loop), max(loop), labels.get(head, ""), head))
    leaders = {entry, mine[0], *targets, *(at + 1 for at in mine if flows[at] in _ENDS)}
    first = max(at for at in leaders if at <= pc)
    last = min((at - 1 for at in leaders if at > pc), default=mine[-1])
    return [*found, make("block", first, min(last, mine[-1]), labels.get(first, ""), first)]


def _targets(program: Program, pc: int) -> list[int]:
    """Where the jump at `pc` goes when it is taken; the records of a table jump themselves."""
    row, immediate = instruction_at(program, pc)
    return [immediate] if row.immediate is Immediate.TARGET else []


def _successors(program: Program, pc: int) -> list[int]:
    """Where control goes in the same function after the instruction at `pc`."""
    row, immediate = instruction_at(program, pc)
    if row.flow is Flow.TABLE:
        return list(range(pc + 1, pc + 2 + immediate))
    if row.flow in (Flow.RETURN, Flow.STOP):
        return []
    return _targets(program, pc) + ([] if row.flow is Flow.JUMP else [pc + 1])


def _loops(onward: dict[int, list[int]], entry: int, pc: int) -> Iterator[tuple[int, set[int]]]:
    """(head, pcs) of the loops around `pc`, widest first.

    A loop is all that can be reached from `pc` and from where `pc` can be reached; the next one
    inside it is what of this is left without the place at which it is entered.
    """
    while True:
        backward: dict[int, list[int]] = {at: [] for at in onward}
        for at, successors in onward.items():
            for to in successors:
                backward[to].append(at)
        loop = _reached(onward, pc) & _reached(backward, pc)
        if pc not in loop:
            return
        heads = [
            at for at in loop if at == entry or any(before not in loop for before in backward[at])
        ]
        head = min(heads, default=min(loop))
        yield head, loop
        if head == pc:
            return
        inner = loop - {head}
        outside = {at for at in inner if head in backward[at]}
        # What the head leads to is entered from outside now, as the first loop is from its entry.
        entry = min(outside, default=pc)
        onward = {at: [to for to in onward[at] if to in inner] for at in inner}


def _reached(onward: dict[int, list[int]], pc: int) -> set[int]:
    """What can be reached from `pc` in one step or more."""
    found: set[int] = set()
    waiting = [*onward[pc]]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting += onward[at]
    return found
