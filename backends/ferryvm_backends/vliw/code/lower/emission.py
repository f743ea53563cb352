# SPDX-License-Identifier: Apache-2.0
"""Operations of the machine, appended to blocks: the context of the parts that lower a body."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ferryvm.ir import footprint
from ferryvm.ir.graph import BOOLEAN, Constant, Operation, Value
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import CANONICAL_NAN, I64, Type, to_float
from ferryvm.machine.control import ControlBlock
from ferryvm_backends.vliw.code.operation import (
    AccessingItem,
    ContextPart,
    ElementPart,
    MachineBlock,
    MachineCode,
    MachineOperation,
    MemoryOperand,
    Operand,
    Part,
    Register,
    Segment,
    canonical_type,
)
from ferryvm_backends.vliw.code.parallel_copy import sequential_moves
from ferryvm_backends.vliw.machine.model import FileKind

_NEVER_RAW = frozenset({"canonical", "to_float_s", "to_float_u"})
"""Operations of the region IR that yield no NaN but the canonical one."""


class Emission:
    """Machine code of one function that is being made, and where values of the IR are in it."""

    def __init__(self, code: MachineCode, frame: Register, base: Register, parameters: int) -> None:
        """`frame`: address of the running frame on the program's stack; `base`: address of the
        running call's words in the segment CALLS; `parameters`: words of the frame below its
        header."""
        self.code = code
        self.frame, self.base, self.parameters = frame, base, parameters
        self.block = MachineBlock("")
        """The one that is appended to."""
        self.pc = -1
        self.values: dict[Value, Operand] = {}
        self.item: AccessingItem | None = None
        """Of accesses to elements, see `MemoryOperand.item`."""
        self.cold: list[MachineBlock] = []
        """Blocks that come after all others."""

    def open(self, block: MachineBlock) -> None:
        """Append to another block, the next one of the code."""
        self.block = block
        (self.cold if block.is_cold else self.code.blocks).append(block)

    def register(self, value: Value) -> Register:
        """A new register for a value."""
        return self.code.register(FileKind.BOOLEAN if value.type is BOOLEAN else FileKind.INTEGER)

    def value(self, value: Value) -> Operand:
        """The register of a value, or its bits."""
        if isinstance(value, Constant):
            return value.bits
        return self.values[value]

    def emit(self, operation: MachineOperation) -> None:
        """Append an operation."""
        operation.pc = self.pc
        self.block.operations.append(operation)

    def compute(
        self, name: str, static: tuple[object, ...], operands: tuple[Operand, ...]
    ) -> Register:
        """The result of an operation, in a new register."""
        kind = FileKind.BOOLEAN if name in ("compare", "all", "any", "none") else None
        result = self.code.register(kind or FileKind.INTEGER)
        self.emit(MachineOperation(name, static, operands, result))
        return result

    def set(
        self, result: Register, name: str, static: tuple[object, ...], operands: tuple[Operand, ...]
    ) -> None:
        """Put an operation's result in a register."""
        self.emit(MachineOperation(name, static, operands, result))

    def load(
        self,
        segment: Segment,
        address: Operand,
        offset: int,
        size: int = 8,
        known: footprint.Footprint | None = None,
        part: Part | None = None,
    ) -> Register:
        """A word, or less, of memory."""
        result = self.code.register(FileKind.INTEGER)
        place = MemoryOperand(segment, offset, size, known, part, self._item(part))
        self.emit(MachineOperation("load", (), (address,), result, place))
        return result

    def store(
        self,
        segment: Segment,
        address: Operand,
        offset: int,
        value: Operand,
        size: int = 8,
        known: footprint.Footprint | None = None,
        part: Part | None = None,
    ) -> None:
        """Store a word, or less."""
        place = MemoryOperand(segment, offset, size, known, part, self._item(part))
        self.emit(MachineOperation("store", (), (address, value), None, place))

    def _item(self, part: Part | None) -> AccessingItem | None:
        return self.item if isinstance(part, ElementPart | ContextPart) else None

    def read_field(self, name: str) -> Register:
        """A field of the control block."""
        where = getattr(ControlBlock, name)
        return self.load(Segment.CONTROL, 0, where.offset, where.size)

    def write_field(self, name: str, value: Operand) -> None:
        """Store a field of the control block."""
        where = getattr(ControlBlock, name)
        self.store(Segment.CONTROL, 0, where.offset, value, where.size)

    def move(self, wanted: Iterable[tuple[Register, Operand]]) -> None:
        """Set registers, all at once."""
        for operation in sequential_moves(self.code, wanted):
            self.emit(operation)

    def canonical(self, t: Type, value: Value, a: Operand) -> Operand:
        """The canonical bits of a float."""
        if isinstance(value, Operation) and (
            value.name in _NEVER_RAW or canonical_type(value.name, value.static) is not None
        ):
            return a
        if isinstance(a, int):
            return CANONICAL_NAN[t] if math.isnan(to_float(t, a)) else a
        is_nan_ = self.compute("compare", (t, Condition.NE), (a, a))
        return self.compute("select", (), (is_nan_, CANONICAL_NAN[t], a))

    def header(self, first: Operand, inner: int | None = None) -> Operand:
        """The number of the word where the frame's header is; `first`: of its first word; `inner`:
        the word of the header of an inlined call's frame, in place of the body's own."""
        place = self.parameters if inner is None else inner
        return self.compute("add", (I64,), (first, place)) if place else first
