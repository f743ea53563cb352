# SPDX-License-Identifier: Apache-2.0
"""The declaration of an exported function in C and C++: its header file."""

from __future__ import annotations

import textwrap

from ferryvm.isa.element import Element
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import Type
from ferryvm.portable.interface import ArrayArgument, Direction, Interface

SCALARS = {Type.I32: "int32_t", Type.I64: "int64_t", Type.F32: "float", Type.F64: "double"}
"""The C types of numbers."""

ELEMENTS = {
    element: {"i": "int", "u": "uint"}[element.kind[0]] + f"{element.bits}_t"
    if element.kind[0] in "iu"
    else SCALARS[element.type]
    for element in Element
}
"""The C types of elements."""

_WIDTH = 100


def error_name(interface: Interface, kind: Trap) -> str:
    """The enumerator of an error."""
    return f"{interface.name.upper()}_{kind.name}"


def prototype(interface: Interface) -> str:
    """The head of the function, without what follows it."""
    parameters: list[str] = []
    for argument in interface.arguments:
        if isinstance(argument, ArrayArgument):
            const = "const " if argument.direction is Direction.IN else ""
            parameters.append(f"{const}{ELEMENTS[argument.element]} *{argument.name}")
            parameters.append(f"int64_t {argument.length_name}")
        else:
            parameters.append(f"{SCALARS[argument.type]} {argument.name}")
    parameters += [f"{SCALARS[each.type]} *{each.name}" for each in interface.results]
    text = f"int32_t {interface.name}({', '.join(parameters) or 'void'})"
    if len(text) <= _WIDTH:
        return text
    return f"int32_t {interface.name}(\n    " + ",\n    ".join(parameters) + ")"


_CONTRACT = """\
Returns 0, or an error: its number in the low 8 bits, above them the line of the source.
An array is a pointer and a number of elements, at least 0. Two arrays are the same or apart.
"""


def header_text(interface: Interface, origin: str) -> str:
    """The header file."""
    name = interface.name
    guard = f"{name.upper()}_H"
    about = [origin, "", *_CONTRACT.splitlines()]
    if interface.results:
        pointers = ", ".join(f"*{each.name}" for each in interface.results)
        about.append(f"Results: {pointers}; stored if the status is 0.")
    for argument in interface.arrays:
        about.append(f"{argument.name}: {_USES[argument.direction]}.")
    comment = "\n".join(f" * {line}".rstrip() for line in about)
    errors = ""
    if interface.errors:
        rows = []
        for kind, lines in interface.errors.items():
            shown = ", ".join(str(line) for line in lines if line)
            at = f" (line {shown})" if shown else ""
            rows.append(
                f"    {error_name(interface, kind)} = {int(kind)}, /* {kind.message}{at} */"
            )
        errors = "enum {\n" + "\n".join(rows) + "\n};\n\n"
    macros = (
        f"#define {name.upper()}_ERROR(status) ((status) & 255)\n"
        f"#define {name.upper()}_LINE(status) ((status) >> 8)\n"
    )
    return textwrap.dedent("""\
        /*
        {comment}
         */
        #ifndef {guard}
        #define {guard}

        #include <stdint.h>

        #ifdef __cplusplus
        extern "C" {{
        #endif

        {errors}{macros}
        {prototype};

        #ifdef __cplusplus
        }}
        #endif

        #endif
        """).format(
        comment=comment,
        guard=guard,
        errors=errors,
        macros=macros,
        prototype=prototype(interface),
    )


_USES = {
    Direction.IN: "elements are read",
    Direction.OUT: "elements are written",
    Direction.INOUT: "elements are read and written",
}
