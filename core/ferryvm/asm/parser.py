# SPDX-License-Identifier: Apache-2.0
"""Assembly text to a listing: docs/assembly.md is the manual.

    text ──lines──> statements ──> pending instructions ──resolve──> Listing
                    (literals are read here)   (names are looked up here)

Names may be used before they are declared, so they are looked up after the last line. A faulty
statement is reported and left out; reading goes on with the next.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterator

from ferryvm.asm import literal
from ferryvm.asm.classic import MNEMONICS as CLASSIC
from ferryvm.asm.source import Source, StatementFault, Token, near
from ferryvm.asm.statement import (
    TYPES,
    Statement,
    literal_of,
    name_of,
    reading,
    type_of,
    unsigned_of,
)
from ferryvm.errors import Position
from ferryvm.isa import BY_MNEMONIC, Immediate, Instruction, Type
from ferryvm.listing import ClauseListing, FunctionListing, Label, Line, Listing, Operand
from ferryvm.program import Data, HostImport, Signature, Static, Tag

_DATA_BITS = {"i8": 8, "i16": 16}
"""Item types that only data knows; the four value types are the others."""

_NAMED = {
    Immediate.LOCAL,
    Immediate.STATIC,
    Immediate.TARGET,
    Immediate.FUNCTION,
    Immediate.HOST,
    Immediate.LABELS,
}
"""Immediates whose operand is a name, or can be one."""


@dataclasses.dataclass(frozen=True)
class _Pending:
    """An instruction whose names are still to be looked up."""

    row: Instruction
    operand: Operand
    names: tuple[Token, ...]
    position: Position | None


@dataclasses.dataclass(frozen=True)
class _PendingClause:
    """A clause whose names are still to be looked up."""

    tag: Token | None
    places: tuple[Token, Token, Token]
    """Start, end, handler."""
    depth: int
    record: bool


@dataclasses.dataclass
class _Function:
    listing: FunctionListing
    locals: dict[str, int] = dataclasses.field(default_factory=dict)
    """Numbers of the parameters and locals that have names."""
    local_count: int = 0
    """Parameters and locals so far."""
    types: list[Type] = dataclasses.field(default_factory=list)
    """Types of the locals."""
    labels: dict[str, Token] = dataclasses.field(default_factory=dict)
    items: list[Label | _Pending] = dataclasses.field(default_factory=list)
    clauses: list[_PendingClause] = dataclasses.field(default_factory=list)


class Parser:
    """One text in the modern form on its way to a listing."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.listing = Listing()
        self.functions: dict[str, tuple[Token, _Function]] = {}
        self.order: list[_Function] = []
        self.current: _Function | None = None
        self.statics: dict[str, list[int]] = {}
        self.hosts: dict[str, Token] = {}
        self.tags: dict[str, Token] = {}
        self.exports: dict[str, tuple[Token, Token]] = {}
        """Token of the name and of the function, by name."""
        self.table: list[Token] = []
        self.data: list[tuple[int, bytearray]] = []
        self.signatures: list[Signature] = []
        self.files: dict[int, str] = {}
        self.location: Position | None = None
        self.is_self_located = True
        self.directives: dict[str, Callable[[Statement], None]] = {
            ".function": self._function,
            ".local": self._local,
            ".static": self._static,
            ".host": self._host,
            ".export": self._export,
            ".tag": self._tag,
            ".catch": self._catch,
            ".catch_all": self._catch,
            ".catch_record": self._catch,
            ".table": self._table,
            ".data": self._data,
            ".bytes": self._bytes,
            ".signature": self._extra_signature,
            ".file": self._file,
            ".loc": self._loc,
        }

    def parse(self) -> Listing:
        """The listing; raises SourceError with every fault."""
        for number in range(1, len(self.source.lines) + 1):
            try:
                self._statement(self.source.tokens(number))
            except StatementFault as fault:
                self.source.fault(fault.token, fault.message)
        self._resolve()
        if not self.order and not self.source.diagnostics:
            self.source.fault(Token("", 1, 1), "no function: a program starts with .function main")
        self.source.check()
        return self.listing

    # --- statements -------------------------------------------------------------------------

    def _statement(self, tokens: list[Token]) -> None:
        start = 0
        while start < len(tokens) and tokens[start].text.startswith(":"):
            self._label(tokens[start])
            start += 1
        if start == len(tokens):
            return
        head = tokens[start]
        statement = Statement(head, tokens[start + 1 :])
        if head.text.startswith("."):
            directive = self.directives.get(head.text)
            if directive is None:
                hint = near(head.text, self.directives)
                allowed = ", ".join(self.directives)
                raise StatementFault(head, f"no directive {head.text!r}{hint} (known: {allowed})")
            directive(statement)
        else:
            self._instruction(statement)
        statement.finish()

    def _inside(self, head: Token) -> _Function:
        if self.current is None:
            raise StatementFault(
                head, f"{head.text} stands outside a function; begin one with .function"
            )
        return self.current

    def _label(self, token: Token) -> None:
        function = self._inside(token)
        name = name_of(dataclasses.replace(token, text=token.text[1:]))
        if name in function.labels:
            first = self.source.position(function.labels[name])
            raise StatementFault(token, f"label {name!r} is already at {first}")
        function.labels[name] = token
        function.items.append(Label(name))

    def _instruction(self, statement: Statement) -> None:
        head = statement.head
        row = BY_MNEMONIC.get(head.text)
        if row is None:
            hint = near(head.text, BY_MNEMONIC)
            if head.text in CLASSIC:
                hint = "; the classic form cannot be mixed with this one"
            raise StatementFault(head, f"no instruction {head.text!r}{hint}")
        function = self._inside(head)
        operand: Operand = None
        names: tuple[Token, ...] = ()
        kind = row.immediate
        if kind.literal is not None:
            operand = literal_of(kind.literal, statement.next(f"an {kind.value}"))
        elif kind is Immediate.SIGNATURE:
            operand = statement.signature()[0]
        elif kind is Immediate.OFFSET:
            operand = unsigned_of(statement.next(kind.value), 32) if statement.peek() else 0
        elif kind is Immediate.RESULTS:
            results = len(function.listing.signature.results)
            operand = unsigned_of(statement.next(kind.value), 32) if statement.peek() else results
        elif kind is Immediate.LABELS:
            names = (
                statement.next("one label or more, the last one for any other index"),
                *statement.rest(),
            )
        elif kind in _NAMED:
            article = "a" if kind is not Immediate.LOCAL else "the name or number of a"
            what = "local" if kind is Immediate.LOCAL else kind.value
            names = (statement.next(f"{article} {what}"),)
        position = self.location
        if self.is_self_located:
            position = self.source.position(head)
        function.items.append(_Pending(row, operand, names, position))

    # --- directives -------------------------------------------------------------------------

    def _function(self, statement: Statement) -> None:
        token = statement.next("a name")
        name = name_of(token)
        function = _Function(FunctionListing(name))
        # It is there from now on, or a fault in the rest would cause others below.
        self.current = function
        self.order.append(function)
        first, _ = self.functions.setdefault(name, (token, function))
        if first is not token:
            raise StatementFault(
                token, f"function {name!r} is already at {self.source.position(first)}"
            )
        if statement.peek():
            function.listing.signature, names = statement.signature()
            function.local_count = len(names)
            for number, parameter in enumerate(names):
                self._declare_local(function, parameter, number)

    def _declare_local(self, function: _Function, token: Token | None, number: int) -> None:
        if token is None:
            return
        name = name_of(token)
        if name in function.locals:
            raise StatementFault(token, f"this function has already a local {name!r}")
        function.locals[name] = number

    def _local(self, statement: Statement) -> None:
        function = self._inside(statement.head)
        while True:
            token = statement.next("a type, or a name and a type")
            name = None if token.text in TYPES else token
            type_ = type_of(token if name is None else statement.next("a type after the name"))
            self._declare_local(function, name, function.local_count)
            function.types.append(type_)
            function.local_count += 1
            if not statement.peek():
                return

    def _static(self, statement: Statement) -> None:
        name = name_of(statement.next("a name"))
        self.statics.setdefault(name, []).append(len(self.listing.statics))
        type_ = type_of(statement.next("a type after the name"))
        bits = 0
        if statement.accept("="):
            bits = literal_of(type_, statement.next(f"an {type_} literal after ="))
        self.listing.statics.append(Static(name, type_, bits))

    def _host(self, statement: Statement) -> None:
        token = statement.next("a name")
        name = name_of(token)
        first = self.hosts.setdefault(name, token)
        if first is not token:
            raise StatementFault(
                token, f"host import {name!r} is already at {self.source.position(first)}"
            )
        signature = statement.signature()[0] if statement.peek() else Signature()
        self.listing.hosts.append(HostImport(name, signature))

    def _export(self, statement: Statement) -> None:
        function = statement.next("a function")
        token = function
        if statement.accept("as"):
            token = statement.next("a name after as")
        name = name_of(token)
        first, _ = self.exports.setdefault(name, (token, function))
        if first is not token:
            raise StatementFault(
                token, f"export {name!r} is already at {self.source.position(first)}"
            )

    def _tag(self, statement: Statement) -> None:
        token = statement.next("a name")
        name = name_of(token)
        first = self.tags.setdefault(name, token)
        if first is not token:
            raise StatementFault(token, f"tag {name!r} is already at {self.source.position(first)}")
        types = tuple(type_of(value) for value in statement.rest())
        self.listing.tags.append(Tag(name, types))

    def _catch(self, statement: Statement) -> None:
        head = statement.head
        function = self._inside(head)
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
        clause = _PendingClause(tag, (start, end, handler), depth, head.text == ".catch_record")
        function.clauses.append(clause)

    def _table(self, statement: Statement) -> None:
        self.table.append(statement.next("one function or more"))
        self.table.extend(statement.rest())

    def _data(self, statement: Statement) -> None:
        address = unsigned_of(statement.next("an address"), 64)
        self.data.append((address, bytearray()))
        self._data_items(statement)

    def _bytes(self, statement: Statement) -> None:
        if not self.data:
            raise StatementFault(
                statement.head, ".bytes goes on after a .data, and there is none above it"
            )
        self._data_items(statement)

    def _data_items(self, statement: Statement) -> None:
        content = self.data[-1][1]
        kind: Token | None = None
        for token in statement.rest():
            if token.text.startswith('"'):
                with reading(token):
                    content += literal.string_bytes(token.text)
            elif token.text in TYPES or token.text in _DATA_BITS:
                kind = token
            elif kind is None:
                raise StatementFault(
                    token,
                    f"expected a string, or one of "
                    f"{', '.join([*_DATA_BITS, *TYPES])}; found {token.text!r}",
                )
            elif kind.text in TYPES:
                type_ = TYPES[kind.text]
                content += literal_of(type_, token).to_bytes(type_.bits // 8, "little")
            else:
                width = _DATA_BITS[kind.text]
                with reading(token):
                    bits = literal.integer_bits(width, kind.text, token.text)
                content += bits.to_bytes(width // 8, "little")

    def _extra_signature(self, statement: Statement) -> None:
        self.signatures.append(statement.signature()[0])

    def _file(self, statement: Statement) -> None:
        token = statement.next("a number")
        number = unsigned_of(token, 32)
        if number in self.files:
            raise StatementFault(token, f"file {number} is already {self.files[number]!r}")
        self.files[number] = name_of(statement.next("a file's name in quotes"))

    def _loc(self, statement: Statement) -> None:
        expected = "a file's number and a line, or none, or self"
        token = statement.next(expected)
        self.is_self_located = token.text == "self"
        self.location = None
        if token.text in ("self", "none"):
            return
        number = unsigned_of(token, 32)
        if number not in self.files:
            known = ", ".join(map(str, self.files)) or "none"
            raise StatementFault(token, f"no .file has number {number} (known: {known})")
        line = unsigned_of(statement.next("a line after the file"), 32)
        column = unsigned_of(statement.next("a column"), 32) if statement.peek() else 1
        self.location = Position(self.files[number], line, column)

    # --- names ------------------------------------------------------------------------------

    def _resolve(self) -> None:
        """Look up every name and fill in the listing."""
        listing = self.listing
        listing.extra_signatures = tuple(self.signatures)
        listing.data = [Data(address, bytes(content)) for address, content in self.data]
        for token in self.table:
            with self._collecting():
                listing.table.append(self._known(token, "function", self.functions))
        for name, (_, token) in self.exports.items():
            with self._collecting():
                listing.exports[name] = self._known(token, "function", self.functions)
        for function in self.order:
            function.listing.locals = tuple(function.types)
            listing.functions.append(function.listing)
            for item in function.items:
                if isinstance(item, Label):
                    function.listing.items.append(item)
                else:
                    with self._collecting():
                        line = Line(item.row, self._operand(function, item), item.position)
                        function.listing.items.append(line)
            for clause in function.clauses:
                with self._collecting():
                    function.listing.clauses.append(self._clause(function, clause))

    @contextlib.contextmanager
    def _collecting(self) -> Iterator[None]:
        try:
            yield
        except StatementFault as fault:
            self.source.fault(fault.token, fault.message)

    def _clause(self, function: _Function, pending: _PendingClause) -> ClauseListing:
        tag = None if pending.tag is None else self._known(pending.tag, "tag", self.tags)
        start, end, handler = (
            self._known(token, "label", function.labels) for token in pending.places
        )
        return ClauseListing(start, end, handler, pending.depth, tag, pending.record)

    def _operand(self, function: _Function, pending: _Pending) -> Operand:
        if not pending.names:
            return pending.operand
        kind, token = pending.row.immediate, pending.names[0]
        if kind is Immediate.LABELS:
            return tuple(self._known(name, "label", function.labels) for name in pending.names)
        if kind is Immediate.TARGET:
            return self._known(token, "label", function.labels)
        if kind is Immediate.FUNCTION:
            return self._known(token, "function", self.functions)
        if kind is Immediate.HOST:
            return self._known(token, "host import", self.hosts)
        if literal.integer_like(token.text):
            return unsigned_of(token, 32)
        if kind is Immediate.LOCAL:
            return function.locals[self._known(token, "local", function.locals)]
        numbers = self.statics[self._known(token, "static", self.statics)]
        if len(numbers) > 1:
            raise StatementFault(
                token,
                f"{len(numbers)} statics are named {token.text!r}: say by number "
                f"which one is meant ({', '.join(map(str, numbers))})",
            )
        return numbers[0]

    def _known(self, token: Token, kind: str, known: Collection[str]) -> str:
        if token.text.startswith(":"):
            raise StatementFault(
                token,
                f"expected a {kind}, found {token.text!r}; "
                f"as an operand it stands without the colon",
            )
        name = name_of(token)
        if name not in known:
            raise StatementFault(token, f"no {kind} {name!r}{near(name, known)}")
        return name
