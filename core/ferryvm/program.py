# SPDX-License-Identifier: Apache-2.0
"""A program: code, functions, statics, data, function table, imports, exports, exceptions.

Code is an array of fixed-size records, one for each instruction; a pc is an index into it.

    byte   0        2              8                      16
           │ opcode │ zero         │ immediate            │      little-endian

A `Program` is plain data and may be invalid. Only `ferryvm.verify` decides if it can run, and only
a `Verified` program reaches a backend.
"""

from __future__ import annotations

import bisect
import functools
import itertools
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ferryvm import record
from ferryvm.errors import Position
from ferryvm.isa.declared_type import DeclaredType, StructType
from ferryvm.isa.type import ANYREF, I64, Reference, ValueType
from ferryvm.named_tuple import NamedTuple

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "HOST_TAG",
    "MAX_TAG_VALUES",
    "RECORD_BYTES",
    "Clause",
    "Code",
    "Data",
    "Export",
    "Function",
    "HostImport",
    "Program",
    "Signature",
    "SourceMap",
    "Static",
    "Tag",
    "has_references",
    "record_types",
]

RECORD_BYTES = 16
"""Size of one instruction, in bytes."""

HOST_TAG = "python."
"""The prefix of names of tags that represent exceptions of host functions."""

MAX_TAG_VALUES = 4
"""The largest number of values of an exception, so that a record of any tag has five words."""


class Code:
    """The instructions of a program; immutable.

    It is not a NumPy array, because importing NumPy takes longer than most programs run; `records`
    is a NumPy view.
    """

    __slots__ = ("_content", "_immediates", "_opcodes")

    def __init__(self, content: bytes = b"") -> None:
        """`content`: whole records, unchecked."""
        self._content = bytes(content)
        self._opcodes: memoryview[int] = memoryview(self._content).cast("H")[:: RECORD_BYTES // 2]
        self._immediates: memoryview[int] = memoryview(self._content).cast("Q")[1::2]

    @classmethod
    def of(cls, opcodes: Sequence[int], immediates: Sequence[int]) -> Code:
        """Code of as many opcodes (16 bits) as immediates (64 bits)."""
        words = array("Q", bytes(RECORD_BYTES * len(opcodes)))
        words[0::2] = array("Q", array("H", opcodes))
        words[1::2] = array("Q", immediates)
        return cls(words.tobytes())

    @property
    def opcodes(self) -> memoryview[int]:
        """Opcode of each instruction."""
        return self._opcodes

    @property
    def immediates(self) -> memoryview[int]:
        """Immediate of each instruction."""
        return self._immediates

    def __len__(self) -> int:
        return len(self._opcodes)

    def __reduce__(self) -> tuple[Callable[[bytes], Code], tuple[bytes]]:
        return Code, (self._content,)

    def tobytes(self) -> bytes:
        """The records, in the format of an image."""
        return self._content

    @property
    def records(self) -> npt.NDArray[Any]:
        """A view with the fields `opcode`, `zero` and `immediate`."""
        import numpy as np  # a run in an interpreter needs no such view

        fields = [("opcode", "<u2"), ("zero", "V6"), ("immediate", "<u8")]
        return np.frombuffer(self._content, np.dtype(fields))


@record.dataclass(frozen=True)
class Signature:
    """Parameter and result types of a function."""

    parameters: tuple[ValueType, ...] = ()
    results: tuple[ValueType, ...] = ()

    def __str__(self) -> str:
        left = " ".join(str(t) for t in self.parameters)
        right = " ".join(str(t) for t in self.results)
        return f"({left}) -> ({right})"


def has_references(signature: Signature) -> bool:
    """True if a function takes or returns references."""
    return any(isinstance(t, Reference) for t in signature.parameters + signature.results)


@record.dataclass(frozen=True)
class Function:
    """A function: its entry, and the types of its frame's words."""

    name: str
    entry: int
    """pc of the first instruction."""
    signature: int
    """Index in the program's signatures."""
    locals: tuple[ValueType, ...] = ()
    """Types of the locals that follow the parameters; their initial value is zero."""
    parameters: tuple[str, ...] = ()
    """Names of the parameters, an empty one where it has none; () if no parameter has a name."""


class Static(NamedTuple):
    """A global variable."""

    name: str
    type: ValueType
    bits: int = 0
    """Bit pattern of its initial value."""


class Data(NamedTuple):
    """A segment of the heap's initial content."""

    address: int
    """Offset in the heap, in bytes."""
    bytes: bytes


class HostImport(NamedTuple):
    """A host function that the program calls by its number in the import list."""

    name: str
    signature: Signature


class Export(NamedTuple):
    """A function that can be called from outside, under its own name."""

    name: str
    function: int
    """Its number."""


class Tag(NamedTuple):
    """A kind of exception, with the types of the values that one carries."""

    name: str
    parameters: tuple[ValueType, ...] = ()


def record_types(tags: Iterable[Tag]) -> tuple[ValueType, ...]:
    """Types of the operands that are the record of an exception in a program with these tags,
    deepest first: as many references as a tag of them has at most, the number of the tag, and a
    word for each value, which is 0 where the value is a reference."""
    counts = (sum(isinstance(t, Reference) for t in tag.parameters) for tag in tags)
    return (ANYREF,) * max(counts, default=0) + (I64,) * (1 + MAX_TAG_VALUES)


class Clause(NamedTuple):
    """A handler of exceptions from a range of code; inner clauses come before outer ones.

    The covered instructions, and the handler, belong to one function.
    """

    start: int
    """pc of the first instruction that is covered."""
    end: int
    """pc after the last one."""
    handler: int
    """pc of the handler."""
    depth: int = 0
    """Operands of the function that remain, the deepest ones; the exception's values come on
    top."""
    tag: int | None = None
    """Number of the tag that is caught; None: every exception."""
    record: bool = False
    """With tag None: push the record of the exception, see `record_types`, or nothing."""

    def covers(self, pc: int) -> bool:
        """True if an exception of the instruction at `pc` can be caught here."""
        return self.start <= pc < self.end


class SourceMap:
    """Source positions of instructions; immutable. A row covers the pcs from its own up to the next
    row's.

    Rows are records of fixed size, as code is: a tuple for each would burden the garbage collector.

        byte   0    4                8      12       16
               │ pc │ index in files │ line │ column │      little-endian

    The pcs increase strictly. Line 0: these instructions have no position.
    """

    __slots__ = ("_columns", "_content", "files")

    def __init__(
        self, files: Iterable[str] = (), rows: Iterable[tuple[int, int, int, int]] = ()
    ) -> None:
        """Rows are (pc, index in `files`, line, column), unchecked. Raises OverflowError for a
        number that has not 32 bits."""
        self._set(tuple(files), array("I", itertools.chain.from_iterable(rows)).tobytes())

    @classmethod
    def packed(cls, files: Iterable[str], content: bytes) -> SourceMap:
        """A source map of whole records, unchecked."""
        made = cls.__new__(cls)
        made._set(tuple(files), bytes(content))
        return made

    def _set(self, files: tuple[str, ...], content: bytes) -> None:
        self.files, self._content = files, content
        words = memoryview(content).cast("I")
        self._columns: list[memoryview[int]] = [words[field::4] for field in range(4)]

    @property
    def pcs(self) -> memoryview[int]:
        """First pc of each row."""
        return self._columns[0]

    @property
    def rows(self) -> tuple[tuple[int, int, int, int], ...]:
        """All rows as tuples, made anew."""
        return tuple(zip(*self._columns, strict=True))

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.pcs)

    def position(self, pc: int) -> Position | None:
        """Source position of the instruction at `pc`; None if it has none."""
        index = bisect.bisect_right(self.pcs, pc) - 1
        if index < 0:
            return None
        _, file, line, column = (column[index] for column in self._columns)
        return Position(self.files[file], line, column) if line else None

    def tobytes(self) -> bytes:
        """The records, in the format of an image."""
        return self._content

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SourceMap):
            return NotImplemented
        return self.files == other.files and self._content == other._content

    def __hash__(self) -> int:
        return hash((self.files, self._content))

    def __repr__(self) -> str:
        return f"SourceMap({self.files!r}, {self.rows!r})"

    def __reduce__(
        self,
    ) -> tuple[Callable[[tuple[str, ...], bytes], SourceMap], tuple[tuple[str, ...], bytes]]:
        return SourceMap.packed, (self.files, self._content)


