# SPDX-License-Identifier: Apache-2.0
"""Sequentialisation of parallel copies: moves, one after another, that set several registers at
once.

(Boissinot et al.: Revisiting Out-of-SSA Translation for Correctness, Code Quality and Efficiency,
CGO 2009.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ferryvm_backends.vliw.code.operation import MachineCode, MachineOperation, Operand, Register


def sequential_moves(
    code: MachineCode, wanted: Iterable[tuple[Register, Operand]]
) -> Iterator[MachineOperation]:
    """Moves in sequence that have the effect of a parallel copy: each register gets the old value
    of the one beside it."""
    remaining = [(to, value) for to, value in wanted if to is not value]
    while remaining:
        read = [value for _, value in remaining]
        ready = next((each for each in remaining if each[0] not in read), None)
        if ready is None:  # a cycle of registers
            to = remaining[0][0]
            saved = code.register(to.kind)
            yield MachineOperation("move", (), (to,), saved)
            remaining = [(a, saved if b is to else b) for a, b in remaining]
            ready = remaining[0]
        remaining.remove(ready)
        yield MachineOperation("move", (), (ready[1],), ready[0])
