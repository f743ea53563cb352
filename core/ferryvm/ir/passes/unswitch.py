# SPDX-License-Identifier: Apache-2.0
"""Loop unswitching: make two loops of one whose checks depend on an invariant condition.

    preheader:  doubt?  ├─ yes ─> the original loop
                        └─ no  ─> a copy without the checks `trap_if all(p, doubt)`

For compilers whose optimiser does not itself unswitch the conditions that `range_check` hoists.
(Allen, Kennedy: Optimizing Compilers for Modern Architectures, 2001, section 9.7.) Only inner loops
are handled. Requires `code_motion`, for one entry into each loop; preserves effects and exits.
"""

from __future__ import annotations

from ferryvm.ir.clone import Nest, NestClone
from ferryvm.ir.flow import Flow, Loop
from ferryvm.ir.footprint import Footprint
from ferryvm.ir.graph import Block, Body, Edge, Operation, Terminator, Value
from ferryvm.ir.passes.dead_code import remove_dead_code


def unswitch(body: Body, footprints: dict[Operation, Footprint] | None = None) -> int:
    """Make two loops of one where checks depend on a doubt; how many loops that were.

    `footprints`: what is known of accesses; it gets what is known of their copies.
    """
    done: set[Block] = set()
    made = 0
    while (found := _next(body, done)) is not None:
        _split(body, *found, {} if footprints is None else footprints)
        made += 1
    if made:
        remove_dead_code(body)
    return made


def _next(body: Body, done: set[Block]) -> tuple[Flow, Loop, Nest, Value] | None:
    """A loop that is to become two, and the doubt."""
    flow = Flow(body)
    home = flow.homes()
    loops = flow.loops()
    for loop in loops:
        head = flow.blocks[loop.head]
        if head in done or any(o is not loop and o.blocks < loop.blocks for o in loops):
            continue
        done.add(head)
        ways = [edge for s, edge in flow.incoming[loop.head] if s not in loop.blocks]
        nest = Nest(flow, loop)
        if len(ways) != 1 or not nest.has_one_exit:
            continue
        for place in loop.blocks:
            for operation in flow.blocks[place].operations:
                doubt = _doubt(operation, home, loop)
                if doubt is not None:
                    return flow, loop, nest, doubt
    return None


def _doubt(operation: Operation, home: dict[Value, int], loop: Loop) -> Value | None:
    """What has to hold, besides what varies, for a check to fail."""
    outside = [each for each in _both(operation) if home.get(each) not in loop.blocks]
    return outside[0] if len(outside) == 1 else None


def _both(operation: Operation) -> tuple[Value, ...]:
    """What has to hold together for a check to fail; nothing where it is not so."""
    p = operation.arguments[0] if operation.name == "trap_if" else None
    return p.arguments if isinstance(p, Operation) and p.name == "all" else ()


def _split(
    body: Body,
    flow: Flow,
    loop: Loop,
    nest: Nest,
    doubt: Value,
    footprints: dict[Operation, Footprint],
) -> None:
    head = flow.blocks[loop.head]
    (way,) = (edge for s, edge in flow.incoming[loop.head] if s not in loop.blocks)
    eliminated = {
        operation
        for place in loop.blocks
        for operation in flow.blocks[place].operations
        if doubt in _both(operation)
    }
    copy = NestClone(body, nest, "sure")
    for old, new in copy.blocks.items():
        pairs = zip(old.operations, new.operations, strict=True)
        new.operations = [twin for each, twin in pairs if each not in eliminated]
        footprints |= {copy.operation(o): footprints[o] for o in old.operations if o in footprints}
    front = Block(copy.label(head, "doubt"), head.pc)
    ways = [Block(copy.label(head, name), head.pc) for name in ("plain", "front")]
    for block, target in zip(ways, (head, copy.blocks[head]), strict=True):
        block.terminator = Terminator("jump", edges=(Edge(target, [*way.arguments]),))
    edges = tuple(Edge(block, []) for block in ways)
    front.terminator = Terminator("branch", (), (doubt,), edges=edges)
    way.block, way.arguments = front, []
    place = body.blocks.index(copy.blocks[head])
    body.blocks[place:place] = [front, *ways]
