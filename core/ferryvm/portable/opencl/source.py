# SPDX-License-Identifier: Apache-2.0
"""Plain form as OpenCL C 1.2: a function, and a kernel that calls it.

    __kernel void f(__global const double *x, long x_length, ..., __global int *status)
    {
        const int failed = f_item(get_global_id(0), x, x_length, ...);
        if (failed)
            status[get_global_id(0)] = failed;
    }

A kernel cannot return a status. Of a launch each item has one, which is stored if it is an error; so a
caller makes them zeros before. The kernel of a function that is called once runs as one work-item.
"""

from __future__ import annotations

from ferryvm.ir.c.context import Choices, PrintingContext
from ferryvm.ir.c.function_helper import function_definitions
from ferryvm.ir.c.module import no_comment
from ferryvm.ir.c.opencl import plain_opencl
from ferryvm.ir.c.scope import FunctionScope
from ferryvm.ir.graph import Operation
from ferryvm.portable.c.declaration import argument_texts, call_text, error_name, prototype
from ferryvm.portable.c.source import PlainPrinter, origin
from ferryvm.portable.c.spelling import OPENCL_SPELLING
from ferryvm.portable.interface import Interface
from ferryvm.portable.plain import PlainFunction


def opencl_text(function: PlainFunction) -> str:
    """The source of the kernel of an exported function."""
    interface = function.interface
    dialect = plain_opencl()
    shared = PrintingContext(dialect, Choices(), False, [], {}, no_comment)
    text = OpenCLPrinter(shared, function).text()
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
        _kernel(interface),
    ]
    return "\n".join(part for part in parts if part)


def inner_name(interface: Interface) -> str:
    """The function that the kernel calls."""
    return f"{interface.name}_item" if interface.is_item else f"{interface.name}_once"


def _kernel(interface: Interface) -> str:
    spelling, status = OPENCL_SPELLING, interface.status
    assert status is not None
    parameters = [*argument_texts(interface, spelling)]
    given = interface.names
    if interface.is_item:
        del parameters[0]
        given[0] = "(long)get_global_id(0)"
    parameters += [f"__global {spelling.scalars[r.type]} *{r.name}" for r in interface.results]
    parameters.append(f"__global int *{status}")
    given += [result.name for result in interface.results]
    call = f"{inner_name(interface)}({', '.join(given)})"
    head = call_text(f"__kernel void {interface.name}", parameters)
    if not interface.is_item:
        return f"{head}\n{{\n    *{status} = {call};\n}}\n"
    if not interface.errors:
        return f"{head}\n{{\n    {call};\n}}\n"
    return (
        f"{head}\n{{\n    const int failed = {call};\n"
        f"    if (failed)\n        {status}[get_global_id(0)] = failed;\n}}\n"
    )


class OpenCLPrinter(PlainPrinter):
    """Prints the function that the kernel calls."""

    spelling = OPENCL_SPELLING

    def copies(self) -> object:
        return OpenCLCopies(self.scope)

    def head(self) -> str:
        interface = self.plain.interface
        return prototype(interface, self.spelling, f"static int {inner_name(interface)}")


class OpenCLCopies:
    """Prints copies of elements without the library of C."""

    def __init__(self, scope: FunctionScope) -> None:
        self.scope = scope

    def do_array_move(
        self, operation: Operation, to: str, at: str, from_: str, first: str, count: str
    ) -> None:
        k, add = self.scope.name("k"), self.scope.lines.add
        self.scope.lines.open(f"if ({to} + {at} <= {from_} + {first}) {{")
        add(f"for (ulong {k} = 0; {k} < {count}; ++{k})")
        add(f"    {to}[{at} + {k}] = {from_}[{first} + {k}];")
        self.scope.lines.again("} else {")
        add(f"for (ulong {k} = {count}; {k}-- > 0;)")
        add(f"    {to}[{at} + {k}] = {from_}[{first} + {k}];")
        self.scope.lines.close()
