# SPDX-License-Identifier: Apache-2.0
"""Assembly text to a listing: docs/assembly.md is the manual.

    text ──lines──> statements ──> code with names ──resolve──> Listing
                    (literals are read here)   (names are looked up here)

Names may be used before they are declared, so they are looked up after the last line. A faulty
statement is reported and skipped; parsing continues with the next. This module reads lines and
hands each statement to the module of its idea: `recognition` or `instruction`, and for directives
`declaration`, `function`, `symbol`, `data` and `location`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ferryvm.asm import literal
from ferryvm.asm.data import DataSection
from ferryvm.asm.declaration import TypeDeclarations
from ferryvm.asm.function import PendingFunction
from ferryvm.asm.instruction import append_instruction, instruction_of
from ferryvm.asm.location import Locations
from ferryvm.asm.recognition import Recogniser, Run, recognised_label
from ferryvm.asm.resolution import Resolver
from ferryvm.asm.source import Source, StatementFault, Token, near
from ferryvm.asm.statement import Statement, name_of
from ferryvm.asm.symbol import Symbols
from ferryvm.asm.type_name import TypeNames
from ferryvm.listing import Listing

Directives = dict[str, Callable[[Statement], None]]
"""Readers of directives, by the word with which one begins."""


class Parser:
    """The parser of one text in the modern form."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.listing = Listing()
        self.types = TypeNames()
        self.functions: list[PendingFunction] = []
        self.current: PendingFunction | None = None
        self.recogniser = Recogniser(self.types)
        self.declarations = TypeDeclarations(source, self.types)
        self.symbols = Symbols(source, self.listing)
        self.data = DataSection()
        self.locations = Locations(source)

    def parse(self) -> Listing:
        """The listing; raises SourceError with every fault."""
        listing = self.listing
        self.declarations.number()
        self._read(self._directives())
        self.declarations.check()
        listing.types = self.types.declared
        listing.data = self.data.contents()
        listing.extra_signatures = tuple(self.symbols.signatures)
        Resolver(self.source, self.symbols).resolve(listing, self.functions)
        if not self.functions and not self.source.diagnostics:
            message = "no function: a program starts with its first one, .function NAME"
            self.source.fault(Token("", 1, 1), message)
        self.source.check()
        return listing

    def _directives(self) -> Directives:
        """The readers of directives. The parser does not hold them: in a cycle of references all
        that it made would stay until a collection."""
        declarations, symbols = self.declarations, self.symbols
        return {
            ".function": self._function,
            ".struct": declarations.read_struct,
            ".array": declarations.read_array,
            ".local": self._local,
            ".static": symbols.read_static,
            ".host": symbols.read_host,
            ".export": symbols.read_export,
            ".tag": symbols.read_tag,
            ".catch": self._catch,
            ".catch_all": self._catch,
            ".catch_record": self._catch,
            ".table": symbols.read_table,
            ".data": self.data.read_data,
            ".bytes": self.data.read_bytes,
            ".signature": symbols.read_signature,
            ".file": self.locations.read_file,
            ".loc": self._loc,
        }

    def _read(self, directives: Directives) -> None:
        """Read every line."""
        recogniser, locations = self.recogniser, self.locations
        known = recogniser.known
        function, run = self.current, Run()
        add, add_line = run.instructions.append, run.lines.append
        for number, line in enumerate(self.source.lines, start=1):
            found = known.get(line)
            if found is None and function is not None:
                text = line.strip()
                if text[:1] == ":" and recognised_label(function, text, number, len(run.lines)):
                    continue
                found = recogniser.recognised(function, line)
            if found is not None and function is not None:
                add(found)
                add_line(number)
                continue
            if function is not None:
                run.end(function, self.source.file, locations.is_self_located)
            with self.source.collecting():
                self._statement(self.source.tokens(number), directives)
            function = self.current
        if function is not None:
            run.end(function, self.source.file, locations.is_self_located)

    def _statement(self, tokens: list[Token], directives: Directives) -> None:
        start = 0
        while start < len(tokens) and tokens[start].text.startswith(":"):
            self._label(tokens[start])
            start += 1
        if start == len(tokens):
            return
        head = tokens[start]
        statement = Statement(head, tokens[start + 1 :], self.types)
        if head.text.startswith("."):
            directive = directives.get(head.text)
            if directive is None:
                hint = near(head.text, directives)
                allowed = ", ".join(directives)
                raise StatementFault(head, f"no directive {head.text!r}{hint} (known: {allowed})")
            directive(statement)
        else:
            row = instruction_of(head)
            append_instruction(self._inside(head), row, statement, self.locations)
        statement.finish()

    def _inside(self, head: Token) -> PendingFunction:
        if self.current is None:
            raise StatementFault(
                head, f"{head.text} stands outside a function; begin one with .function"
            )
        return self.current

    def _label(self, token: Token) -> None:
        function = self._inside(token)
        name = name_of(dataclasses.replace(token, text=token.text[1:]))
        if name in function.labels:
            first = self._label_token(function.labels[name], name)
            where = self.source.position(first)
            raise StatementFault(token, f"label {name!r} is already at {where}")
        function.add_label(name, token.line)

    def _label_token(self, line: int, name: str) -> Token:
        """The token of a label on a line."""
        tokens = (token for token in self.source.tokens(line) if token.text.startswith(":"))
        return next(token for token in tokens if literal.name(token.text[1:]) == name)

    def _function(self, statement: Statement) -> None:
        token = statement.next("a name")
        function = PendingFunction(name_of(token))
        # Record it first: otherwise a fault in the rest would cause more faults below.
        self.current = function
        self.functions.append(function)
        self.recogniser.begin_function()
        self.locations.begin(function.code)
        self.symbols.add_function(token)
        if statement.peek():
            function.read_signature(statement)

    def _local(self, statement: Statement) -> None:
        self._inside(statement.head).read_locals(statement)

    def _catch(self, statement: Statement) -> None:
        self._inside(statement.head).read_clause(statement)

    def _loc(self, statement: Statement) -> None:
        self.locations.read_location(statement)
        if self.current is not None:
            self.locations.begin(self.current.code)
