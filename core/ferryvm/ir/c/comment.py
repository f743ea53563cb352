# SPDX-License-Identifier: Apache-2.0
"""Comments on the origin of a piece of C: instructions, and their source positions."""

from __future__ import annotations

import itertools
import textwrap

from ferryvm.ir.c.context import Describe, harmless
from ferryvm.isa import INSTRUCTIONS, Immediate
from ferryvm.isa.frame import number_of, return_counts
from ferryvm.isa.type import format_value
from ferryvm.verify import Verified

__all__ = ["describer"]

_WIDTH = 88


def describer(verified: Verified) -> Describe:
    """A function that describes instructions of a program: `primes.skiff:4: 12 local.get 0, 13
    i64.eqz`."""
    program = verified.program

    def where(pc: int) -> str:
        position = program.source_map.position(pc)
        return f"{position.file}:{position.line}: " if position else ""

    def describe(first: int, last: int) -> list[str]:
        lines = []
        for place, pcs in itertools.groupby(range(first, last + 1), where):
            text = place + ", ".join(_instruction(verified, pc) for pc in pcs)
            lines += textwrap.wrap(harmless(text), _WIDTH, break_long_words=False)
        return lines

    return describe


def _instruction(verified: Verified, pc: int) -> str:
    program = verified.program
    row = INSTRUCTIONS[program.code.opcodes[pc]]
    immediate = program.code.immediates[pc]
    if row.immediate is Immediate.NONE:
        return f"{pc} {row.mnemonic}"
    if row.immediate is Immediate.LOCAL:
        return f"{pc} {row.mnemonic} {number_of(immediate, verified.parameters(pc))}"
    if row.immediate is Immediate.RESULTS:
        return f"{pc} {row.mnemonic} {return_counts(immediate)[1]}"
    t = row.immediate.literal
    return f"{pc} {row.mnemonic} {format_value(t, immediate) if t else immediate}"
