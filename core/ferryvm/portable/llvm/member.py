# SPDX-License-Identifier: Apache-2.0
"""Kernels with groups as LLVM IR: the function of a member, and a kernel that calls it.

    @f.g0 = internal addrspace(3) global [64 x double] undef       an array of the group
    @f.first = internal addrspace(3) global i32 undef              the earliest phase with a failure

    define ptx_kernel void @f(i64 %groups, ..., ptr addrspace(1) %status) {
      ...                                                          numbers of group and member
      %k.error = call i64 @f_member(i64 %k.group0, ..., i64 %k.member)
      ...                                                          the status of a member that failed
    }

A member that fails goes on to all barriers. Errors are as those of the target `opencl`: see
`ferryvm.portable.opencl.group`.
"""

from __future__ import annotations

import math

from ferryvm.ir.graph import Operation, Parameter, Terminator
from ferryvm.ir.operation import DIVISIONS
from ferryvm.isa.trap import Trap
from ferryvm.portable.c.source import origin
from ferryvm.portable.interface import Interface
from ferryvm.portable.llvm.device import SPACE, Device
from ferryvm.portable.llvm.source import FunctionText, array_type
from ferryvm.portable.llvm.text import TYPES, constant, element_type
from ferryvm.portable.plain import LocalArray, PlainFunction

_SHARED = "addrspace(3)"
"""Memory of a group, of PTX and of SPIR-V for OpenCL."""


def member_module(function: PlainFunction, interface: Interface, device: Device) -> str:
    """The module with the kernel of a launch of groups; `interface`: that of the kernel."""
    text = MemberText(function, device)
    inner = f"{interface.name}_member"
    given = text.parameters()
    assert function.member is not None
    axes = [f"i64 %m.index{axis}" for axis in range(len(function.member.axes))]
    taken = ", ".join([*given, *axes, "i64 %m.number"])
    body = text.function(f"define internal i64 @{inner}({taken}) convergent alwaysinline")
    first = f"@{interface.name}.first = internal {_SHARED} global i32 undef, align 4"
    parts = [
        f"; {origin(function)}\n",
        f'target triple = "{device.triple}"\n',
        *(
            f"@{interface.name}.{array.name} = internal {_SHARED} global {array_type(array)} undef,"
            " align 8"
            for array in function.arrays.values()
        ),
        first if text.can_fail else "",
        body,
        _Kernel(function, interface, device, text.can_fail, given).text(inner, axes),
        *text.declarations(),
        *device.group.declarations,
    ]
    return "\n".join(part for part in parts if part)


