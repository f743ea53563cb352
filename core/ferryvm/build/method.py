# SPDX-License-Identifier: Apache-2.0
"""Methods of instructions, generated from the table: one generator for each kind of immediate.

Each checks the immediate, then the stack, and appends opcode and immediate. They are called for
each instruction of each program, so the common case has no branches: the shape after the
instruction is looked up, and `Body` does everything else when it is not there yet.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from ferryvm.build.body import Body, method_name
from ferryvm.build.object_type import Array, Field, OperandType, Struct
from ferryvm.build.symbol import Host, Label, Local, Static, Tag
from ferryvm.float_environment import in_ours
from ferryvm.isa import BY_MNEMONIC, Flow, Immediate, Instruction
from ferryvm.isa.frame import return_immediate
from ferryvm.isa.table import REF, T
from ferryvm.isa.type import from_float
from ferryvm.program import Signature

Method = Callable[..., None]

_JUMP = BY_MNEMONIC["jump"].opcode


float_bits = in_ours(from_float)
"""The bit pattern of a float, rounded once, whatever the caller's rounding mode."""


def made(row: Instruction) -> Method:
    """The method of an instruction. Raises KeyError for an unknown kind of immediate."""
    method: Method = _MAKERS[row.immediate](row)
    method.__name__ = method_name(row)
    method.__qualname__ = f"Function.{method.__name__}"
    method.__doc__ = documentation(row)
    return method


def documentation(row: Instruction) -> str:
    """The docstring of an instruction's method."""
    return f"{row.mnemonic} {row.effect}\n\n{row.summary}"


def _bare(row: Instruction) -> Method:
    opcode = row.opcode

    def method(self: Body) -> None:
        try:
            self._shape = self._shape.after[opcode]
        except KeyError:
            self._shape = self._stepped(row, opcode)
        self._opcodes.append(opcode)
        self._immediates.append(0)

    def stop(self: Body) -> None:
        self._stepped(row, opcode)
        self._opcodes.append(opcode)
        self._immediates.append(0)
        self._end_path()

    return stop if row.flow in (Flow.STOP, Flow.THROW) else method


def _integer(row: Instruction) -> Method:
    type_ = row.immediate.literal
    assert type_ is not None
    opcode, mask, low = row.opcode, type_.mask, -(1 << (type_.bits - 1))

    def method(self: Body, value: int) -> None:
        if value.__class__ is not int:
            value = _index(self, row, f"an {type_} as an int", value)
        if not low <= value <= mask:
            self._out_of_range(row, value, low, mask)
        try:
            self._shape = self._shape.after[type_]
        except KeyError:
            self._shape = self._shape.push(type_)
        self._opcodes.append(opcode)
        self._immediates.append(value & mask)

    return method


def _index(self: Body, row: Instruction, wanted: str, value: object) -> int:
    try:
        return operator.index(value)  # type: ignore[arg-type]  # what is none raises
    except TypeError:
        raise self._wrong(row, wanted, value) from None


def _float(row: Instruction) -> Method:
    type_ = row.immediate.literal
    assert type_ is not None
    opcode = row.opcode

    infinite = {float_bits(type_, math.inf), float_bits(type_, -math.inf)}

    def method(self: Body, value: float) -> None:
        if value.__class__ is not float:
            try:
                if isinstance(value, str):
                    raise TypeError
                value = float(value)
            except (TypeError, ValueError, OverflowError):
                raise self._wrong(row, f"an {type_} as a float", value) from None
        bits = float_bits(type_, value)
        if bits in infinite and math.isfinite(value):
            wanted = f"a finite {type_}; write math.inf if that is meant"
            raise self._wrong(row, wanted, value)
        self._shape = self._shape.push(type_)
        self._opcodes.append(opcode)
        self._immediates.append(bits)

    return method


def _of_local(row: Instruction) -> Method:
    opcode = row.opcode

    def get(self: Body, local: Local | str) -> None:
        if local.__class__ is not Local or local.function is not self:
            local = self._local(row, local)
        try:
            self._shape = self._shape.after[local.type]
        except KeyError:
            self._shape = self._shape.push(local.type)
        self._opcodes.append(opcode)
        self._immediates.append(local.word)

    def set_(self: Body, local: Local | str) -> None:
        if local.__class__ is not Local or local.function is not self:
            local = self._local(row, local)
        try:
            self._shape = self._shape.after[local.pop]
        except KeyError:
            self._shape = self._stepped(row, local.pop, local.type)
        self._opcodes.append(opcode)
        self._immediates.append(local.word)

    return set_ if row.pops else get


def _of_static(row: Instruction) -> Method:
    opcode = row.opcode

    def method(self: Body, static: Static) -> None:
        static = self._static(row, static)
        key = static.pop if row.pops else static.type
        try:
            self._shape = self._shape.after[key]
        except KeyError:
            self._shape = self._stepped(row, key, static.type)
        self._opcodes.append(opcode)
        self._immediates.append(static.number)

    return method


def _offset(row: Instruction) -> Method:
    opcode = row.opcode

    def method(self: Body, offset: int = 0) -> None:
        if offset.__class__ is not int:
            offset = _index(self, row, "a byte offset", offset)
        if not 0 <= offset < 1 << 32:
            self._out_of_range(row, offset, 0, (1 << 32) - 1)
        try:
            self._shape = self._shape.after[opcode]
        except KeyError:
            self._shape = self._stepped(row, opcode)
        self._opcodes.append(opcode)
        self._immediates.append(offset)

    return method


