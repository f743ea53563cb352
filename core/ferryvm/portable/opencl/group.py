# SPDX-License-Identifier: Apache-2.0
"""The kernel of a launch of groups: a work-group for each, a work-item for each member.

    __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void f(..., __global int *status)
    {
        __local double g0[64];                           a parameter, if its length is no constant
        __local uint first_failed;                       the earliest phase in which a member has failed
        ...
        const ulong failed = f_member(get_group_id(0), ..., member, g0, &first_failed);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (failed is of that phase)
            status[...] = failed;
    }

A member that fails goes on to all barriers, and others may compute with what it has not stored. So
the error of a group is that of its lowest member in the earliest phase, the code between two
barriers: the one that comes first where members run in order. Where arrays are long enough for all
groups (`ferryvm.portable.opencl.fit`), no member can fail. There is one call for both cases: PoCL
3.0 compiled two, with barriers in both branches, to code that loses failures and stores elsewhere.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from ferryvm.ir.c.context import PrintingContext
from ferryvm.ir.c.dialect import Dialect
from ferryvm.ir.c.opencl import plain_opencl
from ferryvm.ir.c.opencl_atomic import group_atomics
from ferryvm.ir.c.opencl_group import BARRIER, EVERYWHERE, LOCAL
from ferryvm.ir.c.scope import FunctionScope
from ferryvm.ir.graph import Operation, Parameter, Terminator
from ferryvm.ir.rule import Rules
from ferryvm.portable.c.declaration import call_text
from ferryvm.portable.c.source import PlainOperations, error_code
from ferryvm.portable.c.spelling import OPENCL_SPELLING
from ferryvm.portable.expression import Expression, expression_text
from ferryvm.portable.identifier import identifiers
from ferryvm.portable.interface import Interface
from ferryvm.portable.opencl.fit import fit_text
from ferryvm.portable.opencl.kernel import (
    OpenCLPrinter,
    hidden_sizes,
    indices,
    inner_name,
    kernel_head,
    launched_names,
    linear,
)
from ferryvm.portable.plain import PlainFunction, PlainMember
from ferryvm.portable.plain_body import FITS, KERNEL_VARIABLES


def member_dialect() -> Dialect:
    """OpenCL C with barriers and updates of arrays of a group."""
    base = plain_opencl()
    helpers = {**base.helpers, "group_barrier": BARRIER, **group_atomics()}
    return dataclasses.replace(base, helpers=helpers)


def can_fail(function: PlainFunction) -> bool:
    """True if a member may fail."""
    return any(o.name == "fail_if" for o in function.body.operations)


def group_kernel(function: PlainFunction, interface: Interface) -> str:
    """The kernel, which calls the function of a member."""
    member, geometry = function.member, interface.geometry
    assert member is not None
    assert geometry is not None
    attributes = ""
    if geometry.constants is not None:
        required = ", ".join(map(str, geometry.constants))
        attributes = f"__attribute__((reqd_work_group_size({required})))\n"
    head = kernel_head(interface, attributes)
    members = _number_text(member.members if member.size is None else function.sizes[member.size])
    lines = [f"const ulong member = {_number(member)};"]
    for array in function.arrays.values():
        if array.size is None:
            element = OPENCL_SPELLING.element(array.element)
            lines.append(f"__local {element} {array.name}[{max(array.length, 1)}];")
    zeros = [array for array in function.arrays.values() if array.is_zero]
    for array in zeros:
        step = f"k0 < {_number_text(function.length(array))}; k0 += {members}"
        lines += [f"for (ulong k0 = member; {step})", f"    {array.name}[k0] = 0;"]
    names = [array.name for array in function.arrays.values()]
    sizes = [expression_text(function.sizes[each]) for each in hidden_sizes(function)]
    fits = fit_text(function)
    if fits is not None:
        lines.append(f"const bool {FITS} = {fits};")
    given = [*indices(function, geometry), *launched_names(interface), *([FITS] if fits else [])]
    given += [*sizes, "member", *names]
    if can_fail(function):
        given.append("&first_failed")
        lines += [
            "__local uint first_failed;",
            "if (member == 0)",
            "    first_failed = 0xffffffffu;",
        ]
    if zeros or can_fail(function):
        lines.append(f"barrier({LOCAL});")
    call = call_text(inner_name(function), given).replace("\n", "\n    ")
    if not can_fail(function):
        lines.append(f"{call};")
    else:
        place = linear("get_group_id", "get_num_groups", geometry)
        place = f"({place})" if " " in place else place
        lines += [
            f"const ulong failed = {call};",
            f"barrier({LOCAL});",
            "if (failed && (uint)(failed >> 32) == first_failed)",
            f"    {interface.status}[{place} * {members} + member] = (int)failed;",
        ]
    body = "\n".join(f"    {line}" for line in lines)
    return f"{head}\n{{\n{body}\n}}\n"


def _number_text(size: Expression) -> str:
    """A size as an unsigned number."""
    return f"{size}ul" if isinstance(size, int) else f"(ulong)({expression_text(size)})"


def _number(member: PlainMember) -> str:
    """The number of a member in its group."""
    if not member.axes:
        return "get_local_id(0)"
    strides = [math.prod(member.axes[:axis]) for axis in range(len(member.axes))]
    parts = (f"{stride}ul * get_local_id({axis})" for axis, stride in enumerate(strides))
    return " + ".join(parts).replace("1ul * ", "", 1)


class MemberPrinter(OpenCLPrinter):
    """Prints the function of a member."""

    def __init__(self, shared: PrintingContext, function: PlainFunction) -> None:
        super().__init__(shared, function)
        assert function.member is not None
        plain = PlainOperations(self.scope, function, self.spelling)
        members = MemberOperations(self.scope, function, bool(self.fitting))
        self.rules = Rules(plain, self.copies(), members)
        taken = [*function.interface.names, *KERNEL_VARIABLES]
        wanted = ["size"] * len(hidden_sizes(function))
        self.sizes = identifiers(wanted, function.interface.name, taken)

    def head(self) -> str:
        function, spelling = self.plain, self.spelling
        text = super().head().replace("static int ", "static ulong ", 1)
        more = [f"const long {name}" for name in self.sizes]
        more.append("const ulong member")
        for array in function.arrays.values():
            more.append(f"__local {spelling.element(array.element)} *{array.name}")
        if can_fail(function):
            more.append("volatile __local uint *first_failed")
        separator = ",\n    " if "\n" in text else ", "
        return f"{text[:-1]}{separator}{separator.join(more)})"

    def _name_parameters(self) -> None:
        super()._name_parameters()
        for parameter, name in zip(hidden_sizes(self.plain), self.sizes, strict=True):
            self._name(parameter, name, True)

    def _prologue(self, joined: Sequence[Parameter]) -> list[str]:
        lines = super()._prologue(joined)
        if can_fail(self.plain):
            lines += ["ulong error = 0;", "uint phase = 0;"]
        return lines

    def _return(self, end: Terminator, values: Sequence[str]) -> None:
        self.lines.add(f"return {'error' if can_fail(self.plain) else '0'};")


class MemberOperations:
    """Prints barriers, the number of the member, and failures of members."""

    def __init__(self, scope: FunctionScope, function: PlainFunction, may_fit: bool) -> None:
        self.scope, self.function, self._can_fail = scope, function, can_fail(function)
        self._unless = f"!{FITS} && " if may_fit else ""

    def do_member(self, operation: Operation) -> str:
        return "member"

    def do_member_index(self, operation: Operation) -> str:
        return f"get_local_id({operation.fact(0, int)})"

    def do_barrier(self, operation: Operation) -> None:
        assert self.function.member is not None
        fence = EVERYWHERE if self.function.member.orders_all else LOCAL
        self.scope.lines.add(f"{self.scope.helper('group_barrier', fence)};")
        if self._can_fail:
            self.scope.lines.add("++phase;")

    def do_fail_if(self, operation: Operation, condition: str) -> None:
        lines, code = self.scope.lines, error_code(self.function, operation)
        unlikely = self.scope.helper("unlikely", condition)
        lines.open(f"if ({self._unless}{unlikely} && !failed) {{")
        lines.add("failed = true;")
        lines.add(f"error = (ulong)phase << 32 | ({code});")
        lines.add("atomic_min(first_failed, phase);")
        lines.close()

    def do_has_failed(self, operation: Operation) -> str:
        text = "(failed || *first_failed < phase)"
        return f"({self._unless}{text})" if self._unless else text
