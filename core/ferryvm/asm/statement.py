# SPDX-License-Identifier: Apache-2.0
"""One statement of assembly, read from left to right.

Every reader takes the next token, or raises a StatementFault with the expected token.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ferryvm.asm import literal
from ferryvm.asm.literal import LiteralFault
from ferryvm.asm.source import Source, StatementFault, Token
from ferryvm.asm.type_name import TypeFault, TypeNames
from ferryvm.isa import Immediate, Type
from ferryvm.isa.type import ValueType
from ferryvm.program import Signature

TYPES = {str(type_): type_ for type_ in Type}
"""Types of items of data."""


@contextlib.contextmanager
def reading(token: Token) -> Iterator[None]:
    """A context in which a wrong literal is a fault of `token`."""
    try:
        yield
    except LiteralFault as fault:
        raise StatementFault(token, str(fault)) from None


def name_of(token: Token) -> str:
    """The name that a token denotes."""
    with reading(token):
        return literal.name(token.text)


def declare(source: Source, what: str, known: dict[str, Token], token: Token) -> str:
    """The name that a token declares, which is added to the known ones of its kind, `what`.

    Raises a StatementFault with the position of an earlier declaration if there is one.
    """
    name = name_of(token)
    first = known.setdefault(name, token)
    if first is not token:
        raise StatementFault(token, f"{what} {name!r} is already at {source.position(first)}")
    return name


def literal_of(type_: Type, token: Token) -> int:
    """The bit pattern of a literal of type `type_`."""
    with reading(token):
        return literal.literal_bits(type_, token.text)


def unsigned_of(token: Token, bits: int) -> int:
    """The number that a token denotes, below 2^`bits`."""
    with reading(token):
        value = literal.integer(token.text)
    if value is None:
        raise StatementFault(token, f"expected a number, found {token.text!r}")
    if not 0 <= value < 1 << bits:
        raise StatementFault(
            token, f"{token.text} is out of range: 0 to {(1 << bits) - 1} are allowed"
        )
    return value


class Statement:
    """A mnemonic or directive, `head`, and its operands not read yet."""

    def __init__(self, head: Token, operands: list[Token], types: TypeNames) -> None:
        self.head, self.operands, self.types, self.at = head, operands, types, 0

    def is_type(self, token: Token) -> bool:
        """True if a token names a type."""
        return self.types.find(token.text) is not None

    def type_of(self, token: Token) -> ValueType:
        """The type that a token names."""
        found = self.types.find(token.text)
        if found is None:
            raise StatementFault(token, self.types.no_type(token.text))
        return found

    def immediate_of(self, kind: Immediate, token: Token) -> int:
        """The immediate that a token denotes: a type or a field, of a kind of `TYPED`."""
        try:
            return self.types.immediate(kind, token.text)
        except TypeFault as fault:
            raise StatementFault(token, str(fault)) from None

    def peek(self) -> str:
        """The text of the next token; empty at the end."""
        return self.operands[self.at].text if self.at < len(self.operands) else ""

    def next(self, expected: str) -> Token:
        """The next token."""
        if self.at == len(self.operands):
            found = "nothing more" if self.at else "nothing"
            raise StatementFault(self.head, f"{self.head.text} takes {expected}, found {found}")
        self.at += 1
        return self.operands[self.at - 1]

    def accept(self, text: str) -> bool:
        """True if the next token is `text`; it is consumed then."""
        if self.peek() != text:
            return False
        self.at += 1
        return True

    def rest(self) -> list[Token]:
        """All tokens not read yet, which are consumed."""
        rest, self.at = self.operands[self.at :], len(self.operands)
        return rest

    def finish(self) -> None:
        """Raise a StatementFault if tokens are left."""
        if self.at < len(self.operands):
            extra = self.operands[self.at]
            count = f"{self.at} operand{'' if self.at == 1 else 's'}" if self.at else "no operand"
            raise StatementFault(
                extra, f"{self.head.text} takes {count} here, found also {extra.text!r}"
            )

    def signature(self) -> tuple[Signature, list[Token | None]]:
        """`( [name] type ... ) -> ( type ... )` and the tokens of the names.

        The parameters, or the arrow and the results, can be left out.
        """
        types: list[ValueType] = []
        names: list[Token | None] = []
        if self.peek() != "->":
            opening = self.next("a signature like (i64 f64) -> (i64)")
            if opening.text != "(":
                raise StatementFault(
                    opening, f"expected a signature like (i64 f64) -> (i64), found {opening.text!r}"
                )
            while not self.accept(")"):
                token = self.next("a type or )")
                name = None
                if not self.is_type(token) and self.peek() not in (")", ""):
                    name = token
                    name_of(name)
                    token = self.next("a type after the parameter's name")
                names.append(name)
                types.append(self.type_of(token))
        return Signature(tuple(types), self._results()), names

    def _results(self) -> tuple[ValueType, ...]:
        if not self.accept("->"):
            return ()
        token = self.next("a result type after ->")
        if token.text != "(":
            return (self.type_of(token),)
        results = []
        while not self.accept(")"):
            results.append(self.type_of(self.next("a type or )")))
        return tuple(results)
