# SPDX-License-Identifier: Apache-2.0
"""Plain form as OpenCL C 1.2: a function, and a kernel that calls it.

    __kernel void f(__global const double *x, long x_length, ..., __global int *status)
    {
        const int failed = f_item(get_global_id(0), x, x_length, ...);
        if (failed)
            status[get_global_id(0)] = failed;
    }

A kernel cannot return a status. Of a launch each item has one, which is stored if it is an error;
so a caller makes them zeros before. The kernel of a function that is called once runs as one
work-item.
"""

from __future__ import annotations

from ferryvm.ir.c.context import Choices, PrintingContext
from ferryvm.ir.c.function_helper import function_definitions
from ferryvm.ir.c.module import no_comment
from ferryvm.ir.c.opencl import plain_opencl
from ferryvm.portable.c.declaration import error_name
from ferryvm.portable.c.source import origin
from ferryvm.portable.interface import Interface
from ferryvm.portable.opencl.group import MemberPrinter, group_kernel, member_dialect
from ferryvm.portable.opencl.kernel import (
    OpenCLPrinter,
    fitting_call,
    indices,
    inner_name,
    kernel_head,
    launched_names,
    linear,
)
from ferryvm.portable.plain import PlainFunction


def opencl_text(function: PlainFunction, interface: Interface) -> str:
    """The source of the kernel of an exported function; `interface`: of the kernel."""
    dialect = plain_opencl() if function.member is None else member_dialect()
    choices = Choices(guarded=function.member.guarded if function.member else frozenset())
    shared = PrintingContext(dialect, choices, False, [], {}, no_comment)
    printer = OpenCLPrinter if function.member is None else MemberPrinter
    text = printer(shared, function).text()
    applied = function_definitions(dialect, shared.helpers)
    errors = "".join(
        f"#define {error_name(interface, kind)} {int(kind)} /* {kind.message} */\n"
        for kind in interface.errors
    )
    parts = [
        f"/* {origin(function)} */\n",
        dialect.prelude,
        errors,
        *dialect.definitions(shared.helpers),
        *applied,
        text,
        _kernel(function, interface)
        if function.member is None
        else group_kernel(function, interface),
    ]
    return "\n".join(part for part in parts if part)


def _kernel(function: PlainFunction, interface: Interface) -> str:
    head, name = kernel_head(interface), inner_name(function)
    geometry = interface.geometry
    given = [] if geometry is None else indices(function, geometry)
    results = [result.name for result in interface.results]
    given += [*launched_names(interface), *results]
    call, fits = fitting_call(function, name, given)
    if geometry is None:
        return f"{head}\n{{\n    *{interface.status} = {call};\n}}\n"
    if not interface.errors:
        return f"{head}\n{{\n{fits}    {call};\n}}\n"
    place = linear("get_global_id", "get_global_size", geometry)
    return (
        f"{head}\n{{\n{fits}    const int failed = {call};\n"
        f"    if (failed)\n        {interface.status}[{place}] = failed;\n}}\n"
    )
