# SPDX-License-Identifier: Apache-2.0
"""The parts that kernels of items and of groups share: their heads, indices of work-items, the
function that they call."""

from __future__ import annotations

import dataclasses

from ferryvm.ir.c.context import PrintingContext
from ferryvm.ir.c.scope import FunctionScope
from ferryvm.ir.graph import Operation, Parameter
from ferryvm.ir.rule import Rules
from ferryvm.portable.c.declaration import argument_texts, call_text, prototype
from ferryvm.portable.c.source import PlainOperations, PlainPrinter
from ferryvm.portable.c.spelling import OPENCL_SPELLING
from ferryvm.portable.interface import Geometry, Interface
from ferryvm.portable.opencl.fit import fit_text, fitting_checks
from ferryvm.portable.plain import PlainFunction
from ferryvm.portable.plain_body import FITS


def inner_name(function: PlainFunction) -> str:
    """The function that the kernel calls."""
    kind = "once" if function.launch is None else "item" if function.member is None else "member"
    return f"{function.interface.name}_{kind}"


def kernel_head(interface: Interface, attributes: str = "") -> str:
    """The head of a kernel, which has no numbers of items among its parameters."""
    spelling = OPENCL_SPELLING
    launched = dataclasses.replace(interface, arguments=interface.launched)
    parameters = [*argument_texts(launched, spelling)]
    parameters += [f"__global {spelling.scalars[r.type]} *{r.name}" for r in interface.results]
    parameters.append(f"__global int *{interface.status}")
    return call_text(f"__kernel {attributes}void {interface.name}", parameters)


def launched_names(interface: Interface) -> list[str]:
    """The names of the kernel's parameters that are arguments, without arrays of groups."""
    given = tuple(each for each in interface.launched if each in interface.inputs)
    return dataclasses.replace(interface, arguments=given).names


def fitting_call(function: PlainFunction, name: str, given: list[str]) -> tuple[str, str]:
    """A call of the function of an item, and the line before it: two calls if checks of the number
    of an item depend on whether the launch fits."""
    fits = fit_text(function)
    if fits is None:
        return call_text(name, given).replace("\n", "\n    "), ""
    yes, no = (
        call_text(name, [*given, value]).replace("\n", "\n    ") for value in ("true", "false")
    )
    return f"{FITS} ? {yes} : {no}", f"    const bool {FITS} = {fits};\n"


def hidden_sizes(function: PlainFunction) -> list[Parameter]:
    """The parameters of a member that stand for an expression of arguments, and are none."""
    count = len(function.interface.names)
    return function.body.blocks[0].parameters[count:]


def indices(function: PlainFunction, geometry: Geometry) -> list[str]:
    """The first arguments of an item: its indices, and the numbers of items if it takes them."""
    is_group = function.member is not None
    index, count = (
        ("get_group_id", "get_num_groups") if is_group else ("get_global_id", "get_global_size")
    )
    dimensions = range(len(geometry.counts) - 1, -1, -1)
    found = [f"(long){index}({n})" for n in dimensions]
    if function.counts_items:
        found += [f"(long){count}({n})" for n in dimensions]
    return found


def linear(index: str, count: str, geometry: Geometry) -> str:
    """The number of an item or a group among all of a launch."""
    *outer, last = range(len(geometry.counts) - 1, -1, -1)
    text = ""
    for n in outer:
        text += f"{index}({n})" if not text else f" + {index}({n})"
        text = f"({text}) * {count}({n - 1})" if " " in text else f"{text} * {count}({n - 1})"
    return f"{text} + {index}({last})" if text else f"{index}({last})"


class OpenCLPrinter(PlainPrinter):
    """Prints the function that the kernel calls."""

    spelling = OPENCL_SPELLING

    def __init__(self, shared: PrintingContext, function: PlainFunction) -> None:
        super().__init__(shared, function)
        self.fitting = fitting_checks(function)
        plain = PlainOperations(self.scope, function, self.spelling, self.fitting, f"!{FITS}")
        self.rules = Rules(plain, self.copies())

    def copies(self) -> object:
        return OpenCLCopies(self.scope, self.plain)

    def head(self) -> str:
        text = prototype(
            self.plain.interface, self.spelling, f"static int {inner_name(self.plain)}"
        )
        if not self.fitting:
            return text
        separator = ",\n    " if "\n" in text else ", "
        return f"{text[:-1]}{separator}const bool {FITS})"


class OpenCLCopies:
    """Prints copies of elements without the library of C."""

    def __init__(self, scope: FunctionScope, function: PlainFunction) -> None:
        self.scope, self.function = scope, function

    def do_array_move(
        self, operation: Operation, to: str, at: str, from_: str, first: str, count: str
    ) -> None:
        k, add = self.scope.name("k"), self.scope.lines.add
        target, _, source, *_ = operation.arguments
        if (target in self.function.arrays) != (source in self.function.arrays):
            add(f"for (ulong {k} = 0; {k} < {count}; ++{k})")  # in two address spaces
            add(f"    {to}[{at} + {k}] = {from_}[{first} + {k}];")
            return
        self.scope.lines.open(f"if ({to} + {at} <= {from_} + {first}) {{")
        add(f"for (ulong {k} = 0; {k} < {count}; ++{k})")
        add(f"    {to}[{at} + {k}] = {from_}[{first} + {k}];")
        self.scope.lines.again("} else {")
        add(f"for (ulong {k} = {count}; {k}-- > 0;)")
        add(f"    {to}[{at} + {k}] = {from_}[{first} + {k}];")
        self.scope.lines.close()
