# SPDX-License-Identifier: Apache-2.0
"""Stores into context arrays of what was loaded from there.

    x = context_load a, item                      x = context_load a, item
    … x is not changed …                  ─>      …
    context_store a, item, x

All that lives across a barrier is stored at it, also what a region has not changed. Which values
these are is known once the passes in front have merged them. What all items have in common is loaded
from the element of item 0, and is stored again.
"""

from __future__ import annotations

from collections.abc import Iterator

from ferryvm.ir.graph import Block, Body, Operation
from ferryvm.ir.group.branch import item_poll
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.passes.dead_code import remove_dead_code


def drop_restored(body: Body) -> int:
    """Remove stores of loops over items that change no element; their number."""
    found: set[Operation] = set()
    for loop in find_loops(body):
        if item_poll(loop) is not None:
            for block in loop.members:
                found |= {o for o in block.operations if _restores(o, block, loop)}
    if found:
        for block in body.blocks:
            block.operations = [o for o in block.operations if o not in found]
        remove_dead_code(body)
    return len(found)


def _restores(store: Operation, block: Block, loop: Loop) -> bool:
    if store.name != "context_store":
        return False
    *place, value = store.arguments
    if not isinstance(value, Operation) or value.name != "context_load":
        return False
    if (value.static, [*value.arguments]) != (store.static, place):
        return False
    return not any(
        other.name == "context_store" and other.static == store.static
        for other in _before(store, block, loop)
    )


def _before(store: Operation, block: Block, loop: Loop) -> Iterator[Operation]:
    """The operations from which control may come to a store in the same iteration."""
    yield from block.operations[: block.operations.index(store)]
    graph, seen = loop.graph, {block, loop.header}
    waiting = [] if block is loop.header else [block]
    while waiting:
        for place in graph.predecessors[graph.places[waiting.pop()]]:
            source = graph.blocks[place]
            if source not in seen:
                seen.add(source)
                waiting.append(source)
                yield from source.operations
