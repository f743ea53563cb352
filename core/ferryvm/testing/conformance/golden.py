# SPDX-License-Identifier: Apache-2.0
"""Golden cases: reading cases/instruction/*.txt, whose form the README beside them defines.

cases/instruction/*.txt ──read──> GoldenCase ──instruction.py──> Listing ──> Program ──> Script
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator
from importlib import resources

from ferryvm.asm.type_name import TYPED, TypeNames
from ferryvm.isa import BY_MNEMONIC, Immediate, Instruction, Trap, Type
from ferryvm.isa.declared_type import DeclaredType, Field, StructType
from ferryvm.isa.type import FIRST_DECLARED, ValueType
from ferryvm.listing import ClauseListing, FunctionListing, Item, Label, Line, Operand
from ferryvm.program import HostImport, Signature, Static, Tag
from ferryvm.testing.conformance.record import CaseError


@dataclasses.dataclass(frozen=True)
class Setting:
    """The code around a case."""

    heap: bytes = b""
    """Bytes from address 0 at the program's start."""
    statics: tuple[Static, ...] = ()
    locals: tuple[ValueType, ...] = ()
    """Locals of main."""
    functions: tuple[FunctionListing, ...] = ()
    table: tuple[str, ...] = ()
    hosts: tuple[HostImport, ...] = ()
    tags: tuple[Tag, ...] = ()
    types: tuple[DeclaredType, ...] = ()
    marked: tuple[Line, ...] = ()
    """Lines of the functions that `!` marks."""


@dataclasses.dataclass(frozen=True)
class ExpectedEnd:
    """The expected end of a case; besides `stack` at most one field is given."""

    stack: tuple[tuple[Type, int], ...] = ()
    """Type and bits of the whole operand stack at the halt, deepest first."""
    trap: Trap | None = None
    heap: bytes | None = None
    prints: str | None = None


@dataclasses.dataclass(frozen=True)
class GoldenCase:
    """One line of a case file."""

    where: str
    text: str
    row: Instruction
    setting: Setting
    outcome: ExpectedEnd
    immediate: int | None = None
    operands: tuple[int, ...] = ()
    """Bits of the operands of a table line, deepest first."""
    code: tuple[Item, ...] | None = None
    """Code of main in a `run` line, None in a table line."""
    marked: Line | None = None
    """The line that a `run` line expects to trap: it, or a function that it calls, marks it."""

    def __str__(self) -> str:
        return f"{self.where}: [{self.row.mnemonic}] {self.text}"


def cases() -> tuple[GoldenCase, ...]:
    """Every case of the conformance suite, in the order of files and lines."""
    return _all("instruction")


def object_cases() -> tuple[GoldenCase, ...]:
    """Every case of instructions on references. The suite does not have them yet, since its runners
    know no objects: they are run by an engine."""
    return _all("object")


@functools.cache
def _all(name: str) -> tuple[GoldenCase, ...]:
    folder = resources.files(__package__) / "cases" / name
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(
        case
        for file in files
        if file.name.endswith(".txt")
        for case in _read(file.name, file.read_text(encoding="utf-8"))
    )


@functools.cache
def _by_mnemonic() -> dict[str, list[GoldenCase]]:
    found: dict[str, list[GoldenCase]] = {}
    for case in cases():
        found.setdefault(case.row.mnemonic, []).append(case)
    return found


def cases_of(mnemonic: str) -> list[GoldenCase]:
    """The cases of one instruction."""
    return _by_mnemonic().get(mnemonic, [])


def _read(name: str, content: str) -> Iterator[GoldenCase]:
    row: Instruction | None = None
    setting = Setting()
    for number, line in enumerate(content.splitlines(), start=1):
        text = re.sub(r"\s*(^|\s)#.*", "", line).strip()
        where = f"{name}:{number}"
        try:
            if not text:
                continue
            if text.startswith("["):
                row, setting = BY_MNEMONIC[text[1:-1]], Setting()
            elif row is None:
                raise CaseError("no [instruction] stands before")
            elif "->" in text and text.split()[0] not in _SETTINGS:
                yield _case(where, text, row, setting)
            else:
                setting = _set(setting, text)
        except (CaseError, KeyError, ValueError, IndexError) as error:
            raise CaseError(f"{where}: {text!r}: {type(error).__name__} {error}") from None


