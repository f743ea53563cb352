# SPDX-License-Identifier: Apache-2.0
"""The native code of doors, as an LLVM module."""

from __future__ import annotations

from llvmlite import ir

from ferryvm.machine.control import ControlBlock, Status
from ferryvm_backends._llvm.callee import Callee
from ferryvm_backends.opencl.launch import DOORS, RECORD_BYTES, Record

_WORD, _INT, _BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
_POINTER = ir.PointerType()

_ENQUEUE = [_WORD, _WORD, _INT, _POINTER, _POINTER, _POINTER, _INT, _POINTER, _POINTER]
_MONOTONIC = 1
"""CLOCK_MONOTONIC."""


def build() -> tuple[ir.Module, bytes]:
    """The module: `door_0` and so on, and their `records`."""
    module = ir.Module("doors")
    kind = ir.ArrayType(_BYTE, DOORS * RECORD_BYTES)
    records = ir.GlobalVariable(module, kind, "records")
    records.initializer = ir.Constant(kind, None)
    records.align = 8
    launch = _Launch(module).function
    for number in range(DOORS):
        door = ir.Function(module, ir.FunctionType(_INT, [_POINTER]), f"door_{number}")
        builder = ir.IRBuilder(door.append_basic_block())
        offset = ir.Constant(_WORD, number * RECORD_BYTES)
        record = builder.gep(records, [offset], source_etype=_BYTE)
        builder.ret(builder.call(launch, [record, door.args[0]], tail="tail"))
    return module, b""


def _status(status: Status) -> ir.Constant:
    return ir.Constant(_INT, int(status))


class _Launch:
    """The function behind all doors."""

    def __init__(self, module: ir.Module) -> None:
        self.function = ir.Function(module, ir.FunctionType(_INT, [_POINTER, _POINTER]), "launch")
        self.function.linkage = "internal"
        self.record, self.control = self.function.args
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        one = ir.ArrayType(_WORD, 1)
        size = ir.GlobalVariable(module, one, "one")
        size.initializer = ir.Constant(one, [1])
        size.global_constant, size.linkage = True, "internal"
        self.size = size
        self._emit()

    # --- fields -----------------------------------------------------------------------------

    def _at(self, base: ir.Value, offset: int | ir.Value) -> ir.Value:
        if isinstance(offset, int):
            offset = ir.Constant(_WORD, offset)
        return self.builder.gep(base, [offset], source_etype=_BYTE)

    def get(self, name: str) -> ir.Value:
        return self.builder.load(self._field(name), align=8, typ=_WORD)

    def set(self, name: str, value: ir.Value | int) -> None:
        if isinstance(value, int):
            value = ir.Constant(_WORD, value)
        self.builder.store(value, self._field(name), align=8)

    def _field(self, name: str) -> ir.Value:
        return self._at(self.record, getattr(Record, name).offset)

    def field(self, name: str) -> ir.Value:
        where = getattr(ControlBlock, name)
        kind = ir.IntType(8 * where.size)
        return self.builder.load(self._at(self.control, where.offset), align=where.size, typ=kind)

    def set_field(self, name: str, value: ir.Value, place: int = 0) -> None:
        where = getattr(ControlBlock, name)
        self.builder.store(value, self._at(self.control, where.offset + 8 * place), align=4)

    def call(self, name: str, result: ir.Type, kinds: list[ir.Type], *given: object) -> ir.Value:
        """Call a function of the record."""
        callee = Callee(
            self.builder.inttoptr(self.get(name), _POINTER), ir.FunctionType(result, kinds)
        )
        arguments = [
            a if isinstance(a, ir.Value) else ir.Constant(kind, a)
            for a, kind in zip(given, kinds, strict=True)
        ]
        return self.builder.call(callee, arguments)

    def now(self, at: ir.Value) -> ir.Value:
        """Nanoseconds of the clock; `at`: room for its answer."""
        b = self.builder
        self.call("clock", _INT, [_INT, _POINTER], _MONOTONIC, at)
        seconds = b.load(at, align=8, typ=_WORD)
        rest = b.load(self._at(at, 8), align=8, typ=_WORD)
        return b.add(b.mul(seconds, ir.Constant(_WORD, 10**9)), rest)

    def count(self, name: str, more: ir.Value | int) -> ir.Value:
        if isinstance(more, int):
            more = ir.Constant(_WORD, more)
        total = self.builder.add(self.get(name), more)
        self.set(name, total)
        return total

    # --- the function -----------------------------------------------------------------------

    def _emit(self) -> None:
        b = self.builder
        entries = self.count("entries", 1)
        time, began = b.alloca(ir.ArrayType(_WORD, 2)), b.alloca(_WORD)
        self._bind()
        rest = b.add(b.urem(entries, ir.Constant(_WORD, 7)), ir.Constant(_WORD, 1))
        self.set_field("scratch", rest, 0)  # where forced code gives up next
        is_observed = b.icmp_unsigned("!=", self.get("observed"), ir.Constant(_WORD, 0))
        fuel = self.field("fuel")
        with b.if_then(is_observed):
            b.store(self.now(time), began, align=8)
        failed = self._run()
        with b.if_then(is_observed):
            self.count("nanoseconds", b.sub(self.now(time), b.load(began, align=8, typ=_WORD)))
            self.count("instructions", b.sub(fuel, self.field("fuel")))
        with b.if_then(b.icmp_signed("!=", failed, ir.Constant(_INT, 0)), likely=False):
            self.set("error", b.sext(failed, _WORD))
            self.set_field("status", _status(Status.LOST))
            b.ret(_status(Status.LOST))
        status = self.field("status")
        with b.if_then(b.icmp_unsigned("==", status, _status(Status.GUARD)), likely=False):
            self._guard_failed()
        b.ret(status)

    def _bind(self) -> None:
        """Have the kernel's arguments set for this machine, if they are for another one."""
        b = self.builder
        address = b.ptrtoint(self.control, _WORD)
        wrong = b.icmp_unsigned("!=", self.get("control"), address)
        watched = (("heap", "heap"), ("capacity", "heap_capacity"), ("stack_end", "stack_end"))
        for name, field in watched:
            wrong = b.or_(wrong, b.icmp_unsigned("!=", self.get(name), self.field(field)))
        with b.if_then(wrong, likely=False):
            status = self.call("bind", _INT, [_WORD, _WORD], self.get("key"), address)
            with b.if_then(b.icmp_unsigned("!=", status, _status(Status.RUNNING))):
                self.set_field("status", status)
                b.ret(status)

    def _run(self) -> ir.Value:
        """Run the kernel once; the errors of both calls, 0 if there was none."""
        b, null = self.builder, ir.Constant(_POINTER, None)
        queue, kernel = self.get("queue"), self.get("kernel")
        sizes = [null, self.size, self.size]
        failed = self.call("enqueue", _INT, _ENQUEUE, queue, kernel, 1, *sizes, 0, null, null)
        return b.or_(failed, self.call("finish", _INT, [_WORD], queue))

    def _guard_failed(self) -> None:
        b = self.builder
        number = b.zext(self.field("exit_id"), _WORD)
        failures = b.inttoptr(self.get("failures"), _POINTER)
        where = self._at(failures, b.shl(number, ir.Constant(_WORD, 3)))
        total = b.add(b.load(where, align=8, typ=_WORD), ir.Constant(_WORD, 1))
        b.store(total, where, align=8)
        is_often = b.icmp_unsigned(">=", total, self.get("guard_limit"))
        status = b.select(is_often, _status(Status.GUARD), _status(Status.LEAVE))
        self.set_field("status", status)
        b.ret(status)