class MemberText(FunctionText):
    """The function of a member. Its failures are in variables of its own, which LLVM makes
    values."""

    def __init__(self, function: PlainFunction, device: Device) -> None:
        super().__init__(function, SPACE, device.has_exact_division, device.has_barred_sums)
        assert function.member is not None
        self.member, self.device = function.member, device
        self.can_fail = any(o.name == "fail_if" for o in self.body.operations)
        self._first = f"ptr {_SHARED} @{function.interface.name}.first"

    def _begin(self) -> None:
        super()._begin()
        if self.can_fail:
            for name, t in (("failed", "i32"), ("phase", "i32"), ("error", "i64")):
                self._add(f"%m.{name} = alloca {t}")
                self._add(f"store {t} 0, ptr %m.{name}")

    def _local_array(self, parameter: Parameter, array: LocalArray) -> None:
        name = f"@{self.plain.interface.name}.{array.name}"
        self.names[parameter] = name
        self.spaces[name] = f"ptr {_SHARED}"

    def _terminator(self, end: Terminator) -> None:
        if end.name != "return":
            super()._terminator(end)
            return
        error = self._new("load i64, ptr %m.error") if self.can_fail else "0"
        self._add(f"ret i64 {error}")

    # --- guarded operations -----------------------------------------------------------------

    def _made(self, operation: Operation) -> str | None:
        if operation not in self.member.guarded:
            return super()._made(operation)
        has_failed = self._has_failed()
        if operation.name in DIVISIONS:
            dividend, divisor = operation.arguments
            t = TYPES[divisor.type]
            given = self._value(divisor)
            safe = self._new(f"select i1 {has_failed}, {t} 1, {t} {given}")
            names = {"div_s": "sdiv", "div_u": "udiv", "rem_s": "srem", "rem_u": "urem"}
            return self._new(f"{names[operation.name]} {t} {self._value(dividend)}, {safe}")
        before, runs, behind = self._here, self._label(), self._label()
        self._add(f"br i1 {has_failed}, label %{behind}, label %{runs}")
        self._open(runs)
        made = super()._made(operation)
        end = self._here
        self._add(f"br label %{behind}")
        self._open(behind)
        if operation.type is None:
            return None
        zero = constant(operation.word_type, 0)
        pairs = f"[ {zero}, %{before} ], [ {made}, %{end} ]"
        return self._new(f"phi {TYPES[operation.type]} {pairs}")

    def _has_failed(self) -> str:
        failed = self._new("load i32, ptr %m.failed")
        return self._new(f"icmp ne i32 {failed}, 0")

    # --- operations of groups -----------------------------------------------------------------

    def _do_member(self, operation: Operation) -> str:
        return "%m.number"

    def _do_member_index(self, operation: Operation) -> str:
        return f"%m.index{operation.fact(0, int)}"

    def _do_barrier(self, operation: Operation) -> None:
        self._add(self.device.group.barrier)
        if self.can_fail:
            phase = self._new("load i32, ptr %m.phase")
            next_ = self._new(f"add i32 {phase}, 1")
            self._add(f"store i32 {next_}, ptr %m.phase")

    def _do_fail_if(self, operation: Operation) -> None:
        fails, passes = self._label(), self._label()
        condition = self._value(operation.arguments[0])
        failed = self._has_failed()
        has_not = self._new(f"xor i1 {failed}, true")
        now = self._new(f"and i1 {condition}, {has_not}")
        self._add(f"br i1 {now}, label %{fails}, label %{passes}")
        self._open(fails)
        code = int(operation.fact(0, Trap)) | operation.fact(1, int) << 8
        phase = self._new("load i32, ptr %m.phase")
        wide = self._new(f"zext i32 {phase} to i64")
        high = self._new(f"shl i64 {wide}, 32")
        error = self._new(f"or i64 {high}, {code}")
        self._add("store i32 1, ptr %m.failed")
        self._add(f"store i64 {error}, ptr %m.error")
        self._new(f"atomicrmw umin {self._first}, i32 {phase} monotonic")
        self._add(f"br label %{passes}")
        self._open(passes)

    def _do_has_failed(self, operation: Operation) -> str:
        own, phase = self._has_failed(), self._new("load i32, ptr %m.phase")
        first = self._new(f"load volatile i32, {self._first}, align 4")
        is_before = self._new(f"icmp ult i32 {first}, {phase}")
        return self._new(f"or i1 {own}, {is_before}")


