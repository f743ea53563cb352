# SPDX-License-Identifier: Apache-2.0
"""The frequent lines, read without tokens: a label alone, or a simple instruction without faults.

Most lines are one instruction, and most of their texts occur many times. Such a text is matched by
one regular expression at its first occurrence, and looked up in a table afterwards. All other
lines, and faulty ones, are not recognised; `ferryvm.asm.instruction` reads them token by token.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ferryvm.asm import literal
from ferryvm.asm.function import PendingFunction
from ferryvm.asm.instruction import NAMED
from ferryvm.asm.literal import LiteralFault
from ferryvm.asm.type_name import TYPED, TypeFault, TypeNames
from ferryvm.isa import INSTRUCTIONS, Immediate, Instruction, Type

_NAMING = frozenset(row.mnemonic for row in INSTRUCTIONS if row.immediate in NAMED)


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

_SIMPLE = re.compile(r"\s*([a-z][a-z0-9_.]*)(?:[ \t]+([^\s,;()\":]+))?\s*")
"""An instruction with at most one operand, which is neither a string nor a signature."""

_MOST_KNOWN = 1 << 12
"""The largest number of lines that are cached; beyond it the cache is emptied, and the frequent
ones are soon there again. Literals that occur once would otherwise fill it."""

Encoded = tuple[int, int, str | None, int]
"""Opcode, immediate, the name whose number the immediate is, if there is one, and the column."""


def recognised_label(function: PendingFunction, text: str, line: int, ahead: int) -> bool:
    """True if the text of a line is a new label and nothing else; the label is placed then, behind
    the `ahead` instructions of the present run."""
    name = text[1:]
    if not literal.is_bare_name(name) or name in function.labels:
        return False
    function.add_label(name, line, ahead)
    return True


class Run:
    """Recognised instructions in a row, which join the code of their function all at once."""

    def __init__(self) -> None:
        self.instructions: list[Encoded] = []
        self.lines: list[int] = []

    def end(self, function: PendingFunction, file: str, is_located: bool) -> None:
        """Add the instructions to the code of a function, with the positions of their lines if
        `is_located`; the run is empty afterwards."""
        if not self.lines:
            return
        code = function.code
        pc = len(code.opcodes)
        opcodes, immediates, names, columns = zip(*self.instructions, strict=True)
        code.opcodes += opcodes
        code.immediates += immediates
        function.references += [
            (at, name, line)
            for at, (name, line) in enumerate(zip(names, self.lines, strict=True), start=pc)
            if name is not None
        ]
        if is_located:
            where = code.positions
            where.pcs += range(pc, len(code.opcodes))
            where.files += [file] * len(self.lines)
            where.lines += self.lines
            where.columns += columns
        self.instructions.clear()
        self.lines.clear()


class Recogniser:
    """The recognised instructions of one text."""

    def __init__(self, types: TypeNames) -> None:
        self.types = types
        self.known: dict[str, Encoded] = {}
        """Instructions by their line."""
        self._known_here: list[str] = []
        """The lines among them that mean something else in another function."""

    def begin_function(self) -> None:
        """Forget the lines that depend on the current function."""
        for line in self._known_here:
            del self.known[line]
        self._known_here.clear()

    def recognised(self, function: PendingFunction, line: str) -> Encoded | None:
        """The simple instruction without faults on a line; None for any other line."""
        match = _SIMPLE.fullmatch(line)
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
        found = row.opcode, immediate, name, match.start(1) + 1
        if len(self.known) >= _MOST_KNOWN:
            self.known.clear()
            self._known_here.clear()
        self.known[line] = found
        if is_here:
            self._known_here.append(line)
        return found

    def _type_operand(self, kind: Immediate, text: str) -> int | None:
        """The immediate that the name of a type or field is; None for a fault."""
        try:
            return self.types.immediate(kind, text)
        except TypeFault:
            return None
