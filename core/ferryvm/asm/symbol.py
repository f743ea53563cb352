# SPDX-License-Identifier: Apache-2.0
"""The names of a program: functions, statics, host imports, tags and exports, and the table."""

from __future__ import annotations

from ferryvm.asm.source import Source, Token
from ferryvm.asm.statement import Statement, declare, literal_of, name_of
from ferryvm.isa import Type
from ferryvm.listing import Listing
from ferryvm.program import HostImport, Signature, Static, Tag


class Symbols:
    """The names that one text declares, with their tokens, and the functions that it names outside
    code. Statics, host imports and tags are complete when read: the listing gets them at once."""

    def __init__(self, source: Source, listing: Listing) -> None:
        self._source, self._listing = source, listing
        self.functions: dict[str, Token] = {}
        self.statics: dict[str, list[int]] = {}
        """Numbers of the statics of each name."""
        self.hosts: dict[str, Token] = {}
        self.tags: dict[str, Token] = {}
        self._exports: dict[str, Token] = {}
        self.exported: dict[str, Token] = {}
        """The function of each export, as written."""
        self.table: list[Token] = []
        """The functions of the table, as written."""
        self.signatures: list[Signature] = []
        """The signatures that stand alone."""

    def add_function(self, token: Token) -> None:
        """Declare a function."""
        declare(self._source, "function", self.functions, token)

    def read_static(self, statement: Statement) -> None:
        """Read a static: name, type and initial value."""
        name = name_of(statement.next("a name"))
        self.statics.setdefault(name, []).append(len(self._listing.statics))
        type_ = statement.type_of(statement.next("a type after the name"))
        bits = 0
        if isinstance(type_, Type) and statement.accept("="):
            bits = literal_of(type_, statement.next(f"an {type_} literal after ="))
        self._listing.statics.append(Static(name, type_, bits))

    def read_host(self, statement: Statement) -> None:
        """Read a host import: name and signature."""
        name = declare(self._source, "host import", self.hosts, statement.next("a name"))
        signature = statement.signature()[0] if statement.peek() else Signature()
        self._listing.hosts.append(HostImport(name, signature))

    def read_export(self, statement: Statement) -> None:
        """Read an export: a function, and the export's name if it is another."""
        function = statement.next("a function")
        token = function
        if statement.accept("as"):
            token = statement.next("a name after as")
        name = declare(self._source, "export", self._exports, token)
        self.exported[name] = function

    def read_tag(self, statement: Statement) -> None:
        """Read a tag: name and types of its values."""
        name = declare(self._source, "tag", self.tags, statement.next("a name"))
        types = tuple(statement.type_of(value) for value in statement.rest())
        self._listing.tags.append(Tag(name, types))

    def read_table(self, statement: Statement) -> None:
        """Read functions of the table."""
        self.table.append(statement.next("one function or more"))
        self.table.extend(statement.rest())

    def read_signature(self, statement: Statement) -> None:
        """Read a signature that stands alone."""
        self.signatures.append(statement.signature()[0])
