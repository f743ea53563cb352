# SPDX-License-Identifier: Apache-2.0
"""The call graph of a program, and the functions that are part of a recursion.

An indirect call can reach all functions of the table with its signature, and no others: the
instruction itself checks it.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterable

from ferryvm.flowgraph.component import components
from ferryvm.isa import Flow
from ferryvm.region.code import FLOWS, code
from ferryvm.region.memo import memoised
from ferryvm.verify import Verified

LONG = 100
"""Calls that a call makes, directly or not, from which on it is long."""

_CALLS = frozenset(
    opcode for opcode, flow in enumerate(FLOWS) if flow in (Flow.CALL, Flow.CALL_INDIRECT)
)


class CallGraph:
    """The calls of a program, all functions at once. It holds no reference to the program."""

    def __init__(self, verified: Verified) -> None:
        program, listing = verified.program, code(verified)
        self._opcodes, self._immediates = listing.opcodes, listing.immediates
        self.by_signature: dict[int, tuple[int, ...]] = {}
        """Functions of the table by the number of their signature, each once."""
        for function in sorted(set(program.table)):
            signature = program.functions[function].signature
            self.by_signature[signature] = (*self.by_signature.get(signature, ()), function)
        found: list[set[int]] = [set() for _ in program.functions]
        self._sites: list[list[int]] = [[] for _ in program.functions]
        for pc, opcode in enumerate(self._opcodes):
            if opcode in _CALLS and verified.is_reachable(pc):
                found[verified.owner(pc)].update(self.targets(pc))
                self._sites[verified.owner(pc)].append(pc)
        self.direct: tuple[tuple[int, ...], ...] = tuple(tuple(sorted(each)) for each in found)
        """By function, those that it calls itself, in rising order."""

    def targets(self, pc: int) -> tuple[int, ...]:
        """Functions that the instruction at `pc` can call."""
        flow, immediate = FLOWS[self._opcodes[pc]], self._immediates[pc]
        if flow is Flow.CALL:
            return (immediate,)
        return self.by_signature.get(immediate, ()) if flow is Flow.CALL_INDIRECT else ()

    def reached(
        self, functions: Iterable[int], outside: Collection[int] = frozenset()
    ) -> tuple[int, ...]:
        """These functions and all that they call, directly or not, in rising order, but for what is
        `outside` and what only that calls."""
        found = {f for f in functions if f not in outside}
        worklist = list(found)
        while worklist:
            called = self.direct[worklist.pop()]
            new = [f for f in called if f not in found and f not in outside]
            found.update(new)
            worklist += new
        return tuple(sorted(found))

    @functools.cached_property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """All functions; those that call each other in circles together, callees before callers."""
        return tuple(components(self.direct))

    @functools.cached_property
    def recursive(self) -> frozenset[int]:
        """Functions that can come to run again, by calls, while they are running."""
        return frozenset(
            function
            for members in self.components
            for function in members
            if len(members) > 1 or function in self.direct[function]
        )

    @functools.cached_property
    def long(self) -> frozenset[int]:
        """Functions of which a call can make many calls, each of which makes few.

        Neither loops nor recursion are needed to run for years: forty functions will do, each of
        which calls the next one twice.
        """
        made: dict[int, int] = {}
        found = set()
        for function in itertools.chain.from_iterable(self.components):  # callees come first
            made[function] = sum(
                1 + max((made.get(callee, 0) for callee in self.targets(pc)), default=0)
                for pc in self._sites[function]
            )
            if made[function] >= LONG:
                found.add(function)
                made[function] = 0
        return frozenset(found)


@memoised
def call_graph(verified: Verified) -> CallGraph:
    """The calls of a program; the same object each time."""
    return CallGraph(verified)