@record.dataclass(frozen=True, eq=False)
class Program:
    """A whole program. Execution starts at the entry of function 0."""

    code: Code = record.field(default_factory=Code)
    functions: tuple[Function, ...] = ()
    signatures: tuple[Signature, ...] = ()
    statics: tuple[Static, ...] = ()
    data: tuple[Data, ...] = ()
    table: tuple[int, ...] = ()
    """Function numbers, indexed by `call_indirect`."""
    hosts: tuple[HostImport, ...] = ()
    exports: tuple[Export, ...] = ()
    tags: tuple[Tag, ...] = ()
    clauses: tuple[Clause, ...] = ()
    source_map: SourceMap = record.field(default_factory=SourceMap)
    types: tuple[DeclaredType, ...] = ()
    """Structs and arrays of references, with the type numbers from `FIRST_DECLARED` on."""

    def used_types(self) -> Iterator[tuple[str, Iterable[ValueType]]]:
        """The types that occur in it, apart from code, each time with the place in words."""
        for declared in self.types:
            if isinstance(declared, StructType):
                yield f"struct {declared.name!r}", (field.type for field in declared.fields)
        for number, signature in enumerate(self.signatures):
            yield f"signature {number}", (*signature.parameters, *signature.results)
        for function in self.functions:
            yield f"function {function.name!r}", function.locals
        for static in self.statics:
            yield f"static {static.name!r}", (static.type,)
        for host in self.hosts:
            types = (*host.signature.parameters, *host.signature.results)
            yield f"host import {host.name!r}", types
        for tag in self.tags:
            yield f"tag {tag.name!r}", tag.parameters

    @functools.cached_property
    def record_references(self) -> int:
        """Number of references in the record of an exception."""
        return len(record_types(self.tags)) - 1 - MAX_TAG_VALUES

    def signature(self, function: int) -> Signature:
        """The signature of a function, by its number."""
        return self.signatures[self.functions[function].signature]

    def frame_types(self, function: int) -> tuple[ValueType, ...]:
        """Types of a function's parameters, then of its locals."""
        return self.signature(function).parameters + self.functions[function].locals
