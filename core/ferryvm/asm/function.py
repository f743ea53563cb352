# SPDX-License-Identifier: Apache-2.0
"""A function while its text is read. Its names are looked up after the last line of the text."""

from __future__ import annotations

import dataclasses

from ferryvm.asm.source import StatementFault, Token
from ferryvm.asm.statement import Statement, name_of, unsigned_of
from ferryvm.isa import Immediate, Instruction
from ferryvm.isa.frame import return_immediate, word_of
from ferryvm.isa.type import ValueType
from ferryvm.listing import FunctionCode
from ferryvm.program import Signature

_ALL_BITS = (1 << 64) - 1

NameReference = tuple[int, str, int | Token]
"""pc, a name as written, and its token, or the line whose last token it is."""


@dataclasses.dataclass(frozen=True)
class PendingClause:
    """A clause whose names are not resolved yet."""

    tag: Token | None
    places: tuple[Token, Token, Token]
    """Tokens of start, end, handler."""
    depth: int
    record: bool


@dataclasses.dataclass
class PendingFunction:
    """A function whose names are not resolved yet."""

    name: str
    code: FunctionCode = dataclasses.field(default_factory=FunctionCode)
    signature: Signature = dataclasses.field(default_factory=Signature)
    locals: dict[str, int] = dataclasses.field(default_factory=dict)
    """Numbers of the named parameters and locals."""
    local_count: int = 0
    """Parameters and locals so far."""
    parameters: tuple[str, ...] = ()
    """Names of the parameters, as a listing has them."""
    types: list[ValueType] = dataclasses.field(default_factory=list)
    """Types of the locals."""
    labels: dict[str, int] = dataclasses.field(default_factory=dict)
    """Lines of the labels."""
    clauses: list[PendingClause] = dataclasses.field(default_factory=list)
    references: list[NameReference] = dataclasses.field(default_factory=list)
    """Names that are not resolved yet."""

    def encoded(self, row: Instruction, number: int) -> int:
        """The immediate of an instruction in this function whose operand is a number."""
        if row.immediate is Immediate.LOCAL:
            return word_of(number, len(self.signature.parameters)) & _ALL_BITS
        if row.immediate is Immediate.RESULTS:
            return return_immediate(len(self.signature.parameters), number)
        return number

    def add_label(self, name: str, line: int, ahead: int = 0) -> None:
        """Place a new label before the next instruction, or behind `ahead` more ones."""
        self.labels[name] = line
        self.code.labels[name] = len(self.code.opcodes) + ahead

    def read_signature(self, statement: Statement) -> None:
        """Read the signature."""
        self.signature, names = statement.signature()
        self.local_count = len(names)
        for number, parameter in enumerate(names):
            self._name_local(parameter, number)
        if any(names):
            self.parameters = tuple(name_of(token) if token else "" for token in names)

    def read_locals(self, statement: Statement) -> None:
        """Read the types of locals, each with a name or without."""
        while True:
            token = statement.next("a type, or a name and a type")
            name = None if statement.is_type(token) else token
            type_ = statement.type_of(
                token if name is None else statement.next("a type after the name")
            )
            self._name_local(name, self.local_count)
            self.types.append(type_)
            self.local_count += 1
            if not statement.peek():
                return

    def _name_local(self, token: Token | None, number: int) -> None:
        if token is None:
            return
        name = name_of(token)
        if name in self.locals:
            raise StatementFault(token, f"this function has already a local {name!r}")
        self.locals[name] = number

    def read_clause(self, statement: Statement) -> None:
        """Read one clause: its tag, if it has one, its labels and its depth."""
        head = statement.head
        tag = statement.next("a tag") if head.text == ".catch" else None
        places = []
        for word in ("from", "to", "using"):
            form = f"{word} and a label, as in from START to END using HANDLER"
            token = statement.next(form)
            if token.text != word:
                raise StatementFault(token, f"expected {form}; found {token.text!r}")
            places.append(statement.next(f"a label after {word}"))
        depth = 0
        if statement.accept("depth"):
            depth = unsigned_of(statement.next("a number of operands after depth"), 32)
        start, end, handler = places
        clause = PendingClause(tag, (start, end, handler), depth, head.text == ".catch_record")
        self.clauses.append(clause)
