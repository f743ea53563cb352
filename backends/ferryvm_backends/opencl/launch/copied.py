# SPDX-License-Identifier: Apache-2.0
"""The native code behind entry stubs of kernels on devices with memory of their own.

    control ─┐
    words that differ from the mirror ─> packet ─> kernel ─> staging ─> mirror, machine

That is the common case: few words have changed, the heap has not, and little may have changed on
the device. `back` handles all other cases.
"""

from __future__ import annotations

import ctypes

from ferryvm.ir.c.context import FORCED_WORD, LOWEST_WORD, SLICE_WORD
from ferryvm.ir.c.opencl import PACKET_WORDS
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import REGISTER_BYTES, ControlBlock, Status
from ferryvm_backends._llvm import ir
from ferryvm_backends.opencl.launch import ENTER, FAILED, GO_ON, STAGING_WORDS, Residence
from ferryvm_backends.opencl.launch.trampoline import (
    BYTE,
    INT,
    NULL,
    POINTER,
    WORD,
    Trampoline,
    offset,
    status,
    word,
)
from ferryvm_backends.opencl.packet import ARGUMENT, CONTROL_WORDS, Packet

_MORE = 32
"""Words above the stack pointer that are read as well, because the kernel may push."""
_SET_ARGUMENT = [WORD, INT, WORD, POINTER]
_READ = [WORD, WORD, INT, WORD, WORD, POINTER, INT, POINTER, POINTER]


