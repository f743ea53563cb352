# SPDX-License-Identifier: Apache-2.0
"""Marked scopes: the code between an `enter_jit` and its `leave_jit`.

The marks are ordinary instructions and need not pair up. A scope contains the instructions that
control can reach from its `enter_jit`, in the function, before a `leave_jit` closes it; an
`enter_jit` on the path opens a nested scope, which the next `leave_jit` closes first. If paths of
different depth join, the smallest depth counts.
"""

from __future__ import annotations

import collections

from ferryvm.isa import BY_MNEMONIC
from ferryvm.region.code import code
from ferryvm.region.graph import graph
from ferryvm.region.loop_head import ENTER, scope_marks
from ferryvm.region.memo import memoised
from ferryvm.verify import Verified

_LEAVE = BY_MNEMONIC["leave_jit"].opcode

_DEEPEST = 100
"""The largest depth of nested scopes that is tracked, so that unpaired marks cost no time."""


def scope_entries(verified: Verified, function: int) -> tuple[int, ...]:
    """pcs of the function's `enter_jit` instructions that its control-flow graph has, in rising
    order.

    An unreachable handler is not in the graph, though the verifier follows each clause.
    """
    return _entries(verified).get(function, ())


@memoised
def _entries(verified: Verified) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for pc in scope_marks(verified):
        function = verified.owner(pc)
        if graph(verified, function).has(pc):
            found.setdefault(function, []).append(pc)
    return {function: tuple(pcs) for function, pcs in found.items()}


def scope_pcs(verified: Verified, enter: int) -> frozenset[int]:
    """Instructions of the scope of an `enter_jit`, including that one, without the `leave_jit` that
    closes it."""
    listing = code(verified)
    opcodes, successors = listing.opcodes, listing.successors
    open_before = {enter: 0}
    worklist = collections.deque([enter])
    while worklist:
        pc = worklist.popleft()
        depth, opcode = open_before[pc], opcodes[pc]
        if opcode == ENTER:
            depth = min(depth + 1, _DEEPEST)
        elif opcode == _LEAVE:
            depth -= 1
        if depth == 0:
            continue
        for to in successors(pc):
            if depth < open_before.get(to, _DEEPEST + 1):
                open_before[to] = depth
                worklist.append(to)
    return frozenset(pc for pc, depth in open_before.items() if depth != 1 or opcodes[pc] != _LEAVE)


@memoised
def marked_pcs(verified: Verified, function: int) -> frozenset[int]:
    """Instructions of a function that are in a scope."""
    found: set[int] = set()
    for enter in scope_entries(verified, function):
        if enter not in found:  # otherwise its scope is in the one around it
            found |= scope_pcs(verified, enter)
    return frozenset(found)
