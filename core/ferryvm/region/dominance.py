# SPDX-License-Identifier: Apache-2.0
"""Dominators of a graph with one entry.

Nodes are called by their places in reverse postorder; the entry is 0. Graphs of bytecode and bodies
of the region IR both ask here.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

Span = tuple[int, int]
"""Where a node and all that it dominates stand in a preorder: from, and past."""


def dominators(before: Sequence[Sequence[int]]) -> tuple[list[int], list[Span]]:
    """The immediate dominator of each node (the entry's is itself), and the span of each.

    `before`: the nodes from which control comes to each. Cooper, Harvey, Kennedy: A Simple, Fast
    Dominance Algorithm, 2001. The first pass goes by edges that lead on. Edges that lead back
    change nothing if each one's head dominates its tail, so the passes that are to see that nothing
    changes are made only where one does not.
    """
    above = [-1] * len(before)
    above[0] = 0

    def improve() -> bool:
        has_changed = False
        for place in range(1, len(before)):
            meeting = _meet(above, [other for other in before[place] if above[other] >= 0])
            has_changed = has_changed or above[place] != meeting
            above[place] = meeting
        return has_changed

    improve()
    spans = _spans(above)
    for place, others in enumerate(before):
        if any(other >= place and not within(spans, place, other) for other in others):
            while improve():
                pass
            return above, _spans(above)
    return above, spans


def within(spans: Sequence[Span], a: int, b: int) -> bool:
    """True if control must pass node `a` to get to node `b`; a node dominates itself."""
    first, past = spans[a]
    return first <= spans[b][0] < past


def _meet(above: list[int], places: list[int]) -> int:
    """Where the ways up from these places meet.

    The latest place goes up first, and ways that have met go on as one: following them pair by
    pair would take quadratic time for a thousand branches to one block.
    """
    if len(places) == 1:  # as most nodes of the IR have it
        return places[0]
    seen = set(places)
    latest = [-place for place in seen]
    heapq.heapify(latest)
    while len(latest) > 1:
        place = above[-latest[0]]
        if place in seen:
            heapq.heappop(latest)
        else:
            seen.add(place)
            heapq.heapreplace(latest, -place)
    return -latest[0]


def _spans(above: Sequence[int]) -> list[Span]:
    count = len(above)
    sizes = [1] * count
    for place in range(count - 1, 0, -1):  # what is dominated comes later in reverse postorder
        sizes[above[place]] += sizes[place]
    first, free = [0] * count, [1] * count
    for place in range(1, count):
        first[place] = free[above[place]]
        free[above[place]] += sizes[place]
        free[place] = first[place] + 1
    return [(start, start + size) for start, size in zip(first, sizes, strict=True)]
