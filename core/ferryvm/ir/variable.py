# SPDX-License-Identifier: Apache-2.0
"""The variables that compiled code holds in SSA values, at one point of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ferryvm.ir.graph import FrameState, Operation, Value
from ferryvm.isa.type import I64

HEADER = (Operation("return_pc", I64), Operation("distance", I64))
"""Placeholders for the words of the running frame's header, which are not values of a body."""


@dataclasses.dataclass
class Variables:
    """Variables that are not in memory while compiled code runs, at one point of it."""

    words: list[Value]
    """The running frame up to the stack pointer, `HEADER` after the parameters."""
    statics: dict[int, Value]
    dirty: frozenset[int]
    """Statics whose values are not in memory yet."""
    pointer: Value | None
    """The heap pointer; None if the body never reads it."""
    is_pointer_dirty: bool

    def copy(self) -> Variables:
        """A copy that can be changed independently."""
        return dataclasses.replace(self, words=[*self.words], statics={**self.statics})

    def state(
        self, pc: int, unpaid: int, words: Sequence[Value | None] | None = None
    ) -> FrameState:
        """The state at a pc; `words`: of the frame, if they differ from these."""
        words = self.words if words is None else words
        return FrameState(
            pc,
            tuple(None if word in HEADER else word for word in words),
            tuple((number, self.statics[number]) for number in sorted(self.dirty)),
            self.pointer if self.is_pointer_dirty else None,
            unpaid,
        )
