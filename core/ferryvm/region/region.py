# SPDX-License-Identifier: Apache-2.0
"""Regions: the parts of a program that can be compiled, each with one entry.

    program                    main with all that it calls
      work                     a function
        work/scope.1           from an enter_jit to its leave_jit
        work/nest.2            an outermost loop that has loops inside
          work/loop.2.1        a loop in it; an outermost one without loops inside is work/loop.1

Names consist of the function's name and of numbers in the order of pcs, so they are the same in
every run of the same program: policies, reports and caches can refer to them.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Iterable, Iterator

from ferryvm.errors import UnknownNameError
from ferryvm.region.call import call_graph
from ferryvm.region.code import PROGRAM, code
from ferryvm.region.graph import Graph, graph
from ferryvm.region.launch import is_launch_head
from ferryvm.region.loop import Loop
from ferryvm.region.scope import marked_pcs, scope_entries, scope_pcs
from ferryvm.verify import Verified

__all__ = ["Region", "RegionKind", "candidates", "region", "regions"]


class RegionKind(enum.Enum):
    """The kind of a region; the value is its name in policies."""

    SCOPE = "scope"
    """The code between an `enter_jit` and its `leave_jit`."""
    LOOP = "loop"
    """A natural loop, with the loops inside it if there are any."""
    NEST = "nest"
    """An outermost loop that has loops inside, with them."""
    LAUNCH = "launch"
    """The loop that runs the items of a launch."""
    FUNCTION = "function"
    """A function; it calls others as functions."""
    PROGRAM = "program"
    """The first function with all that it calls."""


@dataclasses.dataclass(frozen=True)
class Region:
    """A part of a program with one entry. Equal parts compare equal."""

    verified: Verified = dataclasses.field(repr=False)
    kind: RegionKind
    function: int
    """Number of the function that it is in; of the first one for a program."""
    entry: int
    """pc of the instruction at which it is entered: of the `enter_jit` for a scope."""
    loop: Loop | None = dataclasses.field(default=None, repr=False)
    """The loop that it is, for a loop or a nest."""
    number: int = 0
    """The number of the scope in the function, from 1; 0 for other kinds."""
    outside: frozenset[int] = frozenset()
    """Functions that are not compiled with it: it leaves at calls of them."""

    @functools.cached_property
    def name(self) -> str:
        """Its unique name in the program: `work/loop.2.1`.

        A function whose own name is ambiguous has its number in it: `work#3`.
        """
        function = code(self.verified).names[self.function]
        if self.loop is not None:
            return f"{function}/{self.kind.value}.{self.loop.path}"
        if self.kind is RegionKind.SCOPE:
            return f"{function}/scope.{self.number}"
        return PROGRAM if self.kind is RegionKind.PROGRAM else function

    @property
    def graph(self) -> Graph:
        """The control-flow graph of its function."""
        return graph(self.verified, self.function)

    @functools.cached_property
    def functions(self) -> tuple[int, ...]:
        """Functions whose code is in it: its own; all that the first one calls for a program."""
        if self.kind is RegionKind.PROGRAM:
            return call_graph(self.verified).reached([self.function], self.outside)
        return (self.function,)

    @functools.cached_property
    def pcs(self) -> frozenset[int]:
        """Its instructions, without those of callees (except for a program)."""
        if self.kind is RegionKind.SCOPE:
            return self.within(scope_pcs(self.verified, self.entry))
        graphs = [graph(self.verified, function) for function in self.functions]
        return self.within(
            pc
            for each in graphs
            for first in (self.loop.blocks if self.loop else each.blocks)
            for pc in range(first, each.blocks[first].last + 1)
        )

    def within(self, pcs: Iterable[int]) -> frozenset[int]:
        """The instructions among `pcs` that call no function outside."""
        if not self.outside:
            return frozenset(pcs)
        calls = call_graph(self.verified)
        return frozenset(pc for pc in pcs if self.outside.isdisjoint(calls.targets(pc)))

    def pcs_of(self, function: int) -> frozenset[int]:
        """The instructions of a callee that are compiled."""
        blocks = graph(self.verified, function).blocks.values()
        return self.within(pc for b in blocks for pc in range(b.first, b.last + 1))

    @functools.cached_property
    def blocks(self) -> frozenset[int]:
        """First pcs of the blocks that have instructions in it; a scope may contain a part of a
        block."""
        if self.loop is not None:
            return self.loop.blocks
        if self.kind is RegionKind.SCOPE:
            own = self.graph
            return frozenset(own.block(pc).first for pc in self.pcs)
        graphs = [graph(self.verified, function) for function in self.functions]
        return frozenset(first for each in graphs for first in each.blocks)

    @functools.cached_property
    def callees(self) -> tuple[int, ...]:
        """Functions that it calls, directly or not, in rising order.

        An indirect call counts as calls of all functions of the table with its signature.
        """
        calls = call_graph(self.verified)
        if self.kind in (RegionKind.FUNCTION, RegionKind.PROGRAM):
            found: Iterable[int] = calls.direct[self.function]
        else:
            found = {callee for pc in self.pcs for callee in calls.targets(pc)}
        return calls.reached(found, self.outside)

    @functools.cached_property
    def marked(self) -> bool:
        """True if it contains a marked scope, is inside one, or is one."""
        if self.entry in marked_pcs(self.verified, self.function):
            return True
        return any(
            enter in self.pcs
            for function in self.functions
            for enter in scope_entries(self.verified, function)
        )

    def __str__(self) -> str:
        return self.name


def regions(verified: Verified) -> tuple[Region, ...]:
    """All regions: the program, then of each function the whole, its scopes, and its loops from
    the outside in."""
    return tuple(_regions(verified))


def region(verified: Verified, name: str) -> Region:
    """The region of that name; a nest can also be named as a loop.

    Raises UnknownNameError, which suggests the nearest name.
    """
    found = regions(verified)
    for each in found:
        if name == each.name or (each.loop is not None and name == each.loop.name):
            return each
    raise UnknownNameError("region", name, [each.name for each in found])


def candidates(verified: Verified, pc: int) -> tuple[Region, ...]:
    """Regions that can be compiled when `pc` got hot, in the order in which to try them.

    For the entry of a function the function; for the head of a loop the outermost loop around it,
    then the smaller ones, down to the loop itself, but the loop of a launch before those around it;
    for an `enter_jit` its scope. A pc that is
    several of these has all of them, in this order; any other pc has none.
    """
    function = verified.owner(pc)
    if function < 0:
        return ()
    own = graph(verified, function)
    found = [_function(verified, own)] if pc == own.entry else []
    around: list[Region] = []
    loop = own.heads.get(pc)
    while loop is not None:
        around.append(_loop(verified, own, loop))
        loop = loop.parent
    if around and around[0].kind is RegionKind.LAUNCH:
        found.append(around.pop(0))
    found += reversed(around)
    found += [scope for scope in _scopes(verified, function) if scope.entry == pc]
    return tuple(found)


def _regions(verified: Verified) -> Iterator[Region]:
    yield Region(verified, RegionKind.PROGRAM, 0, verified.program.functions[0].entry)
    for function in range(len(verified.program.functions)):
        own = graph(verified, function)
        yield _function(verified, own)
        yield from _scopes(verified, function)
        for loop in own.loops:
            yield _loop(verified, own, loop)


def _function(verified: Verified, own: Graph) -> Region:
    return Region(verified, RegionKind.FUNCTION, own.function, own.entry)


def _loop(verified: Verified, own: Graph, loop: Loop) -> Region:
    kind = RegionKind.LOOP
    if is_launch_head(verified.program, loop.head) and loop.loops == 1:
        kind = RegionKind.LAUNCH
    elif loop.parent is None and loop.loops > 1:
        kind = RegionKind.NEST
    return Region(verified, kind, own.function, loop.head, loop)


def _scopes(verified: Verified, function: int) -> Iterator[Region]:
    for number, enter in enumerate(scope_entries(verified, function), 1):
        yield Region(verified, RegionKind.SCOPE, function, enter, None, number)
