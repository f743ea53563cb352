# SPDX-License-Identifier: Apache-2.0
"""Boundaries: the barriers at which a group finds that one of its members has left.

    check ──fails──> note it ──┐                    a member that leaves goes to the barrier at
      │                        │                    which the others wait for it
    the rest of the phase      │
      │                        ▼
    barrier ─── has any member left? ─── yes: all go to the next barrier, up to the end

A barrier at which others may have left is a *vote*. Where an exit of some members may be followed by one
barrier or another, or by the end, a barrier is added behind it, where all members come. Once all have
left, they come through the barriers on the shortest path to the end, which is one that they might have
taken anyway: a driver that runs members one after another between barriers (PoCL) knows which barrier may
follow which, and breaks at a return in front of one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from ferryvm.ir.graph import Block, Body, Edge, Operation, Terminator, Value
from ferryvm.ir.loop.natural import find_loops
from ferryvm.ir.loop.preheader import Labels
from ferryvm.ir.member import UngroupedError
from ferryvm.ir.member.form import GroupForm
from ferryvm.ir.member.uniformity import Uniformity

_END = Block("end of a group", 0)
"""The boundary behind the last phase."""


@dataclasses.dataclass(frozen=True)
class Boundaries:
    """The boundaries of a member's code, each barrier of which begins a block."""

    targets: dict[Operation, Block]
    """The barrier to which each exit leads that does not just return."""
    votes: dict[Block, Block | None]
    """Barriers at which members may have left, and the next barrier for them; None: they return."""
    first: Block | None
    """The first barrier for members of a group that is not to begin."""
    phases: dict[Block, frozenset[Block]]
    """For each barrier, and the entry: the blocks that run before the next barrier."""


def boundaries(body: Body, form: GroupForm, where: Callable[[int], str]) -> Boundaries:
    """Split a member's code at barriers, add those that exits need, and find the boundaries; `where`:
    the position of an instruction, for people. Raises UngroupedError if a barrier is not reached by all
    members."""
    _poll_at_barriers(body)
    while True:
        split_at_barriers(body)
        uniformity = Uniformity(body, [form.member])
        for block in uniformity.divergent:
            if is_barrier(block):
                at = where(block.operations[0].pc)
                raise UngroupedError(f"some members may come to the barrier at {at} without others")
        found = _Boundaries(body, uniformity)
        if found.unclear is None:
            first = found.onward(body.blocks[0])
            votes = found.votes([*found.targets.values(), *([first] if first else ())])
            return Boundaries(found.targets, votes, first, _phases(body))
        found.unclear.operations.append(Operation("barrier", None))


def _poll_at_barriers(body: Body) -> None:
    """Let members poll in front of a barrier, which all come to, in loops that have one: behind it, at
    the end of an iteration, some might leave while others are in the next one."""
    for loop in find_loops(body):
        graph = loop.graph
        latches = [graph.blocks[place] for place in loop.latches]
        polls = [o for block in latches for o in block.operations if o.name == "poll"]
        for place in loop.places:
            block = graph.blocks[place]
            barrier = next((o for o in block.operations if o.name == "barrier"), None)
            if not polls or barrier is None:
                continue
            if all(graph.dominates(place, latch) for latch in loop.latches):
                for latch in latches:
                    latch.operations = [o for o in latch.operations if o.name != "poll"]
                block.operations.insert(block.operations.index(barrier), polls[0])
                break


def is_barrier(block: Block) -> bool:
    """True for a block that begins with a barrier."""
    return bool(block.operations) and block.operations[0].name == "barrier"


def split_at_barriers(body: Body) -> None:
    """Let each barrier begin a block."""
    labels = Labels(body)
    blocks: list[Block] = []
    for block in body.blocks:
        blocks.append(block)
        here = block
        for operation in [*block.operations]:
            if operation.name == "barrier" and here.operations[0] is not operation:
                place = here.operations.index(operation)
                rest = labels.block(block, "wait")
                rest.operations = here.operations[place:]
                rest.terminator = here.terminator
                here.operations = here.operations[:place]
                here.terminator = Terminator("jump", edges=(Edge(rest, []),))
                blocks.append(rest)
                here = rest
    body.blocks[:] = blocks