class CopiedLauncher(Trampoline):
    """Pass the changes with the kernel's arguments, run it, read its changes."""

    name = "launch_copied"

    def emit(self) -> None:
        b = self.builder
        self._differing = _differing(self.module)
        self._time, self._began = b.alloca(ir.ArrayType(WORD, 2)), b.alloca(WORD)
        storage = b.alloca(ir.ArrayType(BYTE, ctypes.sizeof(Packet)), align=8)
        self._packet = self.pointer(b.ptrtoint(storage, WORD))
        self._statics_at, self._statics_count = b.alloca(WORD), b.alloca(WORD)
        self._stack_at, self._needed = b.alloca(WORD), b.alloca(WORD)
        self._slow = self.function.append_basic_block("slow")
        self._failed = self.function.append_basic_block("failed")
        self._error = b.alloca(INT)

        b.store(word(0), self._statics_count, align=8)
        self._unless(b.icmp_unsigned("!=", self.get("residence"), word(0)))
        self._unless(b.icmp_unsigned("==", self.get("objects"), word(0)))
        self._residence = self.pointer(self.get("residence"))
        self._check_machine()
        self._static_count, self._sp = self.field("static_count"), self.field("sp")
        self._below = b.add(self._static_count, word(CONTROL_WORDS))
        """Words of the device's copy below the stack."""
        self._end = b.add(b.add(self._below, self._sp), word(_MORE))
        self._unless(b.icmp_unsigned("<=", self._end, word(STAGING_WORDS)))
        self._end = self._at_most(self._end, b.add(self._below, self._stack_words()))
        self._mirror = self.pointer(self._resident("mirror"))
        self._check_heap()
        self._compare()
        self._fill()
        self._run()
        self._accept()

        b.position_at_end(self._slow)
        b.ret(self.back(ENTER))
        b.position_at_end(self._failed)
        self.set("error", b.sext(b.load(self._error, align=4, typ=INT), WORD))
        b.ret(self.back(FAILED))

    # --- small things -----------------------------------------------------------------------

    def _unless(self, condition: ir.Value) -> None:
        """Unless it holds Python does it."""
        b = self.builder
        further = self.function.append_basic_block()
        b.cbranch(condition, further, self._slow)
        b.position_at_end(further)

    def _check_error(self, error: ir.Value) -> None:
        b = self.builder
        b.store(error, self._error, align=4)
        further = self.function.append_basic_block()
        b.cbranch(b.icmp_signed("==", error, ir.Constant(INT, 0)), further, self._failed)
        b.position_at_end(further)

    def _resident(self, name: str) -> ir.Value:
        return self.read(self._residence, Residence, name)

    def _set_resident(self, name: str, value: ir.Value) -> None:
        self.write(self._residence, Residence, name, value)

    def _at_most(self, one: ir.Value, other: ir.Value) -> ir.Value:
        return self.builder.select(self.builder.icmp_unsigned("<", one, other), one, other)

    def _at_least(self, one: ir.Value, other: ir.Value) -> ir.Value:
        return self.builder.select(self.builder.icmp_unsigned(">", one, other), one, other)

    def _has(self, name: str) -> ir.Value:
        return self.builder.icmp_unsigned("!=", self.get(name), word(0))

    def _bytes(self, words: ir.Value) -> ir.Value:
        return self.builder.shl(words, word(WORD_BYTES.bit_length() - 1))

    def _stack_words(self) -> ir.Value:
        b = self.builder
        size = b.sub(self.field("stack_end"), self.field("stack"))
        return b.lshr(size, word(WORD_BYTES.bit_length() - 1))

    def _copy(self, to: ir.Value, source: ir.Value, size: ir.Value) -> None:
        parameters = [POINTER, POINTER, WORD, ir.IntType(1)]
        memcpy = self.module.intrinsic("llvm.memcpy.p0.p0.i64", ir.VoidType(), parameters)
        self.builder.call(memcpy, [to, source, size, ir.Constant(ir.IntType(1), 0)])

    # --- steps ------------------------------------------------------------------------------

    def _check_machine(self) -> None:
        """It is the machine that the kernel's arguments are set for, with its heap as it was."""
        b = self.builder
        address = b.ptrtoint(self.control, WORD)
        same = b.icmp_unsigned("==", self._resident("control"), address)
        watched = (("heap", "heap"), ("capacity", "heap_capacity"), ("stack_end", "stack_end"))
        for name, field in watched:
            same = b.and_(same, b.icmp_unsigned("==", self._resident(name), self.field(field)))
        self._unless(same)

    def _check_heap(self) -> None:
        """Continue only if the device has the heap, and the kernel does not change it."""
        b = self.builder
        self._unless(b.icmp_unsigned("==", self.get("writes_heap"), word(0)))
        with b.if_then(self._has("reads_heap")):
            used = self._at_least(self.field("hp"), self._resident("used"))
            given = self.pointer(self.field("heap")), self.pointer(self._resident("heap_mirror"))
            differs = self.call("compare", INT, [POINTER, POINTER, WORD], *given, used)
            self._unless(b.icmp_signed("==", differs, ir.Constant(INT, 0)))
            self._set_resident("used", self.field("hp"))

    def _compare(self) -> None:
        """The words of statics and stack that differ on the device."""
        b = self.builder
        self._host_statics = self.pointer(self.field("statics"))
        self._host_stack = self.pointer(self.field("stack"))
        self._statics = self.at(self._mirror, WORD_BYTES * CONTROL_WORDS)
        self._stack = self.element(self._mirror, self._below)
        with b.if_then(self._has("statics")):
            count = self._static_count
            places = self._host_statics, self._statics
            given = [*places, word(0), count, count, self._statics_at]
            b.store(b.call(self._differing, given), self._statics_count, align=8)
        self._first = b.sub(self.field("fp"), self.get("parameters"))
        first = b.select(self._has("callers"), word(0), self._first)
        known = self._at_least(b.lshr(self._resident("valid"), word(3)), first)
        known = self._at_most(known, self._sp)
        places = self._host_stack, self._stack
        self._stack_count = b.call(
            self._differing, [*places, first, known, self._sp, self._stack_at]
        )
        total = b.add(b.load(self._statics_count, align=8, typ=WORD), self._stack_count)
        self._unless(b.icmp_unsigned("<=", total, word(PACKET_WORDS)))

    def _fill(self) -> None:
        """Write the packet, and have the mirror as the device will be."""
        b, packet = self.builder, self._packet
        entries = self.count("entries", 1)
        self._copy(packet, self.control, word(ctypes.sizeof(ControlBlock)))
        self.write(packet, ControlBlock, "interrupt", ir.Constant(INT, 0))
        scratch = {
            FORCED_WORD: self.forced_place(entries),
            LOWEST_WORD: self._first,
            SLICE_WORD: self.get("slice"),
        }
        for index, value in scratch.items():
            self.write(packet, ControlBlock, "scratch", value, index)
        words = self.at(packet, offset(Packet, "words"))
        count = b.load(self._statics_count, align=8, typ=WORD)
        self.write(packet, Packet, "statics_count", count)
        self.write(packet, Packet, "stack_count", self._stack_count)
        moved = (
            (self._statics_at, count, self._host_statics, self._statics, words, "statics_at"),
            (
                self._stack_at,
                self._stack_count,
                self._host_stack,
                self._stack,
                self.element(words, count),
                "stack_at",
            ),
        )
        for slot, size, host, mirror, place, name in moved:
            with b.if_then(b.icmp_unsigned("!=", size, word(0))):
                at = b.load(slot, align=8, typ=WORD)
                self.write(packet, Packet, name, at)
                self._copy(place, self.element(host, at), self._bytes(size))
                self._copy(self.element(mirror, at), self.element(host, at), self._bytes(size))
        self.count("to_device", ctypes.sizeof(Packet))

    def _run(self) -> None:
        """Run the kernel, and read its results into the mirror."""
        b = self.builder
        is_observed = self.is_observed()
        with b.if_then(is_observed):
            b.store(self.now(self._time), self._began, align=8)
        given = self.get("kernel"), ARGUMENT, ctypes.sizeof(Packet), self._packet
        self._check_error(self.call("set_argument", INT, _SET_ARGUMENT, *given))
        self._check_error(self.enqueue())
        staging = self.pointer(self._resident("staging"))
        self._check_error(self._read(word(0), self._end, staging, False))
        self._check_error(self.call("finish", INT, [WORD], self.get("queue")))
        self._copy(self._mirror, staging, self._bytes(self._end))
        self._sp_after = self.read(self._mirror, ControlBlock, "sp")
        needed = b.add(self._below, self._sp_after)
        is_more = b.icmp_unsigned(">", needed, self._end)
        b.store(self._end, self._needed, align=8)
        with b.if_then(is_more, likely=False):
            rest = self.element(self._mirror, self._end)
            self._check_error(self._read(self._end, needed, rest, True))
            b.store(needed, self._needed, align=8)
        self._end = b.load(self._needed, align=8, typ=WORD)
        with b.if_then(is_observed):
            spent = b.sub(self.now(self._time), b.load(self._began, align=8, typ=WORD))
            self.count("nanoseconds", spent)

    def _read(self, first: ir.Value, end: ir.Value, place: ir.Value, is_blocking: bool) -> ir.Value:
        """Read these words of the device; an error, or 0."""
        size = self._bytes(self.builder.sub(end, first))
        self.count("to_host", size)
        given = int(is_blocking), self._bytes(first), size, place, 0, NULL, NULL
        handles = self.get("queue"), self._resident("buffer")
        return self.call("read", INT, _READ, *handles, *given)

    def _accept(self) -> None:
        """Bring the machine to the device's state."""
        b, mirror = self.builder, self._mirror
        scratch = offset(ControlBlock, "scratch") + WORD_BYTES * LOWEST_WORD
        lowest = b.load(self.at(mirror, scratch), align=8, typ=WORD)
        with b.if_then(b.icmp_unsigned("<", lowest, self._sp_after)):
            size = self._bytes(b.sub(self._sp_after, lowest))
            places = self.element(self._host_stack, lowest), self.element(self._stack, lowest)
            self._copy(*places, size)
        with b.if_then(self._has("writes_statics")):
            self._copy(self._host_statics, self._statics, self._bytes(self._static_count))
        self._set_resident("valid", self._bytes(b.sub(self._end, self._below)))
        hp = self.read(mirror, ControlBlock, "hp")
        self._set_resident("used", self._at_least(hp, self._resident("used")))
        fuel = b.sub(self.field("fuel"), self.read(mirror, ControlBlock, "fuel"))
        self.count("instructions", fuel)
        self._copy(self.control, mirror, word(REGISTER_BYTES))
        self.set_field("wanted", self.read(mirror, ControlBlock, "wanted"))
        found = self.field("status")
        is_over = b.icmp_unsigned("==", found, status(Status.INTERRUPTED))
        is_wanted = b.icmp_unsigned("==", self.field("interrupt"), ir.Constant(INT, 0))
        with b.if_then(b.and_(is_over, is_wanted), likely=False):
            is_here = b.icmp_unsigned("==", self.field("pc"), self.get("entry"))
            with b.if_then(is_here):
                b.ret(self.back(GO_ON))
            self.set_field("status", status(Status.SLICED))
            b.ret(status(Status.SLICED))
        self.end(found)


