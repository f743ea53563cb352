# SPDX-License-Identifier: Apache-2.0
"""Refusals: the stable codes, and the error that carries one.

`structure` and `type_flow` decide what is wrong; this module only words it.
"""

from __future__ import annotations

import enum

from ferryvm.errors import FerryError, Position
from ferryvm.isa import INSTRUCTIONS
from ferryvm.program import Program


class VerifyCode(enum.Enum):
    """The reason that a program is refused. The value is the stable code that tools can match."""

    NO_CODE = "V01"
    """The program has no functions or no code."""
    FUNCTION_ENTRY = "V02"
    """A function starts outside the code."""
    FUNCTION_SIGNATURE = "V03"
    """A signature does not exist, is declared twice, has too many parameters or results, or names
    of parameters do not fit it."""
    MAIN_SIGNATURE = "V04"
    """Function 0 takes parameters or has results."""
    STATIC_BITS = "V05"
    """There are too many statics, or an initial value has bits outside its type."""
    TABLE_ENTRY = "V06"
    """The function table names a function that does not exist."""
    DATA_RANGE = "V07"
    """Initial data is past the largest address, or overlaps."""
    FUNCTION_LOCALS = "V08"
    """A function has too many locals."""
    OPCODE = "V10"
    """No instruction has this opcode, or reserved bytes are not zero."""
    IMMEDIATE = "V11"
    """The immediate is out of range for its kind."""
    LOCAL = "V12"
    """The function has no such local."""
    JUMP_TABLE = "V13"
    """A jump table is not followed by its jumps."""
    FALLS_OFF_END = "V20"
    """Control can run past the end of the code."""
    SHARED_CODE = "V21"
    """An instruction is reached from two functions."""
    RETURN_IN_MAIN = "V22"
    """Function 0 returns; it must end with halt."""
    RESULTS = "V23"
    """A return's number of results or of parameters is not the function's."""
    UNDERFLOW = "V30"
    """An operand is missing."""
    OPERAND_TYPE = "V31"
    """An operand has another type than the instruction takes."""
    JOIN = "V33"
    """Two paths to an instruction have different operand stacks."""
    STATIC_TYPES = "V34"
    """static.load or static.store in a program whose statics are not all i64."""
    ITEM_SIGNATURE = "V35"
    """The function of a launch's items does not take an item first, an i64, or has results."""
    EXPORT = "V40"
    """Two exports have one name, or one has a function that does not exist."""
    TAG = "V41"
    """Two tags have one name, or one has too many values or wrong ones."""
    CLAUSE = "V42"
    """A clause has a range, handler, or tag that does not exist."""
    CLAUSE_NESTING = "V43"
    """Ranges of clauses cross, or an outer clause comes before an inner one."""
    CLAUSE_DEPTH = "V44"
    """Fewer operands are below a throwing instruction than the clause keeps for its handler."""

    DECLARED_TYPE = "V45"
    """A declared type has a bad name, parent, field or element, or there are too many."""
    UNKNOWN_TYPE = "V46"
    """A reference type is not one of the program's."""


class VerifyError(FerryError):
    """A program was refused: `code`, and `pc` of the instruction (None if there is none)."""

    def __init__(
        self, code: VerifyCode, message: str, pc: int | None, position: Position | None
    ) -> None:
        self.code, self.pc, self.position = code, pc, position
        where = "" if pc is None else f" at pc {pc}"
        source = f" ({position})" if position else ""
        super().__init__(f"{code.value}{where}{source}: {message}")


def refusal(program: Program, code: VerifyCode, message: str, pc: int | None = None) -> VerifyError:
    """The error to raise; it names the instruction, and its source position if `pc` has one."""
    if pc is not None and program.code.opcodes[pc] < len(INSTRUCTIONS):
        message = f"{INSTRUCTIONS[program.code.opcodes[pc]].mnemonic}: {message}"
    position = program.source_map.position(pc) if pc is not None else None
    return VerifyError(code, message, pc, position)
