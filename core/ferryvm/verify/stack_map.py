# SPDX-License-Identifier: Apache-2.0
"""The stack map: the types of the operands before each instruction, as `type_flow` finds them.

Operand stacks are hash-consed lists: equal stacks have equal numbers, so the cost of pushing,
popping and comparing at joins does not depend on a stack's depth. A *kind* is the small number of a
type in them.
"""

from __future__ import annotations

from ferryvm import record
from ferryvm.isa import Type
from ferryvm.isa.declared_type import TypeHierarchy
from ferryvm.isa.type import Reference, ValueType

_NUMBERS = tuple(Type)
_KINDS: dict[ValueType, int] = {t: kind for kind, t in enumerate(_NUMBERS)}
_FIRST = len(_NUMBERS)
"""The kind of the reference type number 0."""


def kind_of(t: ValueType) -> int:
    """The kind of a type of the program."""
    return _FIRST + t.number if isinstance(t, Reference) else _KINDS[t]


class Kinds:
    """The types of one program by their kinds."""

    def __init__(self, hierarchy: TypeHierarchy) -> None:
        self.hierarchy = hierarchy
        self.types: tuple[ValueType, ...] = (*_NUMBERS, *hierarchy.references)

    def fits(self, found: int, wanted: int) -> bool:
        """True if an operand of one kind can stand where another is expected."""
        if found == wanted:
            return True
        both = found >= _FIRST and wanted >= _FIRST
        return both and self.hierarchy.is_subtype(found - _FIRST, wanted - _FIRST)

    def join(self, left: int, right: int) -> int | None:
        """The kind of what is of one kind or of the other; None if there is none."""
        if left == right:
            return left
        if left < _FIRST or right < _FIRST:
            return None
        return _FIRST + self.hierarchy.join(left - _FIRST, right - _FIRST)


class Stacks:
    """Hash-consed stacks of kinds; stack 0 is empty."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds, self._count = kinds, len(kinds.types)
        self._joins: dict[tuple[int, int], int | None] = {}
        self.parents, self.kinds, self.depths = [0], [-1], [0]
        self.known: dict[int, int] = {}
        self._skips = [0]
        """For each stack, a shorter one below its top, by which `cut` takes logarithmic time."""

    def push(self, stack: int, kind: int) -> int:
        key = stack * self._count + kind
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.parents)
            self.parents.append(stack)
            self.kinds.append(kind)
            self.depths.append(self.depths[stack] + 1)
        return found

    def join(self, left: int, right: int) -> int | None:
        """The stack of what is on one stack or on the other; None if there is none.

        Each pair of stacks is joined once, so that stacks which differ below many labels, as far
        down as these see, cost no more than one does."""
        pairs = []
        while left != right and (left, right) not in self._joins:
            if not (left and right):
                break
            pairs.append((left, right))
            left, right = self.parents[left], self.parents[right]
        joined = left if left == right else self._joins.get((left, right))
        for pair in reversed(pairs):
            kind = self._kinds.join(*(self.kinds[stack] for stack in pair))
            joined = None if joined is None or kind is None else self.push(joined, kind)
            self._joins[pair] = joined
        return joined

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
    kinds: Kinds
    frame_words: tuple[int, ...]
    """Words of the largest frame of each function, from its header on."""
