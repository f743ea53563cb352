# SPDX-License-Identifier: Apache-2.0
"""Versions of a barrier, of which items of one group may come to different ones: they have to be
one instruction.

    version 1:  which = 1 ─┐                    ┌─ which = 1 ──> behind it in version 1
                           ├──> the barrier ────┤
    version 2:  which = 2 ─┘                    └─ otherwise ──> behind it in version 2

A variable that is a `numpy.float64` where an item has read an element, and a float where it has
not, makes two versions of what follows. Versions to which all items come together, as in the first
and later iterations of a loop, remain apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ferryvm.python.control_flow.dead_local import Environment

Version = tuple[int, int, Environment]
"""A version: block, first statement, kinds of variables."""


class BarrierVersions:
    """The versions of the barriers of one function that have to be one.

    A program is built at least twice; what one time finds is used the next time.
    """

    def __init__(self) -> None:
        self._classes: list[set[Version]] = []
        """Sets of versions that are one barrier."""

    def begin(self, divergent: Collection[int]) -> None:
        """Begin with code of the function. `divergent`: blocks whose ends lead items of a group
        apart."""
        self._divergent = divergent
        self._edges: dict[Version, list[Version]] = {}
        self._waiting: set[Version] = set()
        self._splitting: set[Version] = set()
        self._present: Version | None = None

    def at(self, version: Version) -> None:
        """State that code of a version begins."""
        self._present = version
        self._edges[version] = []

    def leads_to(self, version: Version) -> None:
        """State that the present version may go on at another one."""
        if self._present is not None:
            self._edges[self._present].append(version)

    def ends(self, block: int) -> None:
        """State that the present version has the end of a block."""
        if block in self._divergent:
            self.splits()

    def splits(self) -> None:
        """State that items may go on at different ones behind the present version."""
        if self._present is not None:
            self._splitting.add(self._present)

    def class_of(self, version: Version) -> int | None:
        """State that a version begins with a barrier; the number of the class to which it
        belongs."""
        self._waiting.add(version)
        return next((n for n, each in enumerate(self._classes) if version in each), None)

    @property
    def count(self) -> int:
        """The number of versions that are one with others."""
        return sum(map(len, self._classes))

    def finish(self) -> None:
        """Find the versions that have to be one, all having been compiled."""
        before = -1
        while before < self.count:
            before = self.count
            for version in self._splitting:
                self._unite(self._edges[version])
            for each in [*self._classes]:
                self._unite([to for of in each for to in self._edges.get(of, ())])

    def _unite(self, starts: Iterable[Version]) -> None:
        """State that items of a group are behind different ones of some versions."""
        first = self._first(starts)
        for place in {each[:2] for each in first}:
            united = {each for each in first if each[:2] == place}
            if len(united) > 1:
                others = [each for each in self._classes if each.isdisjoint(united)]
                joined = [each for each in self._classes if not each.isdisjoint(united)]
                self._classes = [*others, united.union(*joined)]

    def _first(self, starts: Iterable[Version]) -> set[Version]:
        """The versions of barriers to which control comes first."""
        seen: set[Version] = set()
        waiting = [*starts]
        while waiting:
            each = waiting.pop()
            if each not in seen:
                seen.add(each)
                if each not in self._waiting:
                    waiting += self._edges.get(each, ())
        return seen & self._waiting
