# SPDX-License-Identifier: Apache-2.0
"""Items of which the words that all share decide if they leave, together with their numbers.

So a range that none has left has none that leaves if it runs again with the same words, whatever
elements are by then: nobody has to look at the head of the slots, or to retain elements.
"""

from __future__ import annotations

from ferryvm.ir.graph import Block, Module
from ferryvm.ir.member.boundary import depends_on_load, leading_to, passed_values

_CHECKS = frozenset({"trap_if", "guard"})


def are_exits_foreseen(module: Module, function: int, polls: bool) -> bool:
    """True if no exit of the items' function depends on an element, nor the way to one. `polls`:
    loops are polled, so that an interrupt ends them."""
    body = module.functions[function]
    if len(module.functions) > 1:
        return False
    passed, exits = passed_values(body), set[Block]()
    for block in body.blocks:
        for operation in block.operations:
            if operation.state is None or (operation.name == "poll" and not polls):
                continue
            if operation.name == "check_entry" and not operation.static[0]:
                continue  # items look at no interrupt there
            if operation.name not in _CHECKS or depends_on_load(operation.arguments, passed):
                return False
            exits.add(block)
        if block.end.state is not None:
            exits.add(block)
    return not any(
        len(block.end.edges) > 1 and depends_on_load(block.end.arguments, passed)
        for block in leading_to(exits, body)
    )
