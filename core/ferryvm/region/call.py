# SPDX-License-Identifier: Apache-2.0
"""The call graph of a program, and the functions that are part of a recursion.

An indirect call can reach all functions of the table with its signature, and no others, since the
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
"""The number of direct and indirect calls of one call from which on it counts as long."""

_CALLS = frozenset(
    opcode for opcode, flow in enumerate(FLOWS) if flow in (Flow.CALL, Flow.CALL_INDIRECT)
)


class CallGraph:
    """The calls of a program, all functions at once. It has no reference to the program."""

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
        """For each function the functions that it calls directly, in rising order."""

    def targets(self, pc: int) -> tuple[int, ...]:
        """Functions that the instruction at `pc` can call."""
        flow, immediate = FLOWS[self._opcodes[pc]], self._immediates[pc]
        if flow is Flow.CALL:
            return (immediate,)
        return self.by_signature.get(immediate, ()) if flow is Flow.CALL_INDIRECT else ()

    def reached(
        self, functions: Iterable[int], outside: Collection[int] = frozenset()
    ) -> tuple[int, ...]:
        """These functions and all that they call, directly or not, in rising order, except
        `outside` and functions that only those call."""
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
        """All functions; mutually recursive ones together, callees before callers."""
        return tuple(components(self.direct))

    @functools.cached_property
    def recursive(self) -> frozenset[int]:
        """Functions that can be active twice at once, through recursion."""
        return frozenset(
            function
            for members in self.components
            for function in members
            if len(members) > 1 or function in self.direct[function]
        )

    @functools.cached_property
    def long(self) -> frozenset[int]:
        """Functions of which a call can make very many calls in total.

        Neither loops nor recursion are needed to run for years: forty functions suffice, each of
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
    """The call graph of a program; the same object each time."""
    return CallGraph(verified)
