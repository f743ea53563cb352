# SPDX-License-Identifier: Apache-2.0
"""The stack map: the types of the operands before each instruction, as `type_flow` finds them.

Operand stacks are hash-consed lists: equal stacks have equal numbers, so the cost of pushing,
popping and comparing at joins does not depend on a stack's depth. A *kind* is the small number of a
type in them.
"""

from __future__ import annotations

from ferryvm import record
from ferryvm.isa import Type

KINDS = tuple(Type)
NUMBER = {t: number for number, t in enumerate(Type)}


class Stacks:
    """Hash-consed stacks of kinds; stack 0 is empty."""

    def __init__(self) -> None:
        self.parents, self.kinds, self.depths = [0], [-1], [0]
        self.known: dict[int, int] = {}
        self._skips = [0]
        """For each stack, a shorter one below its top, by which `cut` takes logarithmic time."""

    def push(self, stack: int, kind: int) -> int:
        key = stack * 8 + kind
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.parents)
            self.parents.append(stack)
            self.kinds.append(kind)
            self.depths.append(self.depths[stack] + 1)
        return found

    def cut(self, stack: int, depth: int) -> int:
        """The `depth` deepest operands of a stack that has as many.

        Skip pointers as in E. W. Myers, "An applicative random-access stack", 1983."""
        skips, depths, parents = self._skips, self.depths, self.parents
        for new in range(len(skips), len(parents)):
            parent = parents[new]
            skip = skips[parent]
            is_even = depths[parent] - depths[skip] == depths[skip] - depths[skips[skip]]
            skips.append(skips[skip] if is_even else parent)
        while depths[stack] > depth:
            stack = skips[stack] if depths[skips[stack]] >= depth else parents[stack]
        return stack

    def kinds_of(self, stack: int) -> list[int]:
        result = []
        while stack:
            result.append(self.kinds[stack])
            stack = self.parents[stack]
        return result[::-1]


@record.dataclass
class StackMap:
    """The operand stack on arrival at each instruction, and the frame sizes that follow from it."""

    owners: list[int]
    """For each instruction the number of its function, -1 if it is unreachable."""
    states: list[int]
    """For each instruction the operand stack before it, as a number of `stacks`."""
    stacks: Stacks
    frame_words: tuple[int, ...]
    """Words of the largest frame of each function, from its header on."""
