# SPDX-License-Identifier: Apache-2.0
"""The bundles that can follow one another, with the results and branches in flight.

Results that are not yet written back and branches that are not yet taken are known before a program
runs: they depend on the bundles before alone. So a *state* is a bundle with such a *context*, and
each state has few successors. States with one successor and one predecessor form a *run*: control
that enters its first state reaches its last one.
"""

from __future__ import annotations

import graphlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ferryvm_backends.vliw.code.operation import BRANCHES, EXITS
from ferryvm_backends.vliw.code.program import Bundle, Program, Slot

_STOP = -1
"""As a branch's target: the program stops."""
_DYNAMIC = -2
"""The target is a value."""


class InFlightResult(NamedTuple):
    """A result in flight."""

    unit: int
    remaining: int
    """Cycles until it is written back; 0: at the start of this one."""
    file: int
    number: int
    """The register to which it is written back; -1: none."""


class InFlightBranch(NamedTuple):
    """A branch in flight."""

    target: int
    remaining: int
    """Cycles until control continues there; 0: after this one."""
    is_exit: bool


class Context(NamedTuple):
    """Results and branches in flight when a bundle is fetched."""

    flights: tuple[InFlightResult, ...] = ()
    branches: tuple[InFlightBranch, ...] = ()
    """The next one first."""

    def branching(self, target: int, remaining: int, is_exit: bool) -> Context:
        """With one more branch in flight."""
        return Context(self.flights, (*self.branches, InFlightBranch(target, remaining, is_exit)))


class FetchState(NamedTuple):
    """A bundle, and the operations in flight when it is fetched."""

    at: int
    context: Context


class Next(NamedTuple):
    """The successors of a state: one, several, or none."""

    states: tuple[FetchState, ...]
    is_dynamic: bool = False
    """The next one is a value: a bundle's number."""


class Onward(NamedTuple):
    """The successors of a state."""

    next: Next
    """If no exit is taken in it."""
    branch: Slot | None = None
    """The branch that it issues, if that has an effect."""
    taken: Next | None = None
    """If an exit is taken."""

    @property
    def states(self) -> tuple[FetchState, ...]:
        """The states that follow, as often as they do."""
        return self.next.states + (() if self.taken is None else self.taken.states)


class FetchGraph:
    """All states of a program."""

    def __init__(self, program: Program) -> None:
        self.program, self.machine = program, program.machine
        self.first = FetchState(0, Context())
        self.onward: dict[FetchState, Onward] = {}
        worklist = [self.first]
        while worklist:
            state = worklist.pop()
            if state not in self.onward:
                found = self.onward[state] = self._onward(state)
                worklist += found.states

    def is_cyclic(self) -> bool:
        """True if a state can come again."""
        following = {state: found.states for state, found in self.onward.items()}
        try:
            graphlib.TopologicalSorter(following).prepare()
        except graphlib.CycleError:
            return True
        return False

    def runs(self) -> Iterator[list[FetchState]]:
        """The states, as runs."""
        entries = Counter(each for found in self.onward.values() for each in found.states)
        entries[self.first] += 2
        inside: dict[FetchState, FetchState] = {}
        """The unique successor of a state, if the state is its unique predecessor."""
        for state, found in self.onward.items():
            if found.taken is None and not found.next.is_dynamic and found.next.states:
                (after,) = found.next.states
                if entries[after] == 1:
                    inside[state] = after
        later = {*inside.values()}
        for state in self.onward:
            if state not in later:
                run = [state]
                while run[-1] in inside:
                    run.append(inside[run[-1]])
                yield run

    def _onward(self, state: FetchState) -> Onward:
        bundle = self.program.bundles[state.at]
        context = Context(self._flights(bundle, state.context), state.context.branches)
        slot = next((slot for slot in bundle if slot.name in BRANCHES), None)
        if slot is None or any(each.is_exit for each in context.branches):
            return Onward(self._next(state.at, context))
        delay = self.machine.delay_slots
        target = _STOP if slot.target is None else slot.target
        if slot.name == "jump_to":
            target = _DYNAMIC
        if slot.again is not None:
            onward = context.branching(slot.again, delay, is_exit=False)
        elif slot.name in EXITS:
            onward = context
        else:
            onward = context.branching(target, delay, is_exit=False)
        taken = None
        if slot.target is not None and slot.name in EXITS:
            taken = self._next(state.at, context.branching(target, delay, is_exit=True))
        return Onward(self._next(state.at, onward), slot, taken)

    def _flights(self, bundle: Bundle, context: Context) -> tuple[InFlightResult, ...]:
        """Results in flight one cycle later."""
        found = [
            InFlightResult(each.unit, each.remaining - 1, each.file, each.number)
            for each in context.flights
            if each.remaining > 0
        ]
        for slot in bundle:
            if slot.has_result:
                file, number = (-1, -1)
                if slot.written is not None:
                    file, number = slot.written.file, slot.written.number
                found.append(
                    InFlightResult(slot.unit, self.program.timing(slot).latency - 1, file, number)
                )
        return tuple(sorted(found))

    def _next(self, at: int, context: Context) -> Next:
        """The successors in the next cycle."""
        branches = tuple(
            InFlightBranch(b.target, b.remaining - 1, b.is_exit) for b in context.branches
        )
        if not branches or branches[0].remaining >= 0:
            return Next((FetchState(at + 1, Context(context.flights, branches)),))
        there = Context(context.flights, branches[1:])
        if branches[0].target == _STOP:
            return Next(())
        if branches[0].target == _DYNAMIC:
            return Next(
                tuple(FetchState(to, there) for to in self.program.returns), is_dynamic=True
            )
        return Next((FetchState(branches[0].target, there),))
