# SPDX-License-Identifier: Apache-2.0
"""Expression trees of an iteration, each of which is placed as a whole.

    load   load
       \\   /
        fmul   fadd          each result is read in the cycle in which it gets to its unit's
          \\   /             output register, so it takes no port, and holds no unit
          fadd

A tree is operations whose results one other operation of it reads, in the same iteration, and
their last one. Where iterations take nearly all cycles of the units that execute them, a schedule
one operation after another splits the free cycles, and later sums find no cycles at equal
distances; a whole tree is shifted until all of its cycles are free. (As Lam places strongly
connected components, with the resources of all their operations: Software Pipelining, PLDI 1988,
section 2.2.)
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ferryvm_backends.vliw.code.modulo.dependence_graph import Iteration
from ferryvm_backends.vliw.code.modulo.partial_schedule import LoopDemand

SMALLEST = 3
"""Operations of a tree that is placed as a whole."""


@dataclasses.dataclass(frozen=True)
class ExpressionTree:
    """Operations by their numbers, the one that has the tree's value first."""

    operations: Sequence[int]
    cycles: Mapping[int, int]
    """The cycle of each relative to that one; at most 0."""

    @property
    def root(self) -> int:
        """The operation that has the tree's value."""
        return self.operations[0]


def expression_trees(
    loop: Iteration, demand: LoopDemand, fastest: Sequence[int]
) -> list[ExpressionTree]:
    """The trees of an iteration, the largest first; `fastest`: the latency of each operation on
    its fastest unit."""
    inner: defaultdict[int, list[int]] = defaultdict(list)
    inside: set[int] = set()
    for number in range(len(loop.nodes)):
        reader = _only_reader(loop, demand, number)
        if reader is not None:
            inner[reader].append(number)
            inside.add(number)
    found = []
    for root in inner.keys() - inside:
        operations, cycles = [root], {root: 0}
        for reader in operations:
            for number in inner[reader]:
                cycles[number] = cycles[reader] - fastest[number]
                operations.append(number)
        if len(operations) >= SMALLEST:
            found.append(ExpressionTree(operations, cycles))
    return sorted(found, key=lambda each: (-len(each.operations), each.root))


def _only_reader(loop: Iteration, demand: LoopDemand, number: int) -> int | None:
    """The one operation that reads a result, in its own iteration and not as an address; None for
    results that more than one reads. An address is often that of other accesses, too."""
    if len(demand.readers[number]) != 1 or number in demand.needed or demand.own_distance[number]:
        return None
    ((reader, index), _, distance, _) = demand.readers[number][0]
    is_address = index == 0 and loop.nodes[reader].operation.place is not None
    return None if distance or is_address or not demand.issue[reader].has_result else reader
