# SPDX-License-Identifier: Apache-2.0
"""Simulation of a program by the simulator that takes less time in all.

Native code of a small program takes as long to make as the interpreter takes for some hundred
cycles. So a program without loops is interpreted until its runs have had that many cycles: then it
has cost at most twice as much as with the better choice. Metrics and final state are the same.
"""

from __future__ import annotations

from ferryvm.machine.control import ControlBlock
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.simulate import native
from ferryvm_backends.vliw.simulate.control_flow import FetchGraph
from ferryvm_backends.vliw.simulate.interpret import interpret
from ferryvm_backends.vliw.simulate.memory import Memory
from ferryvm_backends.vliw.simulate.metric import RunMetrics
from ferryvm_backends.vliw.simulate.native import NativeProgram

INTERPRETED = 600
"""Cycles of all runs of a program up to which it is interpreted: some 12 microseconds each, where
native code takes 5 milliseconds and more to make."""


MEDIUM = 2_000
"""Operations of a program past which its code is first made quickly: it takes 1.3 s of processor
time less for 5,000 operations, and a cycle 1.5 times as long."""
MANY = 20_000_000
"""Cycles of such a program after which its code is made well."""


class Simulation:
    """A program that can be run."""

    def __init__(self, program: Program, is_quick: bool = False) -> None:
        """`is_quick`: as for `NativeProgram`."""
        self._program, self._is_quick = program, is_quick
        self._paths = FetchGraph(program)
        self._left = INTERPRETED
        """Cycles that may still be interpreted."""
        self._native: NativeProgram | None = None
        size = sum(map(len, program.bundles))
        self._until_good = MANY if not is_quick and MEDIUM < size <= native.LARGE else 0
        """Cycles until its code is made well."""
        if self._paths.is_cyclic() or len(program.bundles) > INTERPRETED:
            self._native = self._translated()

    def _translated(self) -> NativeProgram:
        is_quick = self._is_quick or self._until_good > 0
        return NativeProgram(self._program, is_quick, self._paths)

    def run(self, memory: Memory, budget: int, control: ControlBlock | None = None) -> RunMetrics:
        """As `NativeProgram.run`."""
        if self._native is None:
            # Without loops a run fetches no bundle twice.
            if self._left >= len(self._program.bundles):
                is_over = control is not None and control.interrupt
                counts = interpret(self._program, memory, 0 if is_over else budget)
                self._left -= counts.cycles
                return counts
            self._native = self._translated()
        counts = self._native.run(memory, budget, control)
        if self._until_good > 0:
            self._until_good -= counts.cycles
            if self._until_good <= 0:
                self._native = self._translated()
        return counts
