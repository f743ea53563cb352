# SPDX-License-Identifier: Apache-2.0
"""The stack map: the types of the operands before each instruction, as `type_flow` finds them.

Operand stacks are hash-consed lists: equal stacks are one number, so pushing, popping and comparing
at joins cost the same however deep a stack is. A type is a small number in them, its *kind*.
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
        """Of each stack, a shorter one some way down: so `cut` takes logarithmic time."""

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
    """The operand stack that control brings to each instruction, and the frames that this takes."""

    owners: list[int]
    """Of each instruction the number of its function, -1 if control cannot get there."""
    states: list[int]
    """Of each instruction the operand stack before it, a number of `stacks`."""
    stacks: Stacks
    frame_words: tuple[int, ...]
    """Words of the largest frame of each function, from its header on."""
