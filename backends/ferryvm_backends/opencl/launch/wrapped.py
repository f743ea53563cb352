# SPDX-License-Identifier: Apache-2.0
"""The native code behind entry stubs of kernels that work in the machine's own memory."""

from __future__ import annotations

from ferryvm.machine.control import Status
from ferryvm_backends._llvm import ir
from ferryvm_backends.opencl.launch import ENTER
from ferryvm_backends.opencl.launch.trampoline import INT, WORD, Trampoline, status


class WrappedLauncher(Trampoline):
    """Enqueue and wait; `back` sets the kernel's arguments if another machine runs."""

    name = "launch_wrapped"

    def emit(self) -> None:
        b = self.builder
        entries = self.count("entries", 1)
        time, began = b.alloca(ir.ArrayType(WORD, 2)), b.alloca(WORD)
        self._bind()
        self.set_field("scratch", self.forced_place(entries), 0)
        is_observed = self.is_observed()
        fuel = self.field("fuel")
        with b.if_then(is_observed):
            b.store(self.now(time), began, align=8)
        failed = b.or_(self.enqueue(), self.call("finish", INT, [WORD], self.get("queue")))
        with b.if_then(is_observed):
            self.count("nanoseconds", b.sub(self.now(time), b.load(began, align=8, typ=WORD)))
            self.count("instructions", b.sub(fuel, self.field("fuel")))
        with b.if_then(b.icmp_signed("!=", failed, ir.Constant(INT, 0)), likely=False):
            self.set("error", b.sext(failed, WORD))
            self.set_field("status", status(Status.LOST))
            b.ret(status(Status.LOST))
        self.end(self.field("status"))

    def _bind(self) -> None:
        """Set the kernel's arguments for this machine, if they are for another one."""
        b = self.builder
        address = b.ptrtoint(self.control, WORD)
        wrong = b.icmp_unsigned("!=", self.get("control"), address)
        watched = (("heap", "heap"), ("capacity", "heap_capacity"), ("stack_end", "stack_end"))
        for name, field in watched:
            wrong = b.or_(wrong, b.icmp_unsigned("!=", self.get(name), self.field(field)))
        with b.if_then(wrong, likely=False):
            found = self.back(ENTER)
            with b.if_then(b.icmp_unsigned("!=", found, status(Status.RUNNING))):
                self.set_field("status", found)
                b.ret(found)
