# SPDX-License-Identifier: Apache-2.0
"""Operations of the machine, appended to blocks."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ferryvm.ir import footprint
from ferryvm.ir.graph import BOOLEAN, Constant, Operation, Value
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import CANONICAL_NAN, Type, to_float
from ferryvm.machine.control import ControlBlock
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineCode,
    MachineOperation,
    MemoryOperand,
    Operand,
    Register,
    Segment,
    canonical_type,
)
from ferryvm_backends.vliw.code.parallel_copy import sequential_moves
from ferryvm_backends.vliw.machine.model import FileKind

_NEVER_RAW = frozenset({"canonical", "to_float_s", "to_float_u"})
"""Operations of the region IR that yield no NaN but the canonical one."""


class Emission:
    """Machine code that is being made, and where values of the IR are in it."""

    def __init__(self, code: MachineCode) -> None:
        self.code = code
        self.block = MachineBlock("")
        """The one that is appended to."""
        self.pc = -1
        self.values: dict[Value, Operand] = {}
        self.cold: list[MachineBlock] = []
        """Blocks that stand behind all others."""

    def _open(self, block: MachineBlock) -> None:
        """Append to another block, the next one of the code."""
        self.block = block
        (self.cold if block.is_cold else self.code.blocks).append(block)

    def _register(self, value: Value) -> Register:
        return self.code.register(FileKind.BOOLEAN if value.type is BOOLEAN else FileKind.INTEGER)

    def _value(self, value: Value) -> Operand:
        if isinstance(value, Constant):
            return value.bits
        return self.values[value]

    def _emit(self, operation: MachineOperation) -> None:
        operation.pc = self.pc
        self.block.operations.append(operation)

    def _do(self, name: str, static: tuple[object, ...], operands: tuple[Operand, ...]) -> Register:
        kind = FileKind.BOOLEAN if name in ("compare", "all", "any", "none") else None
        result = self.code.register(kind or FileKind.INTEGER)
        self._emit(MachineOperation(name, static, operands, result))
        return result

    def _set(
        self, result: Register, name: str, static: tuple[object, ...], operands: tuple[Operand, ...]
    ) -> None:
        self._emit(MachineOperation(name, static, operands, result))

    def _load(
        self,
        segment: Segment,
        address: Operand,
        offset: int,
        size: int = 8,
        known: footprint.Footprint | None = None,
    ) -> Register:
        result = self.code.register(FileKind.INTEGER)
        place = MemoryOperand(segment, offset, size, known)
        self._emit(MachineOperation("load", (), (address,), result, place))
        return result

    def _store(
        self,
        segment: Segment,
        address: Operand,
        offset: int,
        value: Operand,
        size: int = 8,
        known: footprint.Footprint | None = None,
    ) -> None:
        place = MemoryOperand(segment, offset, size, known)
        self._emit(MachineOperation("store", (), (address, value), None, place))

    def _read_field(self, name: str) -> Register:
        where = getattr(ControlBlock, name)
        return self._load(Segment.CONTROL, 0, where.offset, where.size)

    def _write_field(self, name: str, value: Operand) -> None:
        where = getattr(ControlBlock, name)
        self._store(Segment.CONTROL, 0, where.offset, value, where.size)

    def _move(self, wanted: Iterable[tuple[Register, Operand]]) -> None:
        """Set registers, all at once."""
        for operation in sequential_moves(self.code, wanted):
            self._emit(operation)

    def _canonical(self, t: Type, value: Value, a: Operand) -> Operand:
        """The canonical bits of a float."""
        if isinstance(value, Operation) and (
            value.name in _NEVER_RAW or canonical_type(value.name, value.static) is not None
        ):
            return a
        if isinstance(a, int):
            return CANONICAL_NAN[t] if math.isnan(to_float(t, a)) else a
        is_nan_ = self._do("compare", (t, Condition.NE), (a, a))
        return self._do("select", (), (is_nan_, CANONICAL_NAN[t], a))