def _target(row: Instruction) -> Method:
    opcode, is_end = row.opcode, row.flow is Flow.JUMP

    def method(self: Body, label: Label) -> None:
        label = self._target(row, label)
        after = self._shape.after.get(opcode) or self._stepped(row, opcode)
        self._go((label,), after)
        self._refer(label)
        self._opcodes.append(opcode)
        self._immediates.append(0)
        self._shape = after
        if is_end:
            self._end_path()

    return method


def _labels(row: Instruction) -> Method:
    def method(self: Body, *labels: Label) -> None:
        if not labels:
            raise self._fault(f"{method_name(row)} takes one label or more, found none")
        targets = [self._target(row, label) for label in labels]
        after = self._stepped(row, row.opcode)
        self._go(targets, after)
        self._opcodes.append(row.opcode)
        self._immediates.append(len(targets) - 1)
        for label in targets:
            self._refer(label)
            self._opcodes.append(_JUMP)
            self._immediates.append(0)
        self._end_path()

    return method


def _function(row: Instruction) -> Method:
    opcode = row.opcode

    def method(self: Body, function: Body) -> None:
        callee = self._callee(row, function)
        effect = callee.effect
        try:
            self._shape = self._shape.after[effect]
        except KeyError:
            self._shape = self._called(row, callee.signature, effect)
        self.code.relocations.append((len(self._opcodes), callee.name))
        self._opcodes.append(opcode)
        self._immediates.append(0)

    return method


def _item(row: Instruction) -> Method:
    opcode = row.opcode

    def method(self: Body, function: Body) -> None:
        callee = self._callee(row, function)
        self._shape = self._pushed_item(row, callee.signature)
        self.code.relocations.append((len(self._opcodes), callee.name))
        self._opcodes.append(opcode)
        self._immediates.append(0)

    return method


def _host(row: Instruction) -> Method:
    opcode = row.opcode

    def method(self: Body, host: Host) -> None:
        host = self._host(row, host)
        try:
            self._shape = self._shape.after[host.effect]
        except KeyError:
            self._shape = self._called(row, host.signature, host.effect)
        self.code.relocations.append((len(self._opcodes), host.name))
        self._opcodes.append(opcode)
        self._immediates.append(0)

    return method


def _throw(row: Instruction) -> Method:
    opcode = row.opcode

    def method(self: Body, tag: Tag) -> None:
        tag = self._tag(method_name(row), tag)
        self._effect(method_name(row), tag.parameters, (), None, {})
        self.code.relocations.append((len(self._opcodes), tag.name))
        self._opcodes.append(opcode)
        self._immediates.append(0)
        self._end_path()

    return method


def _signature(row: Instruction) -> Method:
    opcode = row.opcode

    def method(self: Body, signature: Signature) -> None:
        if not isinstance(signature, Signature):
            raise self._wrong(row, "a Signature", signature)
        self._shape = self._called(row, signature, None)
        self.code.relocations.append((len(self._opcodes), signature))
        self._opcodes.append(opcode)
        self._immediates.append(0)

    return method


def _results(row: Instruction) -> Method:
    opcode = row.opcode

    def method(self: Body) -> None:
        signature = self.signature
        self._effect(method_name(row), signature.results, (), None, {})
        self._opcodes.append(opcode)
        counts = len(signature.parameters), len(signature.results)
        self._immediates.append(return_immediate(*counts))
        self._end_path()

    return method


def _typed(row: Instruction) -> Method:
    def method(self: Body, type: OperandType) -> None:
        found = self._reference(row, type)
        self._append(row, found.number, {REF.name: found})

    return method


def _fields(row: Instruction) -> Method:
    def method(self: Body, struct: Struct) -> None:
        made = self._struct(row, struct)
        made.is_used = True
        types = [field.type for field in made]
        self._append(row, made.type.number, {REF.name: made.type}, types)

    return method


def _struct(row: Instruction) -> Method:
    def method(self: Body, struct: Struct) -> None:
        made = self._struct(row, struct)
        self._append(row, made.type.number, {REF.name: made.type})

    return method


def _array(row: Instruction) -> Method:
    def method(self: Body, array: Array) -> None:
        found = self._array(row, array)
        self._append(row, found.type.number, {REF.name: found.type, T.name: found.element})

    return method


def _field(row: Instruction) -> Method:
    def method(self: Body, field: Field) -> None:
        found = self._field(row, field)
        self._append(row, found.immediate, {REF.name: found.struct.type, T.name: found.type})

    return method


_MAKERS: dict[Immediate, Callable[[Instruction], Any]] = {
    Immediate.NONE: _bare,
    Immediate.I32: _integer,
    Immediate.I64: _integer,
    Immediate.F32: _float,
    Immediate.F64: _float,
    Immediate.LOCAL: _of_local,
    Immediate.STATIC: _of_static,
    Immediate.OFFSET: _offset,
    Immediate.TARGET: _target,
    Immediate.FUNCTION: _function,
    Immediate.ITEM: _item,
    Immediate.SIGNATURE: _signature,
    Immediate.HOST: _host,
    Immediate.TAG: _throw,
    Immediate.TYPE: _typed,
    Immediate.FIELDS: _fields,
    Immediate.STRUCT: _struct,
    Immediate.ARRAY: _array,
    Immediate.FIELD: _field,
    Immediate.LABELS: _labels,
    Immediate.RESULTS: _results,
}
