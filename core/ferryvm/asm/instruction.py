# SPDX-License-Identifier: Apache-2.0
"""An instruction that is read token by token, with any operand and any fault.

`ferryvm.asm.recognition` reads the frequent ones in a fraction of the time.
"""

from __future__ import annotations

from ferryvm.asm import literal
from ferryvm.asm.classic import MNEMONICS as CLASSIC
from ferryvm.asm.function import PendingFunction
from ferryvm.asm.location import Locations
from ferryvm.asm.source import StatementFault, Token, near
from ferryvm.asm.statement import Statement, literal_of, unsigned_of
from ferryvm.asm.type_name import TYPED
from ferryvm.isa import BY_MNEMONIC, Immediate, Instruction

_JUMP = BY_MNEMONIC["jump"].opcode

_NUMBERED = {Immediate.LOCAL, Immediate.STATIC}
"""Immediates whose operand is a name or a number."""

NAMED = _NUMBERED | {
    *(Immediate.TARGET, Immediate.FUNCTION, Immediate.ITEM, Immediate.HOST),
    Immediate.TAG,
}
"""Immediates whose operand is a name, or can be one."""


def instruction_of(head: Token) -> Instruction:
    """The instruction whose mnemonic a token is."""
    row = BY_MNEMONIC.get(head.text)
    if row is None:
        hint = near(head.text, BY_MNEMONIC)
        if head.text in CLASSIC:
            hint = "; the classic form cannot be mixed with this one"
        raise StatementFault(head, f"no instruction {head.text!r}{hint}")
    return row


def append_instruction(
    function: PendingFunction, row: Instruction, statement: Statement, locations: Locations
) -> None:
    """Read the operands of an instruction, and append it to the code of its function."""
    code, kind = function.code, row.immediate
    pc = len(code.opcodes)
    number = 0
    labels: list[Token] = []
    if kind.literal is not None:
        number = literal_of(kind.literal, statement.next(f"an {kind.value}"))
    elif kind is Immediate.SIGNATURE:
        code.relocations.append((pc, statement.signature()[0]))
    elif kind is Immediate.OFFSET:
        number = unsigned_of(statement.next(kind.value), 32) if statement.peek() else 0
    elif kind is Immediate.RESULTS:
        number = len(function.signature.results)
        if statement.peek():
            number = unsigned_of(statement.next(kind.value), 32)
    elif kind is Immediate.LABELS:
        expected = "one label or more, the last one for any other index"
        labels = [statement.next(expected), *statement.rest()]
        number = len(labels) - 1
    elif kind in TYPED:
        number = statement.immediate_of(kind, statement.next(f"a {kind.value}"))
    elif kind in NAMED:
        article = "a" if kind is not Immediate.LOCAL else "the name or number of a"
        what = "local" if kind is Immediate.LOCAL else kind.value
        token = statement.next(f"{article} {what}")
        if kind in _NUMBERED and literal.integer_like(token.text):
            number = unsigned_of(token, 32)
        else:
            function.references.append((pc, token.text, token))
    locations.locate(code, statement.head)
    code.opcodes.append(row.opcode)
    code.immediates.append(function.encoded(row, number))
    for token in labels:
        function.references.append((len(code.opcodes), token.text, token))
        code.opcodes.append(_JUMP)
        code.immediates.append(0)