class _Kernel:
    """The kernel of a launch of groups."""

    def __init__(
        self,
        function: PlainFunction,
        interface: Interface,
        device: Device,
        can_fail: bool,
        given: list[str],
    ) -> None:
        """`given`: the parameters of the member's function."""
        assert interface.geometry is not None
        assert function.member is not None
        self.function, self.interface, self.device = function, interface, device
        self.geometry, self.member = interface.geometry, function.member
        self.can_fail = can_fail
        self.axes = len(self.geometry.counts)
        self.own = given[self.axes * (1 + function.counts_items) :]
        self._lines: list[str] = []

    def text(self, inner: str, axes: list[str]) -> str:
        """The kernel."""
        status = f"ptr{SPACE} %{self.interface.status}"
        counts = [f"i64 %{name}" for name in self.geometry.counts] if self.device.has_margin else []
        self._numbers()
        self._zeros()
        given = [f"i64 %k.group{n}" for n in reversed(range(self.axes))]
        if self.function.counts_items:
            given += [f"i64 %k.count{n}" for n in reversed(range(self.axes))]
        given += [*self.own, *(f"i64 %k.local{n}" for n in range(len(axes))), "i64 %k.member"]
        self._add(f"%k.error = call i64 @{inner}({', '.join(given)}) convergent")
        if self.can_fail:
            self._status(status)
        self._add("ret void")
        taken = ", ".join([*counts, *self.own, status])
        head = f"define {self.device.convention} void @{self.interface.name}({taken}) convergent"
        sizes = self.geometry.constants
        assert sizes is not None
        notes, size = self.device.group.size(sizes)
        return "\n".join([f"{head}{notes} {{", *self._lines, "}", size, ""])

    def _add(self, line: str) -> None:
        self._lines.append(line if line.endswith(":") else f"  {line}")

    def _numbers(self) -> None:
        """Numbers of the group and of the member."""
        for n in range(self.axes):
            self._lines += self.device.group.index("group", n)
            if self.function.counts_items or self.can_fail:
                self._lines += self.device.group.index("count", n)
        sizes = self.member.axes or (self.member.members,)
        for n in range(len(sizes)):
            self._lines += self.device.group.index("local", n)
        parts = ["%k.local0"]
        for n in range(1, len(sizes)):
            self._add(f"%k.far{n} = mul i64 %k.local{n}, {math.prod(sizes[:n])}")
            self._add(f"%k.sum{n} = add i64 {parts[-1]}, %k.far{n}")
            parts.append(f"%k.sum{n}")
        self._add(f"%k.member = add i64 {parts[-1]}, 0")

    def _zeros(self) -> None:
        """Make arrays of the group zero, and note that no member has failed."""
        zeros = [array for array in self.function.arrays.values() if array.is_zero]
        before = "k.entry"
        self._lines.insert(0, f"{before}:")
        for number, array in enumerate(zeros):
            name, to = f"k.zero{number}", f"@{self.interface.name}.{array.name}"
            element = element_type(array.element)
            zero = "0.0" if array.element.type.is_float else "0"
            for line in (
                f"br label %{name}",
                f"{name}:",
                f"%{name}.at = phi i64 [ %k.member, %{before} ], [ %{name}.next, %{name}.body ]",
                f"%{name}.done = icmp uge i64 %{name}.at, {array.length}",
                f"br i1 %{name}.done, label %{name}.end, label %{name}.body",
                f"{name}.body:",
                f"%{name}.to = getelementptr {element}, ptr {_SHARED} {to}, i64 %{name}.at",
                f"store {element} {zero}, ptr {_SHARED} %{name}.to, align {array.element.bytes}",
                f"%{name}.next = add i64 %{name}.at, {self.member.members}",
                f"br label %{name}",
                f"{name}.end:",
            ):
                self._add(line)
            before = f"{name}.end"
        if self.can_fail:
            for line in (
                "%k.is_first = icmp eq i64 %k.member, 0",
                "br i1 %k.is_first, label %k.set, label %k.begin",
                "k.set:",
                f"store i32 -1, ptr {_SHARED} @{self.interface.name}.first, align 4",
                "br label %k.begin",
                "k.begin:",
            ):
                self._add(line)
        if zeros or self.can_fail:
            self._add(self.device.group.barrier)

    def _status(self, status: str) -> None:
        """Store the status of a member that has failed in the earliest phase."""
        self._add(self.device.group.barrier)
        place = f"%k.group{self.axes - 1}"
        for n in reversed(range(self.axes - 1)):
            self._add(f"%k.row{n} = mul i64 {place}, %k.count{n}")
            self._add(f"%k.place{n} = add i64 %k.row{n}, %k.group{n}")
            place = f"%k.place{n}"
        for line in (
            f"%k.phase = load i32, ptr {_SHARED} @{self.interface.name}.first, align 4",
            "%k.high = lshr i64 %k.error, 32",
            "%k.own = trunc i64 %k.high to i32",
            "%k.has_failed = icmp ne i64 %k.error, 0",
            "%k.is_earliest = icmp eq i32 %k.own, %k.phase",
            "%k.tells = and i1 %k.has_failed, %k.is_earliest",
            "br i1 %k.tells, label %k.fail, label %k.end",
            "k.fail:",
            f"%k.before = mul i64 {place}, {self.member.members}",
            "%k.item = add i64 %k.before, %k.member",
            f"%k.at = getelementptr i32, {status}, i64 %k.item",
            "%k.code = trunc i64 %k.error to i32",
            f"store i32 %k.code, ptr{SPACE} %k.at, align 4",
            "br label %k.end",
            "k.end:",
        ):
            self._add(line)