class _Boundaries:
    def __init__(self, body: Body, uniformity: Uniformity) -> None:
        self._uniformity = uniformity
        self._reached = _next_barriers(body)
        self._onward = _shortest(body)
        self.targets: dict[Operation, Block] = {}
        self.unclear: Block | None = None
        """The block at whose end a barrier is missing."""
        sources: dict[Block, list[Block]] = {block: [] for block in body.blocks}
        for block in body.blocks:
            for edge in block.end.edges:
                sources[edge.block].append(block)
        for block in body.blocks:
            for operation in (*block.operations, block.end):
                if operation.state is None or self.unclear is not None:
                    continue
                if operation is block.end and not block.end.edges:
                    for source in sources[block]:
                        self._lead(source, operation, source.end.arguments)
                else:
                    self._lead(block, operation, operation.arguments)

    def _lead(self, block: Block, operation: Operation, conditions: Sequence[Value]) -> None:
        """Lead an exit of a block to a boundary; `conditions`: values that decide if it is taken."""
        uniformity = self._uniformity
        is_common = block not in uniformity.divergent and all(
            map(uniformity.is_uniform, conditions)
        )
        if is_common and operation.name not in ("poll", "guard", "check_entry"):
            onward = self.onward(block)
            if onward is not None:
                self.targets[operation] = onward
            return
        barriers = self._reached[block]
        if barriers == {_END}:
            return
        if len(barriers) == 1:
            (self.targets[operation],) = barriers
            return
        behind: Block | None = block
        while behind is not None and behind in uniformity.divergent:
            behind = uniformity.behind(behind)
        if behind is None or (is_barrier(behind) and behind is not block):
            raise UngroupedError("where members leave, others do not come to one barrier")
        self.unclear = behind

    def onward(self, block: Block) -> Block | None:
        """The next barrier behind a block on the shortest path to the end; None if that has none."""
        while True:
            following = self._onward.get(block)
            if following is None or is_barrier(following):
                return following
            block = following

    def votes(self, targets: Iterable[Block]) -> dict[Block, Block | None]:
        """The barriers that members come to that have left, first at some of them."""
        found: dict[Block, Block | None] = {}
        waiting = [*targets]
        while waiting:
            block = waiting.pop()
            if block not in found:
                onward = found[block] = self.onward(block)
                waiting += [onward] if onward is not None else []
        return found


def _shortest(body: Body) -> dict[Block, Block]:
    """The block behind each on the path to the end with the fewest barriers."""
    sources: dict[Block, list[Block]] = {block: [] for block in body.blocks}
    for block in body.blocks:
        for edge in block.end.edges:
            sources[edge.block].append(block)
    found: dict[Block, Block] = {}
    seen = {block for block in body.blocks if block.end.name == "return"}
    level = [*seen]
    while level:
        beyond: list[Block] = []
        while level:
            block = level.pop()
            for source in sources[block]:
                if source not in seen:
                    seen.add(source)
                    found[source] = block
                    (beyond if is_barrier(block) else level).append(source)
        level = beyond
    return found


def _next_barriers(body: Body) -> dict[Block, set[Block]]:
    """The boundaries that control may come to first behind a block."""
    found: dict[Block, set[Block]] = {
        block: {_END} if block.end.name == "return" else set() for block in body.blocks
    }
    has_changed = True
    while has_changed:
        has_changed = False
        for block in reversed(body.blocks):
            before = len(found[block])
            for edge in block.end.edges:
                found[block] |= {edge.block} if is_barrier(edge.block) else found[edge.block]
            has_changed = has_changed or len(found[block]) > before
    return found


def _phases(body: Body) -> dict[Block, frozenset[Block]]:
    found = {}
    for start in body.blocks:
        if start is not body.blocks[0] and not is_barrier(start):
            continue
        seen, waiting = {start}, [start]
        while waiting:
            for edge in waiting.pop().end.edges:
                if edge.block not in seen and not is_barrier(edge.block):
                    seen.add(edge.block)
                    waiting.append(edge.block)
        found[start] = frozenset(seen)
    return found


def has_exit(block: Block) -> bool:
    """True if a member may leave in a block."""
    return any(o.state is not None for o in (*block.operations, block.end))