# --- cases ----------------------------------------------------------------------------------


def _case(where: str, text: str, row: Instruction, setting: Setting) -> GoldenCase:
    left, _, right = text.rpartition("->")
    if left.startswith("run "):
        names = names_of(setting.types)
        items, marked = _code(left.removeprefix("run "), names)
        setting = dataclasses.replace(setting, types=tuple(names.declared))
        outcome = _run_outcome(right.split())
        if outcome.trap is None:
            return GoldenCase(where, text, row, setting, outcome, code=items)
        marked = marked or setting.marked
        if len(marked) != 1:
            raise CaseError("exactly one `!` must mark the instruction that traps")
        return GoldenCase(where, text, row, setting, outcome, code=items, marked=marked[0])
    words = left.split()
    immediate = None
    if words and words[0].startswith("@"):
        immediate = _integer(words.pop(0)[1:])
        if row.immediate.literal:
            immediate &= row.immediate.literal.mask
    if (immediate is None) is not (row.immediate is Immediate.NONE):
        raise CaseError("an immediate, `@…`, is given or missing against the table")
    types = [t for t in row.pops if isinstance(t, Type)]
    if len(types) != len(words) or len(types) != len(row.pops):
        raise CaseError(f"operands must be {row.effect}")
    operands = tuple(_bits(t, word) for t, word in zip(types, words, strict=True))
    result = right.split()
    if result[0] == "trap":
        outcome = ExpectedEnd(trap=Trap[result[1].upper()])
    else:
        (pushed,) = row.pushes
        (bits,) = result
        assert isinstance(pushed, Type)
        outcome = ExpectedEnd(stack=((pushed, _bits(pushed, bits)),))
    return GoldenCase(where, text, row, setting, outcome, immediate, operands)


def _run_outcome(words: list[str]) -> ExpectedEnd:
    if words[:1] == ["trap"]:
        return ExpectedEnd(trap=Trap[words[1].upper()])
    if words[:1] == ["heap"]:
        return ExpectedEnd(heap=bytes.fromhex("".join(words[1:])))
    if words[:1] == ["prints"]:
        return ExpectedEnd(prints=" ".join(words[1:]))
    pairs = zip(words[::2], words[1::2], strict=True)
    return ExpectedEnd(stack=tuple((Type(name), _bits(Type(name), bits)) for name, bits in pairs))


def _bits(t: ValueType, word: str) -> int:
    if len(word) != t.bits // 4:
        raise CaseError(f"{word}: an {t} has {t.bits // 4} hex digits")
    return int(word, 16)


def _integer(word: str) -> int:
    return int(word, 0)


# --- settings -------------------------------------------------------------------------------

_SETTINGS = ("struct", "heap", "static", "local", "function", "catch", "table", "host", "tag")


