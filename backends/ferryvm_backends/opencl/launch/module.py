# SPDX-License-Identifier: Apache-2.0
"""The native code of doors, as an LLVM module."""

from __future__ import annotations

from llvmlite import ir

from ferryvm.machine.control import ControlBlock, Status
from ferryvm_backends._llvm.callee import Callee
from ferryvm_backends.opencl.launch import DOORS, MOST_BUFFERS, RECORD_BYTES, Record, Wrapping

_WORD, _INT, _BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
_POINTER = ir.PointerType()

_ENQUEUE = [_WORD, _WORD, _INT, _POINTER, _POINTER, _POINTER, _INT, _POINTER, _POINTER]
_UNMAP = [_WORD, _WORD, _WORD, _INT, _POINTER, _POINTER]
_MAP = [_WORD, _WORD, _INT, _WORD, _WORD, _WORD, _INT, _POINTER, _POINTER, _POINTER]
_READ_WRITE = 3
"""CL_MAP_READ and CL_MAP_WRITE."""
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
        self.failed, self.error = b.alloca(_INT), b.alloca(_INT)
        self._bind()
        rest = b.add(b.urem(entries, ir.Constant(_WORD, 7)), ir.Constant(_WORD, 1))
        self.set_field("scratch", rest, 0)  # where forced code gives up next
        is_observed = b.icmp_unsigned("!=", self.get("observed"), ir.Constant(_WORD, 0))
        fuel = self.field("fuel")
        with b.if_then(is_observed):
            b.store(self.now(time), began, align=8)
        self._run()
        with b.if_then(is_observed):
            self.count("nanoseconds", b.sub(self.now(time), b.load(began, align=8, typ=_WORD)))
            self.count("instructions", b.sub(fuel, self.field("fuel")))
        failed = b.load(self.failed, align=4, typ=_INT)
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
        for name, field in (("heap", "heap"), ("capacity", "heap_capacity")):
            wrong = b.or_(wrong, b.icmp_unsigned("!=", self.get(name), self.field(field)))
        with b.if_then(wrong, likely=False):
            status = self.call("bind", _INT, [_WORD, _WORD], self.get("key"), address)
            with b.if_then(b.icmp_unsigned("!=", status, _status(Status.RUNNING))):
                self.set_field("status", status)
                b.ret(status)

    def _run(self) -> None:
        """Run the kernel once; `failed` becomes the error of the call that failed, or 0."""
        b, null = self.builder, ir.Constant(_POINTER, None)
        b.store(ir.Constant(_INT, 0), self.failed, align=4)
        queue = self.get("queue")
        self.wrapping = b.inttoptr(self.get("wrapping"), _POINTER)

        def note(error: ir.Value) -> None:
            b.store(b.or_(b.load(self.failed, align=4, typ=_INT), error), self.failed, align=4)

        maps = b.icmp_unsigned("!=", self.get("maps"), ir.Constant(_WORD, 0))
        with b.if_then(maps):
            for place in range(MOST_BUFFERS):
                with self._if_buffer(place):
                    buffer, mapped = self._item("buffer", place), self._item("mapped", place)
                    with b.if_then(b.icmp_unsigned("!=", mapped, ir.Constant(_WORD, 0))):
                        note(self.call("unmap", _INT, _UNMAP, queue, buffer, mapped, 0, null, null))
        sizes = [null, self.size, self.size]
        kernel = self.get("kernel")
        note(self.call("enqueue", _INT, _ENQUEUE, queue, kernel, 1, *sizes, 0, null, null))
        with b.if_else(maps) as (mapped_case, other_case):
            with mapped_case:
                for place in range(MOST_BUFFERS):
                    with self._if_buffer(place):
                        self._map(queue, place)
                        note(b.load(self.error, align=4, typ=_INT))
            with other_case:
                note(self.call("finish", _INT, [_WORD], queue))

    def _map(self, queue: ir.Value, place: int) -> None:
        """Map a buffer for the host, once the kernel has ended."""
        b, null = self.builder, ir.Constant(_POINTER, None)
        b.store(ir.Constant(_INT, 0), self.error, align=4)
        buffer, size = self._item("buffer", place), self._item("size", place)
        mapped = self.call(
            "map", _WORD, _MAP, queue, buffer, 1, _READ_WRITE, 0, size, 0, null, null, self.error
        )
        b.store(mapped, self._item_at("mapped", place), align=8)

    def _item(self, name: str, place: int) -> ir.Value:
        return self.builder.load(self._item_at(name, place), align=8, typ=_WORD)

    def _item_at(self, name: str, place: int) -> ir.Value:
        offset: int = getattr(Wrapping, name).offset
        return self._at(self.wrapping, offset + 8 * place)

    def _if_buffer(self, place: int):  # type: ignore[no-untyped-def]  # llvmlite has no types
        count = self.builder.load(self.wrapping, align=8, typ=_WORD)
        is_there = self.builder.icmp_unsigned(">", count, ir.Constant(_WORD, place))
        return self.builder.if_then(is_there)

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
