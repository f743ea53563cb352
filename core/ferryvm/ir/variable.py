# SPDX-License-Identifier: Apache-2.0
"""What compiled code keeps as values, at one point of it."""

from __future__ import annotations

import dataclasses

from ferryvm.ir.graph import State, Value
from ferryvm.isa.control import HEADER_WORDS


@dataclasses.dataclass
class Variables:
    """What is not in memory while compiled code runs, at one point of it."""

    words: list[Value]
    """The running frame up to the stack pointer; its header first."""
    statics: dict[int, Value]
    dirty: frozenset[int]
    """Statics that memory does not have yet."""
    pointer: Value | None
    """The heap pointer; None where the body never asks for it."""
    is_pointer_dirty: bool

    def copy(self) -> Variables:
        """The same, to be changed on its own."""
        return dataclasses.replace(self, words=[*self.words], statics={**self.statics})

    def state(self, pc: int, unpaid: int, words: list[Value] | None = None) -> State:
        """The state at a pc; `words`: of the frame, if they are others than these."""
        words = self.words if words is None else words
        return State(
            pc,
            (*(None for _ in range(HEADER_WORDS)), *words[HEADER_WORDS:]),
            tuple((number, self.statics[number]) for number in sorted(self.dirty)),
            self.pointer if self.is_pointer_dirty else None,
            unpaid,
        )
