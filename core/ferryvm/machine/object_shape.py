# SPDX-License-Identifier: Apache-2.0
"""The positions of references and floats in objects and in frames, for collections and comparisons.
Both follow from a verified program; nothing of it is state."""

from __future__ import annotations

from array import array

from ferryvm.isa import INSTRUCTIONS, Flow
from ferryvm.isa.declared_type import ArrayType, declaration
from ferryvm.isa.element import FIRST_ARRAY, Element
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.object import STRUCT_HEADER_BYTES
from ferryvm.isa.type import FIRST_DECLARED, WORD_BYTES, Reference, ValueType
from ferryvm.machine.collection import ROW_WORDS, SHAPE_WORDS, ShapeKind
from ferryvm.program import Program
from ferryvm.verify import Verified

_MASK = (1 << 64) - 1
_CALLS = frozenset(row.opcode for row in INSTRUCTIONS if row.flow is Flow.CALL)
_ALL_CALLS = _CALLS | {row.opcode for row in INSTRUCTIONS if row.flow is Flow.CALL_INDIRECT}


class Shapes:
    """The shapes of all types of a program, by type number."""

    def __init__(self, program: Program) -> None:
        self.fields: list[tuple[ValueType, ...]] = []
        """Types of the fields of structs; of the elements of arrays, one; else none."""
        self.elements: dict[int, Element] = {}
        """Element kinds of arrays of numbers."""
        rows, offsets = array("Q"), array("Q")
        for number in range(FIRST_DECLARED + len(program.types)):
            kind, bytes_, fields = self._shape(program, number)
            found = [
                STRUCT_HEADER_BYTES + WORD_BYTES * index
                for index, t in enumerate(fields)
                if kind is ShapeKind.STRUCT and isinstance(t, Reference)
            ]
            rows.extend((kind, bytes_, len(offsets), len(found)))
            offsets.extend(found)
            self.fields.append(fields)
        self.rows, self.offsets = rows, offsets
        """For `Request.shapes` and `Request.offsets`."""
        self.count = len(rows) // SHAPE_WORDS

    def _shape(self, program: Program, number: int) -> tuple[ShapeKind, int, tuple[ValueType, ...]]:
        if number < FIRST_ARRAY:
            return ShapeKind.NONE, 0, ()
        declared = declaration(program.types, number)
        if declared is None:
            element = self.elements[number] = [*Element][number - FIRST_ARRAY]
            return ShapeKind.NUMBERS, element.bytes, (element.type,)
        if isinstance(declared, ArrayType):
            return ShapeKind.REFERENCES, WORD_BYTES, (declared.element,)
        size = STRUCT_HEADER_BYTES + WORD_BYTES * len(declared.fields)
        return ShapeKind.STRUCT, size, tuple(field.type for field in declared.fields)


class ReferenceMap:
    """The words of statics and frames that hold references, by the verifier's stack maps."""

    def __init__(self, verified: Verified) -> None:
        self._verified = verified
        program = verified.program
        self.statics = array(
            "Q", [n for n, each in enumerate(program.statics) if isinstance(each.type, Reference)]
        )
        """Numbers of the statics with references."""
        opcodes, immediates = program.code.opcodes, program.code.immediates
        called = {n for opcode, n in zip(opcodes, immediates, strict=True) if opcode in _CALLS}
        self._entered = set(range(1, len(program.functions))) - called - {*program.table}
        """Functions that no code calls: their frames were entered from outside."""
        self.rows = array("Q", [0, 0])
        """For `Request.rows`: the row at 0 has no references."""
        self._known: dict[tuple[int, ...], int] = {(0,): 0}
        self._in_frames: dict[int, tuple[tuple[int, ...], int]] = {}
        """By function, see `_in_frame`."""
        self._in_stacks: dict[int, list[int]] = {}
        """By the number of an operand stack, the operands in it that are references."""
        self._keys = verified.frame_keys()
        self._current: dict[tuple[int, int], int] = {}
        """Rows of running functions by the keys of their frames."""
        size = WORD_BYTES * len(program.code)
        self.calls, self.stops = array("Q", bytes(size)), array("Q", bytes(size))
        """For `Request.calls` and `Request.stops`."""
        for pc, opcode in enumerate(opcodes):
            if opcode in _ALL_CALLS and verified.is_reachable(pc):
                self.calls[pc] = self._row(pc, self._arguments(pc))
        if self._entered:  # a program may have been stopped anywhere
            for pc, key in enumerate(self._keys):
                if key not in self._current:
                    self._current[key] = self._row(pc) if key[0] >= 0 else 0
            self.stops = array("Q", [self._current[key] for key in self._keys])

    def row(self, pc: int) -> int:
        """The row of the running function's frame at `pc`."""
        key = self._keys[pc]
        found = self._current.get(key)
        if found is None:
            found = self._current[key] = self._row(pc)
        return found

    def positions(self, row: int) -> array[int]:
        """The positions in a row, from a frame's header on, modulo 2^64."""
        first = row + ROW_WORDS
        return self.rows[first : first + self.rows[row]]

    def _arguments(self, pc: int) -> int:
        """Operands that the call at `pc` takes."""
        program = self._verified.program
        row, immediate = INSTRUCTIONS[program.code.opcodes[pc]], program.code.immediates[pc]
        is_direct = row.flow is Flow.CALL
        number = program.functions[immediate].signature if is_direct else immediate
        return len(program.signatures[number].parameters) + len(row.pops)

    def _in_frame(self, function: int) -> tuple[tuple[int, ...], int]:
        """The positions of references among parameters and locals of a function, and the position
        of the first operand."""
        program = self._verified.program
        parameters = len(program.signature(function).parameters)
        types = program.frame_types(function)
        places = [
            (n - parameters + (HEADER_WORDS if n >= parameters else 0)) & _MASK
            for n, t in enumerate(types)
            if isinstance(t, Reference)
        ]
        return tuple(places), HEADER_WORDS + len(types) - parameters

    def _row(self, pc: int, gone: int = 0) -> int:
        """The row of a frame, of which so many operands are no part any more: a function that it
        called has the arguments."""
        owner, stack = self._keys[pc]
        in_frame = self._in_frames.get(owner)
        if in_frame is None:
            in_frame = self._in_frames[owner] = self._in_frame(owner)
        places, first = in_frame
        operands = self._in_stacks.get(stack)
        if operands is None:
            types = self._verified.operand_types(pc)
            found = [n for n, t in enumerate(types) if isinstance(t, Reference)]
            operands = self._in_stacks[stack] = found
        if operands:
            end = self._verified.depth(pc) - gone
            places = (*places, *(first + n for n in operands if n < end))
        key = (int(owner in self._entered), *places)
        row = self._known.get(key)
        if row is None:
            row = self._known[key] = len(self.rows)
            self.rows.extend((len(places), *key))
        return row
