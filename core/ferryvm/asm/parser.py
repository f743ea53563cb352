# SPDX-License-Identifier: Apache-2.0
"""Assembly text to a listing: docs/assembly.md is the manual.

    text ──lines──> statements ──> code with names ──resolve──> Listing
                    (literals are read here)   (names are looked up here)

Names may be used before they are declared, so they are looked up after the last line. A faulty
statement is reported and skipped; parsing continues with the next.

Most lines are one instruction, and most of their texts occur many times. Such a text is matched by
one regular expression at its first occurrence, and looked up in a table afterwards. All other
lines, and faulty ones, are read token by token: `_recognised` returns None for them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Collection, Iterator

from ferryvm.asm import literal
from ferryvm.asm.classic import MNEMONICS as CLASSIC
from ferryvm.asm.literal import LiteralFault
from ferryvm.asm.source import Source, StatementFault, Token, near
from ferryvm.asm.statement import (
    TYPES,
    Statement,
    literal_of,
    name_of,
    reading,
    unsigned_of,
)
from ferryvm.asm.type_name import TYPED, TypeFault, TypeNames
from ferryvm.errors import Position
from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Immediate, Instruction, Type
from ferryvm.isa.declared_type import (
    DeclarationFault,
    Field,
    StructType,
    check_declarations,
    is_type_name,
)
from ferryvm.isa.frame import return_immediate, word_of
from ferryvm.isa.type import FIRST_DECLARED, Reference, ValueType
from ferryvm.listing import ClauseListing, FunctionCode, FunctionListing, Listing
from ferryvm.program import Data, HostImport, Signature, Static, Tag

_DATA_BITS = {"i8": 8, "i16": 16}
"""Item types that occur in data only; the four value types are the others."""

_KINDS = [row.immediate for row in INSTRUCTIONS]
_JUMP = BY_MNEMONIC["jump"].opcode

_ALL_BITS = (1 << 64) - 1

_NUMBERED = {Immediate.LOCAL, Immediate.STATIC}
"""Immediates whose operand is a name or a number."""

_NAMED = _NUMBERED | {Immediate.TARGET, Immediate.FUNCTION, Immediate.HOST, Immediate.TAG}
"""Immediates whose operand is a name, or can be one."""

_NAMING = frozenset(row.mnemonic for row in INSTRUCTIONS if row.immediate in _NAMED)


def _literal(type_: Type) -> Callable[[str], int | None]:
    def read(text: str) -> int | None:
        try:
            return literal.literal_bits(type_, text)
        except LiteralFault:
            return None

    return read


def _unsigned(text: str) -> int | None:
    try:
        value = literal.integer(text)
    except LiteralFault:
        return None
    return value if value is not None and 0 <= value < 1 << 32 else None


def _nothing(_text: str) -> None:
    """The number of an operand that has none."""


_Form = tuple[Instruction, Immediate, bool, Callable[[str], int | None]]
"""An instruction, its immediate, True if that depends on the function, and the reader of numbers,
which returns None for a fault or a name."""


def _form(row: Instruction) -> _Form:
    kind = row.immediate
    is_here = kind in (Immediate.LOCAL, Immediate.RESULTS)
    if kind.literal is not None:
        return row, kind, is_here, _literal(kind.literal)
    takes_number = is_here or kind in (Immediate.STATIC, Immediate.OFFSET)
    return row, kind, is_here, _unsigned if takes_number else _nothing


_FORMS = {row.mnemonic: _form(row) for row in INSTRUCTIONS}

_SIMPLE = re.compile(r"([a-z][a-z0-9_.]*)(?:[ \t]+([^\s,;()\":]+))?")
"""An instruction with at most one operand, which is neither a string nor a signature."""

_MOST_KNOWN = 1 << 16
"""The largest number of instruction texts that are cached."""

_Encoded = tuple[int, int, str | None]
"""Opcode, immediate, and the name whose number the immediate is, if there is one."""

_Reference = tuple[int, str, int | Token]
"""pc, a name as written, and its token, or the line whose last token it is."""


@dataclasses.dataclass(frozen=True)
class _PendingClause:
    """A clause whose names are not resolved yet."""

    tag: Token | None
    places: tuple[Token, Token, Token]
    """Tokens of start, end, handler."""
    depth: int
    record: bool


@dataclasses.dataclass
class _Function:
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
    clauses: list[_PendingClause] = dataclasses.field(default_factory=list)
    references: list[_Reference] = dataclasses.field(default_factory=list)
    """Names that are not resolved yet."""

    def encoded(self, row: Instruction, number: int) -> int:
        """The immediate of an instruction in this function whose operand is a number."""
        if row.immediate is Immediate.LOCAL:
            return word_of(number, len(self.signature.parameters)) & _ALL_BITS
        if row.immediate is Immediate.RESULTS:
            return return_immediate(len(self.signature.parameters), number)
        return number


class Parser:
    """The parser of one text in the modern form."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.listing = Listing()
        self.types = TypeNames()
        self.structs: dict[str, Token] = {}
        self.functions: dict[str, tuple[Token, _Function]] = {}
        self.order: list[_Function] = []
        self.current: _Function | None = None
        self.known: dict[str, _Encoded] = {}
        """Instructions by their text, for those that are equal in all functions."""
        self.known_here: dict[str, _Encoded] = {}
        """Instructions by their text, for those that depend on the current function."""
        self.statics: dict[str, list[int]] = {}
        self.hosts: dict[str, Token] = {}
        self.tags: dict[str, Token] = {}
        self.exports: dict[str, tuple[Token, Token]] = {}
        """The tokens of name and function of each export, by name."""
        self.table: list[Token] = []
        self.data: list[tuple[int, bytearray]] = []
        self.signatures: list[Signature] = []
        self.files: dict[int, str] = {}
        self.location: Position | None = None
        self.is_self_located = True
        self.directives: dict[str, Callable[[Statement], None]] = {
            ".function": self._function,
            ".struct": self._struct,
            ".array": self._array,
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
        self._number_types()
        self._read()
        self._resolve()
        if not self.order and not self.source.diagnostics:
            message = "no function: a program starts with its first one, .function NAME"
            self.source.fault(Token("", 1, 1), message)
        self.source.check()
        return self.listing

    # --- statements -------------------------------------------------------------------------

    def _number_types(self) -> None:
        """Number the types that the text declares, in order: they may be used before."""
        for line in self.source.lines:
            if ".struct" not in line and ".array" not in line:
                continue
            match line.partition(";")[0].replace(",", " ").split():
                case [".struct", name, *_]:
                    self.types.add_struct(name.strip('"'))
                case [".array", name, *_]:
                    self.types.find(name)

    def _read(self) -> None:
        """Read every line."""
        known, known_here = self.known, self.known_here
        file = self.source.file
        function, code = self.current, FunctionCode()
        pcs, files, lines, columns = [], [], [], []  # (see `Positions`)
        for number, line in enumerate(self.source.lines, start=1):
            text = line.strip()
            found = known.get(text) or known_here.get(text)
            if found is None and function is not None:
                if text[:1] == ":" and self._recognised_label(function, text, number):
                    continue
                found = self._recognised(function, text)
            if found is None or function is None:
                try:
                    self._statement(self.source.tokens(number))
                except StatementFault as fault:
                    self.source.fault(fault.token, fault.message)
                function = self.current
                if function is not None:
                    code = function.code
                    where = code.positions
                    pcs, files, lines, columns = where.pcs, where.files, where.lines, where.columns
                continue
            opcode, immediate, name = found
            pc = len(code.opcodes)
            if name is not None:
                function.references.append((pc, name, number))
            if self.is_self_located:
                pcs.append(pc)
                files.append(file)
                lines.append(number)
                columns.append(line.find(text) + 1)
            code.opcodes.append(opcode)
            code.immediates.append(immediate)

    def _recognised_label(self, function: _Function, text: str, number: int) -> bool:
        """True if a line is a new label and nothing else; the label is placed then."""
        name = text[1:]
        if not literal.is_bare_name(name) or name in function.labels:
            return False
        function.labels[name] = number
        function.code.labels[name] = len(function.code.opcodes)
        return True

    def _recognised(self, function: _Function, text: str) -> _Encoded | None:
        """The simple instruction without faults on a line; None for any other line."""
        match = _SIMPLE.fullmatch(text)
        form = _FORMS.get(match[1]) if match is not None else None
        if match is None or form is None:
            return None
        row, kind, is_here, takes = form
        operand = match[2]
        immediate, name = 0, None
        if operand is None:
            if kind is Immediate.RESULTS:
                immediate = function.encoded(row, len(function.signature.results))
            elif kind is not Immediate.NONE and kind is not Immediate.OFFSET:
                return None
        else:
            number = takes(operand) if kind not in TYPED else self._type_operand(kind, operand)
            if number is not None:
                immediate = function.encoded(row, number) if is_here else number
            elif row.mnemonic not in _NAMING or not literal.is_bare_name(operand):
                return None
            elif kind is not Immediate.LOCAL:
                name = operand
            elif operand in function.locals:
                immediate = function.encoded(row, function.locals[operand])
            else:
                return None
        table = self.known_here if is_here else self.known
        found = row.opcode, immediate, name
        if len(table) < _MOST_KNOWN:
            table[text] = found
        return found

    def _type_operand(self, kind: Immediate, text: str) -> int | None:
        """The immediate that the name of a type or field is; None for a fault."""
        try:
            return self.types.immediate(kind, text)
        except TypeFault:
            return None

    def _statement(self, tokens: list[Token]) -> None:
        start = 0
        while start < len(tokens) and tokens[start].text.startswith(":"):
            self._label(tokens[start])
            start += 1
        if start == len(tokens):
            return
        head = tokens[start]
        statement = Statement(head, tokens[start + 1 :], self.types)
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
            first = self._label_token(function.labels[name], name)
            where = self.source.position(first)
            raise StatementFault(token, f"label {name!r} is already at {where}")
        function.labels[name] = token.line
        function.code.labels[name] = len(function.code.opcodes)

    def _label_token(self, line: int, name: str) -> Token:
        """The token of a label on a line."""
        tokens = (token for token in self.source.tokens(line) if token.text.startswith(":"))
        return next(token for token in tokens if literal.name(token.text[1:]) == name)

    def _instruction(self, statement: Statement) -> None:
        head = statement.head
        row = BY_MNEMONIC.get(head.text)
        if row is None:
            hint = near(head.text, BY_MNEMONIC)
            if head.text in CLASSIC:
                hint = "; the classic form cannot be mixed with this one"
            raise StatementFault(head, f"no instruction {head.text!r}{hint}")
        function = self._inside(head)
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
            token = statement.next(f"a {kind.value}")
            with self._typed(token):
                number = self.types.immediate(kind, token.text)
        elif kind in _NAMED:
            article = "a" if kind is not Immediate.LOCAL else "the name or number of a"
            what = "local" if kind is Immediate.LOCAL else kind.value
            token = statement.next(f"{article} {what}")
            if kind in _NUMBERED and literal.integer_like(token.text):
                number = unsigned_of(token, 32)
            else:
                function.references.append((pc, token.text, token))
        if self.is_self_located:
            code.positions.set(pc, self.source.position(head))
        code.opcodes.append(row.opcode)
        code.immediates.append(function.encoded(row, number))
        for token in labels:
            function.references.append((len(code.opcodes), token.text, token))
            code.opcodes.append(_JUMP)
            code.immediates.append(0)

    # --- directives -------------------------------------------------------------------------

    def _function(self, statement: Statement) -> None:
        token = statement.next("a name")
        name = name_of(token)
        function = _Function(name)
        # Record it first: otherwise a fault in the rest would cause more faults below.
        self.current = function
        self.known_here.clear()
        self._place()
        self.order.append(function)
        first, _ = self.functions.setdefault(name, (token, function))
        if first is not token:
            raise StatementFault(
                token, f"function {name!r} is already at {self.source.position(first)}"
            )
        if statement.peek():
            function.signature, names = statement.signature()
            function.local_count = len(names)
            for number, parameter in enumerate(names):
                self._declare_local(function, parameter, number)
            if any(names):
                function.parameters = tuple(name_of(token) if token else "" for token in names)

    def _declare_local(self, function: _Function, token: Token | None, number: int) -> None:
        if token is None:
            return
        name = name_of(token)
        if name in function.locals:
            raise StatementFault(token, f"this function has already a local {name!r}")
        function.locals[name] = number

    def _struct(self, statement: Statement) -> None:
        token = statement.next("a name")
        name = name_of(token)
        if not is_type_name(name):
            message = f"{token.text} is no name of a struct: letters, digits and _ are allowed"
            raise StatementFault(token, message)
        first = self.structs.setdefault(name, token)
        if first is not token:
            where = self.source.position(first)
            raise StatementFault(token, f"struct {name!r} is already at {where}")
        self.types.add_struct(name)
        own = self.types.known[name]
        if not isinstance(own, Reference) or own.number < FIRST_DECLARED:
            raise StatementFault(token, f"{name!r} is a type already")
        parent: int | None = None
        fields: list[Field] = []
        if statement.accept("extends"):
            above = statement.next("a struct after extends")
            with self._typed(above):
                parent = self.types.immediate(Immediate.STRUCT, above.text)
            if parent >= own.number:
                message = f"struct {above.text!r} is declared below; a parent comes first"
                raise StatementFault(above, message)
            declared = self.types.declared[parent - FIRST_DECLARED]
            assert isinstance(declared, StructType)
            fields += declared.fields
        while statement.peek():
            field = statement.next("a field")
            type_ = statement.type_of(statement.next("a type after the field's name"))
            fields.append(Field(name_of(field), type_))
        made = StructType(name, parent, tuple(fields))
        self.types.declared[own.number - FIRST_DECLARED] = made

    def _array(self, statement: Statement) -> None:
        token = statement.next("the name of an array type, such as node[]")
        found = statement.type_of(token)
        if not isinstance(found, Reference) or not found.name.endswith("[]"):
            raise StatementFault(token, f"expected an array type, found {token.text!r}")

    @contextlib.contextmanager
    def _typed(self, token: Token) -> Iterator[None]:
        """A context in which a wrong name of a type is a fault of `token`."""
        try:
            yield
        except TypeFault as fault:
            raise StatementFault(token, str(fault)) from None

    def _local(self, statement: Statement) -> None:
        function = self._inside(statement.head)
        while True:
            token = statement.next("a type, or a name and a type")
            name = None if statement.is_type(token) else token
            type_ = statement.type_of(
                token if name is None else statement.next("a type after the name")
            )
            self._declare_local(function, name, function.local_count)
            function.types.append(type_)
            function.local_count += 1
            if not statement.peek():
                return

    def _static(self, statement: Statement) -> None:
        name = name_of(statement.next("a name"))
        self.statics.setdefault(name, []).append(len(self.listing.statics))
        type_ = statement.type_of(statement.next("a type after the name"))
        bits = 0
        if isinstance(type_, Type) and statement.accept("="):
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
        types = tuple(statement.type_of(value) for value in statement.rest())
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
            self._place()
            return
        number = unsigned_of(token, 32)
        if number not in self.files:
            known = ", ".join(map(str, self.files)) or "none"
            raise StatementFault(token, f"no .file has number {number} (known: {known})")
        line = unsigned_of(statement.next("a line after the file"), 32)
        column = unsigned_of(statement.next("a column"), 32) if statement.peek() else 1
        self.location = Position(self.files[number], line, column)
        self._place()

    def _place(self) -> None:
        """Give the following instructions the position that `.loc` stated, if there was one."""
        if self.current is None:
            return
        code = self.current.code
        if self.is_self_located:
            code.positions.cut(len(code.opcodes))
        else:
            code.positions.set(len(code.opcodes), self.location)

    # --- names ------------------------------------------------------------------------------

    def _resolve(self) -> None:
        """Look up every name and fill in the listing."""
        listing = self.listing
        listing.types = self.types.declared
        try:
            check_declarations(listing.types)
        except DeclarationFault as fault:
            if not self.source.diagnostics:
                token = next(iter(self.structs.values()), Token("", 1, 1))
                self.source.fault(token, str(fault))
        listing.extra_signatures = tuple(self.signatures)
        listing.data = [Data(address, bytes(content)) for address, content in self.data]
        for token in self.table:
            with self._collecting():
                listing.table.append(self._known(token, "function", self.functions))
        for name, (_, token) in self.exports.items():
            with self._collecting():
                listing.exports[name] = self._known(token, "function", self.functions)
        for function in self.order:
            self._resolve_code(function)
            found = FunctionListing.of(
                function.name, function.signature, tuple(function.types), function.code
            )
            found.parameters = function.parameters
            listing.functions.append(found)
            for clause in function.clauses:
                with self._collecting():
                    found.clauses.append(self._clause(function, clause))

    def _resolve_code(self, function: _Function) -> None:
        """Look up the names in a function."""
        code = function.code
        tables: dict[Immediate, Collection[str]] = {
            Immediate.TARGET: function.labels,
            Immediate.FUNCTION: self.functions,
            Immediate.HOST: self.hosts,
            Immediate.TAG: self.tags,
        }
        signatures, code.relocations = code.relocations, []
        for pc, text, where in function.references:
            kind = _KINDS[code.opcodes[pc]]
            known = tables.get(kind)
            if known is not None and text in known:
                code.relocations.append((pc, text))
                continue
            token = where
            if isinstance(token, int):
                token = self.source.tokens(token)[-1]
            with self._collecting():
                if known is not None:
                    what = "label" if kind is Immediate.TARGET else kind.value
                    code.relocations.append((pc, self._known(token, what, known)))
                else:
                    row = INSTRUCTIONS[code.opcodes[pc]]
                    code.immediates[pc] = function.encoded(
                        row, self._variable(function, row, token)
                    )
        if signatures:
            code.relocations = sorted([*code.relocations, *signatures], key=lambda each: each[0])

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

    def _variable(self, function: _Function, row: Instruction, token: Token) -> int:
        """The number of a local or static that has a name."""
        if row.immediate is Immediate.LOCAL:
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
