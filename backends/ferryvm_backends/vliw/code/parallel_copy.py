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
    """Moves after which each register has what the value beside it was in front of them."""
    left = [(to, value) for to, value in wanted if to is not value]
    while left:
        read = [value for _, value in left]
        ready = next((each for each in left if each[0] not in read), None)
        if ready is None:  # they go round
            to = left[0][0]
            saved = code.register(to.kind)
            yield MachineOperation("move", (), (to,), saved)
            left = [(a, saved if b is to else b) for a, b in left]
            ready = left[0]
        left.remove(ready)
        yield MachineOperation("move", (), (ready[1],), ready[0])