def _differing(module: ir.Module) -> ir.Function:
    """A function that finds the range of words that differ, and returns their number. Its
    arguments: two addresses, the index of the first word, the end of the comparison, the total end
    (the words between the two ends count as different), and a pointer for the start of the range.
    """
    kinds = [POINTER, POINTER, WORD, WORD, WORD, POINTER]
    function = ir.Function(module, ir.FunctionType(WORD, kinds), "differing")
    function.linkage = "internal"
    one, two, first, known, end, at = function.args
    b = ir.IRBuilder(function.append_basic_block("entry"))

    def differs(place: ir.Value) -> ir.Value:
        words = [
            b.load(b.gep(base, [place], source_etype=WORD), align=8, typ=WORD)
            for base in (one, two)
        ]
        return b.icmp_unsigned("!=", *words)

    entry = b.block
    up, look, low = (function.append_basic_block(name) for name in ("up", "look", "low"))
    down, peer, found = (function.append_basic_block(name) for name in ("down", "peer", "found"))
    b.branch(up)
    b.position_at_end(up)
    lowest = b.phi(WORD)
    lowest.add_incoming(first, entry)
    b.cbranch(b.icmp_unsigned("<", lowest, known), look, low)
    b.position_at_end(look)
    lowest.add_incoming(b.add(lowest, word(1)), look)
    b.cbranch(differs(lowest), low, up)
    b.position_at_end(low)
    b.store(lowest, at, align=8)
    b.cbranch(b.icmp_unsigned("<", known, end), found, down)
    b.position_at_end(down)
    highest = b.phi(WORD)
    highest.add_incoming(end, low)
    b.cbranch(b.icmp_unsigned(">", highest, lowest), peer, found)
    b.position_at_end(peer)
    last = b.sub(highest, word(1))
    highest.add_incoming(last, peer)
    b.cbranch(differs(last), found, down)
    b.position_at_end(found)
    result = b.phi(WORD)
    result.add_incoming(end, low)
    result.add_incoming(highest, down)
    result.add_incoming(highest, peer)
    b.ret(b.sub(result, lowest))
    return function
