# SPDX-License-Identifier: Apache-2.0
"""The instruction table: how an instruction is declared, and the list of all of them.

An instruction is one declaration: mnemonic, immediate, stack effect, one line of documentation and
its meaning. Everything else (interpreters, disassembler, verifier, docs/isa.md) is derived from the
declaration, so nothing else has to be kept in step with it.

    @instruction("i64.add", pops=(I64, I64), pushes=(I64,))
    def add(m, a, b):
        \"\"\"Sum modulo 2^64.\"\"\"
        return m.add(I64, a, b)

A meaning receives the emitter, then the immediate if there is one, then the operands, deepest
first; it returns what is pushed. Opcodes follow the order of declaration; the pinned list in
tests/isa/opcodes.txt makes a renumbering visible.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any

from ferryvm import record
from ferryvm.isa.type import Reference, Type


class Immediate(enum.Enum):
    """The kind of an instruction's only immediate, which determines its check and its text."""

    NONE = "none"
    I32 = "i32 literal"
    I64 = "i64 literal"
    F32 = "f32 literal"
    F64 = "f64 literal"
    LOCAL = "local number, parameters first"
    """In code, a word of the frame: see `ferryvm.isa.frame`."""
    STATIC = "static number"
    OFFSET = "unsigned 32-bit byte offset"
    TARGET = "label"
    FUNCTION = "function"
    SIGNATURE = "signature number"
    HOST = "host import"
    TAG = "tag"
    TYPE = "reference type"
    FIELDS = "struct type whose fields are the operands"
    STRUCT = "struct type"
    ARRAY = "type of arrays of references"
    FIELD = "field of a struct type"
    """In code, bytes from the struct to the field, and above bit 31 the number of the type."""
    LABELS = "labels, the last one for any other index"
    ITEM = "function of a launch's items"
    RESULTS = "number of results"
    """In code, with the number of parameters: see `ferryvm.isa.frame`."""

    @property
    def literal(self) -> Type | None:
        """The type of a literal immediate, None for other kinds."""
        return _LITERALS.get(self)


_LITERALS = {
    Immediate.I32: Type.I32,
    Immediate.I64: Type.I64,
    Immediate.F32: Type.F32,
    Immediate.F64: Type.F64,
}


class Flow(enum.Enum):
    """The successors of an instruction (traps apart)."""

    NEXT = "next"
    JUMP = "jump"
    BRANCH = "branch"
    TABLE = "table"
    CALL = "call"
    CALL_INDIRECT = "call_indirect"
    HOST = "host"
    THROW = "throw"
    RETURN = "return"
    STOP = "stop"


@record.dataclass(frozen=True)
class Variable:
    """A type that the instruction leaves open; equal names in one instruction are equal types."""

    name: str

    def __str__(self) -> str:
        return self.name


T, U = Variable("t"), Variable("u")
REF = Variable("ref")
"""A reference type that the immediate settles."""

Operand = Type | Reference | Variable
Meaning = Callable[..., Any]


@record.dataclass(frozen=True)
class Instruction:
    """One row of the table."""

    opcode: int
    mnemonic: str
    immediate: Immediate
    pops: tuple[Operand, ...]
    pushes: tuple[Operand, ...]
    flow: Flow
    chapter: str
    summary: str
    meaning: Meaning = record.field(compare=False, repr=False)

    @property
    def has_references(self) -> bool:
        """True if an operand or result is a reference wherever the instruction stands."""
        operands = (*self.pops, *self.pushes)
        is_item = self.immediate is Immediate.ITEM  # of a launch, which is below the arguments
        return is_item or any(isinstance(t, Reference) or t is REF for t in operands)

    @property
    def effect(self) -> str:
        """The stack effect in the usual notation, deepest operand first: `( i64 i64 -- i64 )`."""
        if self.flow in (Flow.CALL, Flow.CALL_INDIRECT):
            index = " i32" if self.flow is Flow.CALL_INDIRECT else ""
            return f"( arguments{index} -- results )"
        if self.flow is Flow.HOST:
            return "( arguments -- results )"
        if self.immediate is Immediate.TAG:
            return "( values -- )"
        if self.flow is Flow.RETURN:
            return "( results -- )"
        if self.immediate is Immediate.FIELDS:
            return "( fields -- ref )"
        if self.immediate is Immediate.ITEM:
            return "( arguments i64 i64 launch -- arguments i64 i64 launch i64 arguments )"
        left = " ".join(str(t) for t in self.pops)
        right = " ".join(str(t) for t in self.pushes)
        return f"( {left} -- {right} )".replace("  ", " ")


INSTRUCTIONS: list[Instruction] = []
"""The whole table, indexed by opcode."""

BY_MNEMONIC: dict[str, Instruction] = {}
"""The same instructions by mnemonic."""


def instruction(
    mnemonic: str,
    immediate: Immediate = Immediate.NONE,
    pops: tuple[Operand, ...] = (),
    pushes: tuple[Operand, ...] = (),
    flow: Flow = Flow.NEXT,
) -> Callable[[Meaning], Meaning]:
    """Declare an instruction whose meaning is the decorated function."""

    def declare(meaning: Meaning) -> Meaning:
        if mnemonic in BY_MNEMONIC:
            raise ValueError(f"instruction {mnemonic} is declared twice")
        row = Instruction(
            len(INSTRUCTIONS),
            mnemonic,
            immediate,
            pops,
            pushes,
            flow,
            meaning.__module__.rpartition(".")[2],
            " ".join((meaning.__doc__ or "").split()),
            meaning,
        )
        if not row.summary:
            raise ValueError(f"instruction {mnemonic} has no documentation")
        INSTRUCTIONS.append(row)
        BY_MNEMONIC[mnemonic] = row
        return meaning

    return declare


@functools.cache
def fingerprint() -> int:
    """CRC-32 of the mnemonics in opcode order. It differs between tables, so that images of another
    table are refused."""
    import zlib  # only for images

    return zlib.crc32("\n".join(row.mnemonic for row in INSTRUCTIONS).encode())
