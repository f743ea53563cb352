# SPDX-License-Identifier: Apache-2.0
"""Atomic updates in code, and those among them whose order matters.

Updates of one element by add, min, max, and, or commute: in any order the element is the same at
the end. What an update returns depends on the order, so items commute only if nobody uses it, and
an exchange never commutes.
"""

from __future__ import annotations

from collections.abc import Mapping

from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS
from ferryvm.isa.atomic import UPDATED, Update
from ferryvm.program import Program
from ferryvm.region.memo import memoised
from ferryvm.verify import Verified

_DROP = BY_MNEMONIC["drop"].opcode

_UPDATES: dict[int, Update | None] = {
    row.opcode: None for row in INSTRUCTIONS if row.chapter == "atomic"
}
"""The update of each instruction that is one; None for a comparison and exchange."""
for _element in UPDATED:
    for _update in Update:
        _row = BY_MNEMONIC[f"array.atomic_{_update.value}_{_element}"]
        _UPDATES[_row.opcode] = _update


def is_update(opcode: int) -> bool:
    """True for an instruction that updates an element atomically."""
    return opcode in _UPDATES


def commuting(program: Program, pc: int) -> Update | None:
    """The update of the instruction at `pc`, if others of its kind may come before or after it;
    None if its order matters."""
    update = _UPDATES[program.code.opcodes[pc]]
    if update is Update.EXCHANGE or pc + 1 >= len(program.code):
        return None
    return update if program.code.opcodes[pc + 1] == _DROP else None


@memoised
def ordered_updates(verified: Verified) -> Mapping[int, int]:
    """The first update whose order matters in each function that has one: pc by function."""
    program, found = verified.program, dict[int, int]()
    for pc, opcode in enumerate(program.code.opcodes):
        if opcode in _UPDATES and verified.is_reachable(pc) and commuting(program, pc) is None:
            found.setdefault(verified.owner(pc), pc)
    return found
