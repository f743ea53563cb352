# SPDX-License-Identifier: Apache-2.0
"""Barriers in code: the functions whose calls may come to one of the launch around them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ferryvm.isa import BY_MNEMONIC
from ferryvm.region.memo import memoised
from ferryvm.verify import Verified

BARRIER = BY_MNEMONIC["launch.barrier"].opcode
_ITEM, _CALL = (BY_MNEMONIC[name].opcode for name in ("launch.item", "call"))


@memoised
def waiting(verified: Verified) -> Mapping[int, int]:
    """The functions that may come to a barrier of the launch whose items call them: by function the
    pc of such a barrier. One in a launch of their own is none."""
    from ferryvm.region.call import call_graph

    opcodes = verified.program.code.opcodes
    found = dict[int, int]()
    for pc, opcode in enumerate(opcodes):
        if opcode == BARRIER and verified.is_reachable(pc):
            found.setdefault(verified.owner(pc), pc)
    if not found:
        return found
    graph, callers = call_graph(verified), defaultdict[int, set[int]](set)
    for pc, opcode in enumerate(opcodes):
        is_item = opcode == _CALL and pc and opcodes[pc - 1] == _ITEM
        if verified.is_reachable(pc) and not is_item:
            for target in graph.targets(pc):
                callers[target].add(verified.owner(pc))
    worklist = list(found)
    while worklist:
        function = worklist.pop()
        for caller in callers[function] - found.keys():
            found[caller] = found[function]
            worklist.append(caller)
    return found
