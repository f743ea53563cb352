# SPDX-License-Identifier: Apache-2.0
"""Ranges of a launch's groups, run by a kernel for their sizes.

The last group of a launch may have fewer members than the others. It is put off: the record has it,
so it is a range of its own, for which there is another kernel.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Mapping

from ferryvm.backend import BackendError
from ferryvm.ir.member.size import Leaf, LeafKind, members_of
from ferryvm.ir.member.value_range import MOST_GROUPS
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.object import LENGTH_OFFSET
from ferryvm.isa.type import I64, WORD_BYTES, signed
from ferryvm.item_range import RangeOutcome, RangeRunner
from ferryvm.machine.launch import put_off
from ferryvm.machine.state import Machine
from ferryvm.residency import Residency
from ferryvm_backends.opencl.group.slice import DoubtError, GroupSlices
from ferryvm_backends.opencl.item.bound import is_short
from ferryvm_backends.opencl.item.range import ItemRanges

_MOST_SIZES = 8
"""Kernels for different sizes of groups."""

Sizes = Mapping[Leaf, int]


class GroupRanges(RangeRunner):
    """Runs groups as work-groups of a device."""

    is_paced = takes_one = True

    def __init__(
        self,
        where: str,
        leaves: tuple[Leaf, ...],
        arguments: int,
        make: Callable[[Sizes, bool], GroupSlices],
    ) -> None:
        """`arguments`: words that items share; `make`: makes the runner for some sizes, which is
        exact if that is wanted, see `ferryvm_backends.opencl.group.text.group_text`. Raises
        BackendError."""
        self._where, self._leaves, self._arguments, self._make = where, leaves, arguments, make
        self._made: dict[tuple[tuple[int, ...], bool], GroupSlices | BackendError] = {}
        self._exact: set[tuple[int, ...]] = set()
        """The sizes for which the exact runner has been needed."""
        self._last: GroupSlices | None = None
        """The runner that ran last: it has the memory with the results."""
        if not leaves:
            with contextlib.suppress(BackendError):  # it is the reason when the launch begins
                self._runner_for((), False)

    @property
    def where(self) -> str:
        return f"work-groups of {self._where}"

    @property
    def runners(self) -> list[ItemRanges]:
        """The runners for all sizes that there have been."""
        return [each for each in self._made.values() if isinstance(each, ItemRanges)]

    @property
    def deferral(self) -> Hashable | None:  # type: ignore[override]  # known when there is a runner
        return next((runner.deferral for runner in self.runners), None)

    def run(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        return self._run(machine, first, limit, lambda runner, end: runner.run(machine, first, end))

    def run_deferred(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        try:
            return self._run(
                machine, first, limit, lambda runner, end: runner.run_deferred(machine, first, end)
            )
        except BackendError:  # also those of earlier launches, if no runner has begun
            self.runners[0].drop_results(machine)
            raise

    def run_resident(
        self, machine: Machine, first: int, limit: int, residency: Residency
    ) -> RangeOutcome:
        def run(runner: GroupSlices, end: int) -> RangeOutcome:
            return runner.run_resident(machine, first, end, residency)

        return self._run(machine, first, limit, run, is_resident=True)

    def write_back(self, machine: Machine) -> None:
        if self._last is not None:
            self._last.write_back(machine)

    def _run(
        self,
        machine: Machine,
        first: int,
        limit: int,
        run: Callable[[GroupSlices, int], RangeOutcome],
        is_resident: bool = False,
    ) -> RangeOutcome:
        """Run the groups from `first` on that have as many members as that; the others are put off,
        or run in order where there have been too many sizes."""
        if limit > MOST_GROUPS:
            raise BackendError(f"a launch has {limit} groups; the most is {MOST_GROUPS}")
        control, stack = machine.control, machine.memory.stack
        end = control.sp - LAUNCH_WORDS
        words = [int(word) for word in stack[end - self._arguments : end]]
        values, end = self._values(machine, first, words), limit
        for leaf in self._leaves:
            if leaf.of is not None:
                count, size = self._counts(machine, leaf.of, words)
                end = min(end, max(first + 1, count // size if size > 0 else 0))
        runner = self._runner_for(values, values in self._exact)
        if not is_short(runner.bounds, words):
            self._exact.add(values)
            runner = self._runner_for(values, True)
        if end < limit:
            if is_resident:  # all of them are wanted at once
                return RangeOutcome(0, 0, None)
            if self._may_have(self._values(machine, end, words)):
                put_off(machine, end, limit)
                limit = end
        try:
            return run(runner.up_to(end), limit)
        except DoubtError:
            self._exact.add(values)
        return run(self._runner_for(values, True).up_to(end), limit)

    def _runner_for(self, values: tuple[int, ...], is_exact: bool) -> GroupSlices:
        found = self._made.get((values, is_exact))
        if found is None:
            if not self._may_have(values):
                raise BackendError(f"its groups have had more than {_MOST_SIZES} sizes")
            try:
                found = self._make(dict(zip(self._leaves, values, strict=True)), is_exact)
            except BackendError as error:
                found = error
            self._made[values, is_exact] = found
        if isinstance(found, BackendError):
            raise found
        self._last = found
        return found

    def _may_have(self, values: tuple[int, ...]) -> bool:
        """True if a runner for some values is there, or may be made."""
        return len({sizes for sizes, _ in self._made} | {values}) <= _MOST_SIZES

    def _values(self, machine: Machine, group: int, words: list[int]) -> tuple[int, ...]:
        """The values of leaves for a group."""
        found = []
        for leaf in self._leaves:
            if leaf.of is None:
                found.append(self._value(machine, leaf, words))
            else:
                found.append(members_of(group, *self._counts(machine, leaf.of, words)))
        return tuple(found)

    def _counts(
        self, machine: Machine, leaves: tuple[Leaf, Leaf], words: list[int]
    ) -> tuple[int, int]:
        """The number of items of all groups, and that of a group."""
        count, size = (signed(I64, self._value(machine, leaf, words)) for leaf in leaves)
        return count, size

    @staticmethod
    def _value(machine: Machine, leaf: Leaf, words: list[int]) -> int:
        match leaf.kind:
            case LeafKind.STATIC:
                return int(machine.memory.statics[leaf.number])
            case LeafKind.ARGUMENT:
                return words[leaf.number]
            case LeafKind.LENGTH:
                reference = words[leaf.number]
                if not reference:
                    return 0
                assert machine.objects is not None  # the program has launches
                place = (reference + LENGTH_OFFSET) // WORD_BYTES
                return int(machine.objects.space.words[place])
            case LeafKind.MEMBERS:
                raise ValueError("it depends on the group")
