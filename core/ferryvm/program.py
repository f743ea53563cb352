# SPDX-License-Identifier: Apache-2.0
"""A program: code, functions, statics, data, function table, imports, source map.

Code is an array of fixed-size records, one for each instruction; a pc is an index into it.

    byte   0        2              8                      16
           │ opcode │ zero         │ immediate            │      little-endian

A `Program` is plain data and may be wrong in any way. `ferryvm.verify` alone decides if it can
run, and only a `Verified` program reaches a backend.
"""

from __future__ import annotations

import bisect
import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from ferryvm.errors import Position
from ferryvm.isa.type import Type

__all__ = [
    "CODE_DTYPE",
    "Code",
    "Data",
    "Function",
    "HostImport",
    "Program",
    "Signature",
    "SourceMap",
    "Static",
]

CODE_DTYPE = np.dtype([("opcode", "<u2"), ("zero", "V6"), ("immediate", "<u8")])
"""Layout of one instruction, 16 bytes."""

Code = npt.NDArray[Any]
"""One-dimensional array of CODE_DTYPE, one element an instruction."""


@dataclasses.dataclass(frozen=True)
class Signature:
    """Parameter and result types of a function."""

    parameters: tuple[Type, ...] = ()
    results: tuple[Type, ...] = ()

    def __str__(self) -> str:
        left = " ".join(str(t) for t in self.parameters)
        right = " ".join(str(t) for t in self.results)
        return f"({left}) -> ({right})"


@dataclasses.dataclass(frozen=True)
class Function:
    """A function: where it starts and what its frame holds."""

    name: str
    entry: int
    """pc of the first instruction."""
    signature: int
    """Index in the program's signatures."""
    locals: tuple[Type, ...] = ()
    """Types of the locals that follow the parameters; each starts as zero."""


@dataclasses.dataclass(frozen=True)
class Static:
    """A variable of the whole program."""

    name: str
    type: Type
    bits: int = 0
    """Bit pattern that it starts with."""


@dataclasses.dataclass(frozen=True)
class Data:
    """Bytes that the heap holds when the program starts."""

    address: int
    """Offset in the heap, in bytes."""
    bytes: bytes


@dataclasses.dataclass(frozen=True)
class HostImport:
    """A host function that the program calls by its number in the import list."""

    name: str
    signature: Signature


@dataclasses.dataclass(frozen=True)
class SourceMap:
    """Source positions of instructions. An entry covers the pcs from its own to the next entry's.

    `rows` are (pc, index in `files`, line, column), with strictly increasing pcs. Line 0: the
    instructions from there on have no position.
    """

    files: tuple[str, ...] = ()
    rows: tuple[tuple[int, int, int, int], ...] = ()

    def position(self, pc: int) -> Position | None:
        """Source position of the instruction at `pc`; None if it has none."""
        index = bisect.bisect_right(self.rows, pc, key=lambda row: row[0]) - 1
        if index < 0:
            return None
        _, file, line, column = self.rows[index]
        return Position(self.files[file], line, column) if line else None


def _no_code() -> Code:
    return np.zeros(0, CODE_DTYPE)


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """A whole program. Execution starts at the entry of function 0."""

    code: Code = dataclasses.field(default_factory=_no_code)
    functions: tuple[Function, ...] = ()
    signatures: tuple[Signature, ...] = ()
    statics: tuple[Static, ...] = ()
    data: tuple[Data, ...] = ()
    table: tuple[int, ...] = ()
    """Function numbers that `call_indirect` can reach."""
    hosts: tuple[HostImport, ...] = ()
    source_map: SourceMap = SourceMap()

    def signature(self, function: int) -> Signature:
        """The signature of a function, by its number."""
        return self.signatures[self.functions[function].signature]

    def frame_types(self, function: int) -> tuple[Type, ...]:
        """Types of a function's parameters, then of its locals."""
        return self.signature(function).parameters + self.functions[function].locals
