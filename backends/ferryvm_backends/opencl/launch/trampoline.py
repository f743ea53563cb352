# SPDX-License-Identifier: Apache-2.0
"""The base of trampolines: records, control blocks, calls."""

from __future__ import annotations

import ctypes

from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock, Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import stack_register
from ferryvm_backends.opencl.launch import STACK, Record

WORD, INT, BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
POINTER = ir.PointerType()
NULL = ir.Constant(POINTER, None)

_ENQUEUE = [WORD, WORD, INT, POINTER, POINTER, POINTER, INT, POINTER, POINTER]
MONOTONIC = 1
"""CLOCK_MONOTONIC."""


def word(value: int) -> ir.Constant:
    """A word's constant."""
    return ir.Constant(WORD, value)


def status(value: Status) -> ir.Constant:
    """A status as functions return it."""
    return ir.Constant(INT, int(value))


def offset(kind: type[ctypes.Structure], name: str) -> int:
    """The offset of a field of a structure, in bytes."""
    found: int = getattr(kind, name).offset
    return found


class Trampoline:
    """A function from a record and a control block to a status."""

    name: str

    def __init__(self, module: ir.Module) -> None:
        self.module = module
        signature = ir.FunctionType(INT, [POINTER, POINTER])
        self.function = ir.Function(module, signature, self.name)
        self.record, self.control = self.function.args
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        one = ir.ArrayType(WORD, 1)
        self._one = ir.GlobalVariable(module, one, f"{self.name}_one")
        self._one.initializer = ir.Constant(one, [1])
        self._one.global_constant, self._one.linkage = True, "internal"
        self._check_stack()
        self.emit()

    def emit(self) -> None:
        """Write the function."""
        raise NotImplementedError

    def _check_stack(self) -> None:
        """Leave at once where the thread's stack may be too small for the driver."""
        b = self.builder
        lowest = b.add(self.field("host_stack"), word(STACK))
        with b.if_then(b.icmp_unsigned("<", stack_register(b), lowest), likely=False):
            self.count("crowded", 1)
            self.set_field("status", status(Status.LEAVE))
            b.ret(status(Status.LEAVE))

    # --- fields -----------------------------------------------------------------------------

    def at(self, base: ir.Value, further: int | ir.Value) -> ir.Value:
        """So many bytes further."""
        if isinstance(further, int):
            further = word(further)
        return self.builder.gep(base, [further], source_etype=BYTE)

    def element(self, base: ir.Value, number: ir.Value) -> ir.Value:
        """So many words further."""
        return self.builder.gep(base, [number], source_etype=WORD)

    def pointer(self, address: ir.Value) -> ir.Value:
        """An address that is a word."""
        return self.builder.inttoptr(address, POINTER)

    def get(self, name: str) -> ir.Value:
        """A word of the record."""
        return self.read(self.record, Record, name)

    def set(self, name: str, value: ir.Value | int) -> None:
        """Set a word of the record."""
        if isinstance(value, int):
            value = word(value)
        self.builder.store(value, self.at(self.record, offset(Record, name)), align=8)

    def count(self, name: str, more: ir.Value | int) -> ir.Value:
        """Add to a word of the record; its new value."""
        total = self.builder.add(self.get(name), word(more) if isinstance(more, int) else more)
        self.set(name, total)
        return total

    def read(self, base: ir.Value, kind: type[ctypes.Structure], name: str) -> ir.Value:
        """A field of a structure."""
        where = getattr(kind, name)
        loaded = ir.IntType(8 * where.size)
        return self.builder.load(self.at(base, where.offset), align=where.size, typ=loaded)

    def write(
        self,
        base: ir.Value,
        kind: type[ctypes.Structure],
        name: str,
        value: ir.Value,
        place: int = 0,
    ) -> None:
        """Set a field of a structure, or a word of one that is an array."""
        where = self.at(base, offset(kind, name) + WORD_BYTES * place)
        self.builder.store(value, where, align=4)

    def field(self, name: str) -> ir.Value:
        """A field of the control block."""
        return self.read(self.control, ControlBlock, name)

    def set_field(self, name: str, value: ir.Value, place: int = 0) -> None:
        """Set a field of the control block."""
        self.write(self.control, ControlBlock, name, value, place)

    # --- calls ------------------------------------------------------------------------------

    def call(self, name: str, result: ir.Type, kinds: list[ir.Type], *given: object) -> ir.Value:
        """Call a function whose address the record has."""
        callee = ir.Callee(self.pointer(self.get(name)), ir.FunctionType(result, kinds))
        arguments = [
            a if isinstance(a, ir.Value) else ir.Constant(kind, a)
            for a, kind in zip(given, kinds, strict=True)
        ]
        return self.builder.call(callee, arguments)

    def back(self, why: int) -> ir.Value:
        """Ask Python, which returns a status."""
        address = self.builder.ptrtoint(self.control, WORD)
        return self.call("back", INT, [WORD, WORD, WORD], self.get("key"), address, why)

    def enqueue(self) -> ir.Value:
        """Start the kernel; an error, or 0."""
        sizes = [NULL, self._one, self._one]
        handles = self.get("queue"), self.get("kernel")
        return self.call("enqueue", INT, _ENQUEUE, *handles, 1, *sizes, 0, NULL, NULL)

    # --- time and guards --------------------------------------------------------------------

    def now(self, at: ir.Value) -> ir.Value:
        """Nanoseconds of the clock; `at`: memory for the result."""
        b = self.builder
        self.call("clock", INT, [INT, POINTER], MONOTONIC, at)
        seconds = b.load(at, align=8, typ=WORD)
        rest = b.load(self.at(at, 8), align=8, typ=WORD)
        return b.add(b.mul(seconds, word(10**9)), rest)

    def is_observed(self) -> ir.Value:
        """True if time and instructions are to be counted."""
        return self.builder.icmp_unsigned("!=", self.get("observed"), word(0))

    def forced_place(self, entries: ir.Value) -> ir.Value:
        """The place at which forced code gives up next."""
        return self.builder.add(self.builder.urem(entries, word(7)), word(1))

    def end(self, found: ir.Value) -> None:
        """Return a status; guards that failed are counted."""
        b = self.builder
        with b.if_then(b.icmp_unsigned("==", found, status(Status.GUARD)), likely=False):
            number = b.zext(self.field("exit_id"), WORD)
            where = self.element(self.pointer(self.get("failures")), number)
            total = b.add(b.load(where, align=8, typ=WORD), word(1))
            b.store(total, where, align=8)
            is_often = b.icmp_unsigned(">=", total, self.get("guard_limit"))
            returned = b.select(is_often, status(Status.GUARD), status(Status.LEAVE))
            self.set_field("status", returned)
            b.ret(returned)
        b.ret(found)
