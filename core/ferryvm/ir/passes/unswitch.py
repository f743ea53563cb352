# SPDX-License-Identifier: Apache-2.0
"""Loop unswitching: split a loop whose checks depend on an invariant condition into two.

    preheader:  doubt?  ├─ yes ─> the original loop
                        └─ no  ─> a copy without the checks `trap_if all(p, doubt)`

For compilers whose optimiser does not itself unswitch the conditions that `range_check` hoists.
(Allen, Kennedy: Optimizing Compilers for Modern Architectures, 2001, section 9.7.) Only inner loops
are handled. Requires `code_motion`, for one entry into each loop; preserves effects and exits.
"""

from __future__ import annotations

from ferryvm.ir.footprint import Footprint
from ferryvm.ir.graph import Block, Body, Edge, Operation, Terminator, Value
from ferryvm.ir.loop.clone import LoopClone
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.passes.dead_code import remove_dead_code


def unswitch(
    body: Body, footprints: dict[Operation, Footprint] | None = None, least: int = 0
) -> int:
    """Unswitch loops whose checks depend on a doubt; the number of these loops.

    `footprints`: of accesses; receives those of their copies. `least`: loops of fewer operations
    are left as they are.
    """
    done: set[Block] = set()
    made = 0
    while (found := _next(body, done, least)) is not None:
        _split(body, *found, {} if footprints is None else footprints)
        made += 1
    if made:
        remove_dead_code(body)
    return made


def _next(body: Body, done: set[Block], least: int) -> tuple[Loop, Value] | None:
    """The next loop to unswitch, and the doubt."""
    for loop in find_loops(body):
        if loop.header in done or not loop.is_innermost:
            continue
        done.add(loop.header)
        if loop.entry is None or not loop.has_one_exit:
            continue
        if least and sum(1 for _ in loop.operations) < least:
            continue
        for operation in loop.operations:
            doubt = _doubt(operation, loop)
            if doubt is not None:
                return loop, doubt
    return None


def _doubt(operation: Operation, loop: Loop) -> Value | None:
    """The invariant part of the condition on which a check fails."""
    invariant = [each for each in _conjuncts(operation) if loop.is_invariant(each)]
    return invariant[0] if len(invariant) == 1 else None


def _conjuncts(operation: Operation) -> tuple[Value, ...]:
    """The operands of a conjunction that makes a check fail; none if its condition is not `all`."""
    p = operation.arguments[0] if operation.name == "trap_if" else None
    return p.arguments if isinstance(p, Operation) and p.name == "all" else ()


def _split(body: Body, loop: Loop, doubt: Value, footprints: dict[Operation, Footprint]) -> None:
    eliminated = {each for each in loop.operations if doubt in _conjuncts(each)}
    clone = LoopClone(body, loop, eliminated)
    footprints |= {
        clone.of(each): footprints[each] for each in loop.operations if each in footprints
    }
    first, original, preheader = (
        clone.new_block(name) for name in ("select", "original", "preheader")
    )
    edges = Edge(original, []), Edge(preheader, [])
    first.terminator = Terminator("branch", (), (doubt,), edges=edges)
    clone.select_version(first, original, preheader, [])
