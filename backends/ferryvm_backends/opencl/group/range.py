# SPDX-License-Identifier: Apache-2.0
"""Ranges of a launch's groups, run by a kernel for their sizes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Mapping

from ferryvm.backend import BackendError
from ferryvm.ir.member.size import Leaf, LeafKind
from ferryvm.ir.member.value_range import MOST_GROUPS
from ferryvm.isa.launch import LAUNCH_WORDS
from ferryvm.isa.object import LENGTH_OFFSET
from ferryvm.isa.type import WORD_BYTES
from ferryvm.item_range import RangeOutcome, RangeRunner
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
        return self._run(machine, limit, lambda runner: runner.run(machine, first, limit))

    def run_deferred(self, machine: Machine, first: int, limit: int) -> RangeOutcome:
        try:
            return self._run(
                machine, limit, lambda runner: runner.run_deferred(machine, first, limit)
            )
        except BackendError:  # also those of earlier launches, if no runner has begun
            self.runners[0].drop_results(machine)
            raise

    def run_resident(
        self, machine: Machine, first: int, limit: int, residency: Residency
    ) -> RangeOutcome:
        return self._run(
            machine, limit, lambda runner: runner.run_resident(machine, first, limit, residency)
        )

    def write_back(self, machine: Machine) -> None:
        if self._last is not None:
            self._last.write_back(machine)

    def _run(
        self, machine: Machine, limit: int, run: Callable[[GroupSlices], RangeOutcome]
    ) -> RangeOutcome:
        if limit > MOST_GROUPS:
            raise BackendError(f"a launch has {limit} groups; the most is {MOST_GROUPS}")
        control, stack = machine.control, machine.memory.stack
        end = control.sp - LAUNCH_WORDS
        words = [int(word) for word in stack[end - self._arguments : end]]
        values = tuple(self._value(machine, leaf, words) for leaf in self._leaves)
        runner = self._runner_for(values, values in self._exact)
        if not is_short(runner.bounds, words):
            self._exact.add(values)
            runner = self._runner_for(values, True)
        try:
            return run(runner)
        except DoubtError:
            self._exact.add(values)
        return run(self._runner_for(values, True))

    def _runner_for(self, values: tuple[int, ...], is_exact: bool) -> GroupSlices:
        found = self._made.get((values, is_exact))
        if found is None:
            if len({sizes for sizes, _ in self._made} | {values}) > _MOST_SIZES:
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
