# SPDX-License-Identifier: Apache-2.0
"""The positions of references and floats in objects and in frames, for collections and comparisons.
Both follow from a verified program; nothing of it is state."""

from __future__ import annotations

from array import array

from ferryvm.isa import INSTRUCTIONS, Flow
from ferryvm.isa.declared_type import ArrayType
from ferryvm.isa.element import Element
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.object import STRUCT_HEADER_BYTES
from ferryvm.isa.type import FIRST_DECLARED, WORD_BYTES, Reference, ValueType
from ferryvm.machine.collection import SHAPE_WORDS, ShapeKind
from ferryvm.program import Program
from ferryvm.verify import Verified

_MASK = (1 << 64) - 1
_FIRST_ARRAY = FIRST_DECLARED - len(Element)


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
        if number < _FIRST_ARRAY:
            return ShapeKind.NONE, 0, ()
        if number < FIRST_DECLARED:
            element = self.elements[number] = [*Element][number - _FIRST_ARRAY]
            return ShapeKind.NUMBERS, element.bytes, (element.type,)
        declared = program.types[number - FIRST_DECLARED]
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
        called = {
            immediate
            for opcode, immediate in zip(program.code.opcodes, program.code.immediates, strict=True)
            if INSTRUCTIONS[opcode].flow is Flow.CALL
        }
        self._entered = set(range(1, len(program.functions))) - called - {*program.table}
        """Functions that no code calls: their frames were entered from outside."""
        self.rows = array("Q", [0, 0])
        """For `Request.rows`: the row at 0 has no references."""
        self._known: dict[tuple[int, ...], int] = {(0,): 0}
        self._current: dict[int, int] = {}
        size = WORD_BYTES * len(program.code)
        self.calls, self.stops = array("Q", bytes(size)), array("Q", bytes(size))
        """For `Request.calls` and `Request.stops`."""
        for pc, opcode in enumerate(program.code.opcodes):
            if not verified.is_reachable(pc):
                continue
            if INSTRUCTIONS[opcode].flow in (Flow.CALL, Flow.CALL_INDIRECT):
                self.calls[pc] = self._row(pc, is_suspended=True)
            if self._entered:  # a program may have been stopped anywhere
                self.stops[pc] = self.row(pc)

    def row(self, pc: int) -> int:
        """The row of the running function's frame at `pc`."""
        found = self._current.get(pc)
        if found is None:
            found = self._current[pc] = self._row(pc, is_suspended=False)
        return found

    def _row(self, pc: int, is_suspended: bool) -> int:
        """`is_suspended`: it called a function, whose frame has the arguments."""
        verified, program = self._verified, self._verified.program
        owner = verified.owner(pc)
        operands = verified.operand_types(pc)
        if is_suspended:
            row = INSTRUCTIONS[program.code.opcodes[pc]]
            immediate = program.code.immediates[pc]
            is_direct = row.flow is Flow.CALL
            number = program.functions[immediate].signature if is_direct else immediate
            popped = len(program.signatures[number].parameters) + len(row.pops)
            operands = operands[: len(operands) - popped]
        types: list[ValueType | None] = [*program.frame_types(owner), *operands]
        parameters = verified.parameters(pc)
        types[parameters:parameters] = [None] * HEADER_WORDS
        places = [
            (index - parameters) & _MASK
            for index, t in enumerate(types)
            if isinstance(t, Reference)
        ]
        key = (int(owner in self._entered), *places)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.rows)
            self.rows.extend((len(places), *key))
        return found
