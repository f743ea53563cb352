# SPDX-License-Identifier: Apache-2.0
"""Groups that may begin again after some of their members have left.

A group that meets a trap, a guard or an interrupt leaves nothing but what it has stored into elements
that others see. It begins again in order, which does the same up to there and stores the same again, if
it reads none of these elements. So either no array that it stores into is one that it reads, or no member
can leave in the phase of such a store or later. Which arrays are the same is known for arguments alone:
`Repetition.apart` lists those that must not be, which a target looks up when the launch begins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from ferryvm.ir.graph import Block, Body, Operation, Value
from ferryvm.ir.member import UngroupedError
from ferryvm.ir.member.boundary import Boundaries, has_exit
from ferryvm.ir.operation import SHAPES, Role

_OWN = "group_array"


@dataclasses.dataclass(frozen=True)
class Repetition:
    """The accesses of a group that others see."""

    stored: frozenset[int]
    """Arguments that it stores into."""
    read: frozenset[int]
    """Arguments that it reads."""
    is_apart: bool
    """True if the former must be other arrays than the latter."""

    @property
    def shares(self) -> bool:
        """True if members may read what others have stored, outside of the group's own arrays."""
        return bool(self.stored & self.read) or not self.is_apart


def repetition(
    body: Body,
    places: Mapping[Value, int],
    boundaries: Boundaries,
    where: Callable[[int], str],
) -> Repetition:
    """The accesses of a group that may begin again. `places`: the places of elements of arguments, with
    the numbers of these; `where`: as for `boundaries`. Raises UngroupedError if it may not."""
    stored, read = set[int](), set[int]()
    final: list[tuple[Block, Operation]] = []
    for block in body.blocks:
        for operation in block.operations:
            role = SHAPES[operation.name].role
            if role not in (Role.READS, Role.CHANGES) or operation.name in ("barrier", "static"):
                continue
            place = operation.arguments[0] if operation.arguments else None
            if isinstance(place, Operation) and place.name == _OWN:
                continue
            number = places.get(place) if place is not None else None
            if operation.name == "element_load" and number is not None:
                read.add(number)
            elif operation.name == "element_store" and number is not None:
                stored.add(number)
            elif operation.name == "canonicalise_elements":
                continue  # of elements that it has just stored
            elif role is Role.CHANGES:
                final.append((block, operation))
            else:
                at = where(operation.pc)
                raise UngroupedError(
                    f"what its members read at {at} is not known before they begin"
                )
    for block in body.blocks:
        for operation in block.operations:
            is_store = operation.name == "element_store"
            if is_store and places.get(operation.arguments[0]) in stored & read:
                final.append((block, operation))
    exits = [block for block in body.blocks if has_exit(block)]
    for block, operation in final:
        late = _from_phase_on(block, boundaries)
        if any(one in late for one in exits):
            at = where(operation.pc)
            raise UngroupedError(
                f"a member may leave when others have changed what it needs to begin again, at {at}"
            )
    return Repetition(frozenset(stored), frozenset(read), is_apart=bool(exits))


def _from_phase_on(block: Block, boundaries: Boundaries) -> set[Block]:
    """The blocks of the phases that a block is in, and of all later ones."""
    found, waiting = set[Block](), set[Block]()
    for blocks in boundaries.phases.values():
        if block in blocks:
            waiting |= blocks
    while waiting:
        here = waiting.pop()
        if here not in found:
            found.add(here)
            waiting |= {edge.block for edge in here.end.edges} - found
    return found
