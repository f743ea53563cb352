# SPDX-License-Identifier: Apache-2.0
"""Edge classes: the situations worth seeing of each instruction, numbered.

They are the value classes of each operand and of a literal, then the instruction's events and its
traps. `EDGES` has them by opcode.
"""

from __future__ import annotations

import dataclasses

from ferryvm.isa import INSTRUCTIONS, Instruction, Type
from ferryvm.testing.report.event import EVENTS, TRAPS, Step
from ferryvm.testing.report.value import VALUES, classes_of


@dataclasses.dataclass(frozen=True)
class Edge:
    """An edge class of one instruction."""

    group: str
    """Its group: an operand, the branch, the trap ..."""
    name: str


class Edges:
    """All edge classes of one instruction, numbered in the order in which they are shown."""

    def __init__(self, row: Instruction) -> None:
        self.all: list[Edge] = []
        self._values: list[tuple[int, Type, int]] = []
        """Position of an operand, its type, number of its first edge."""
        self._literal: tuple[Type, int] | None = None
        if row.immediate.literal is not None:
            self._literal = row.immediate.literal, 0
            self._add_values("literal", row.immediate.literal)
        for position, t in enumerate(row.pops):
            if isinstance(t, Type):
                self._values.append((position, t, len(self.all)))
                self._add_values(f"operand {'abcdefgh'[position]}", t)
        self._first_event = len(self.all)
        self._events = [event for event in (*EVENTS, *TRAPS) if event.applies(row)]
        self.all += [Edge(event.group, event.name) for event in self._events]

    def _add_values(self, group: str, t: Type) -> None:
        self.all += [Edge(group, value.name) for value in VALUES if value.is_float is t.is_float]

    def met(self, step: Step) -> list[int]:
        """Numbers of the edge classes that a step of this instruction is in."""
        found: list[int] = []
        if self._literal is not None:
            found += classes_of(self._literal[0], step.immediate)
        for position, t, first in self._values:
            for number in classes_of(t, step.operands[position]):
                found.append(first + number)
        for number, event in enumerate(self._events, self._first_event):
            if event.holds(step):
                found.append(number)
        return found


EDGES: tuple[Edges, ...] = tuple(Edges(row) for row in INSTRUCTIONS)
"""Edge classes by opcode."""

EDGE_COUNT = sum(len(edges.all) for edges in EDGES)
"""Edge classes over the whole table."""