def _set(setting: Setting, text: str) -> Setting:
    keyword, *words = text.split()
    if keyword == "heap":
        return dataclasses.replace(setting, heap=bytes.fromhex("".join(words)))
    if keyword == "static":
        types = names_of(setting.types)
        t = _type(types, words[0])
        setting = dataclasses.replace(setting, types=tuple(types.declared))
        static = Static(f"s{len(setting.statics)}", t, _bits(t, words[1]) if words[1:] else 0)
        return dataclasses.replace(setting, statics=(*setting.statics, static))
    if keyword == "local":
        types = names_of(setting.types)
        locals_ = tuple(_type(types, word) for word in words)
        return dataclasses.replace(setting, types=tuple(types.declared), locals=locals_)
    if keyword == "struct":
        return _struct(setting, words)
    if keyword == "table":
        return dataclasses.replace(setting, table=tuple(words))
    if keyword == "host":
        host = HostImport(words[0], _signature(words[1]))
        return dataclasses.replace(setting, hosts=(*setting.hosts, host))
    if keyword == "tag":
        tag = Tag(words[0], _signature(words[1]).parameters)
        return dataclasses.replace(setting, tags=(*setting.tags, tag))
    if keyword == "catch":
        *others, last = setting.functions
        taken, start, end, handler, *depth = words
        name = None if taken in ("all", "record") else taken
        clause = ClauseListing(
            start, end, handler, int(depth[0]) if depth else 0, name, taken == "record"
        )
        last = dataclasses.replace(last, clauses=[*last.clauses, clause])
        return dataclasses.replace(setting, functions=(*others, last))
    if keyword == "function":
        head, _, body = text.partition(" : ")
        _, name, signature, *rest = head.split()
        types = names_of(setting.types)
        locals_ = tuple(_type(types, word) for word in rest[1:])
        items, marked = _code(body, types)
        setting = dataclasses.replace(setting, types=tuple(types.declared))
        function = FunctionListing(name, _signature(signature), locals_, list(items))
        return dataclasses.replace(
            setting,
            functions=(*setting.functions, function),
            marked=(*setting.marked, *marked),
        )
    raise CaseError(f"a line is a case or one of {', '.join(_SETTINGS)}")


def _type(types: TypeNames, name: str) -> ValueType:
    found = types.find(name)
    if found is None:
        raise CaseError(types.no_type(name))
    return found


def _struct(setting: Setting, words: list[str]) -> Setting:
    """A struct: `NAME [extends PARENT] field type ...`, as in assembly."""
    types = names_of(setting.types)
    name, *rest = words
    types.add_struct(name)
    at = len(types.declared) - 1
    parent, fields = None, []
    if rest[:1] == ["extends"]:
        parent = types.immediate(Immediate.STRUCT, rest[1])
        above = types.declared[parent - FIRST_DECLARED]
        assert isinstance(above, StructType)
        fields, rest = [*above.fields], rest[2:]
    pairs = zip(rest[::2], rest[1::2], strict=True)
    fields += [Field(field, _type(types, t)) for field, t in pairs]
    types.declared[at] = StructType(name, parent, tuple(fields))
    return dataclasses.replace(setting, types=tuple(types.declared))


def names_of(declared: Iterable[DeclaredType]) -> TypeNames:
    """The names of types that are declared in this order."""
    types = TypeNames()
    for each in declared:
        if isinstance(each, StructType):
            types.add_struct(each.name)
            types.declared[-1] = each
        else:
            types.find(each.name)
    return types


def _signature(text: str) -> Signature:
    left, _, right = text.partition("->")
    sides = [tuple(Type(t) for t in side.strip("()").split(",") if t) for side in (left, right)]
    return Signature(*sides)


# --- code -----------------------------------------------------------------------------------


def _code(text: str, types: TypeNames) -> tuple[tuple[Item, ...], tuple[Line, ...]]:
    """The items of a piece of code, and those lines of it that `!` marks."""
    items: list[Item] = []
    marked = []
    words = iter(text.split())
    for word in words:
        if word.startswith(":"):
            items.append(Label(word[1:]))
            continue
        row = BY_MNEMONIC[word.removeprefix("!")]
        has_immediate = row.immediate is not Immediate.NONE
        line = Line(row, _immediate(row, next(words), types) if has_immediate else None)
        items.append(line)
        if word.startswith("!"):
            marked.append(line)
    return tuple(items), tuple(marked)


_NAMED = (
    *(Immediate.TARGET, Immediate.FUNCTION, Immediate.ITEM, Immediate.HOST),
    Immediate.TAG,
)


def _immediate(row: Instruction, word: str, types: TypeNames) -> Operand:
    if row.immediate in TYPED:
        return types.immediate(row.immediate, word)
    if row.immediate.literal:
        return _integer(word) & row.immediate.literal.mask
    if row.immediate in _NAMED:
        return word
    if row.immediate is Immediate.LABELS:
        return tuple(word.split(","))
    if row.immediate is Immediate.SIGNATURE:
        return _signature(word)
    return _integer(word)
