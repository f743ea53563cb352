# SPDX-License-Identifier: Apache-2.0
"""The declaration of an exported function in C and C++: its header file."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from ferryvm.isa.trap import Trap
from ferryvm.isa.type import Type
from ferryvm.portable.c.spelling import C_SPELLING, Spelling
from ferryvm.portable.expression import expression_text
from ferryvm.portable.interface import MOST_MEMBERS, ArrayArgument, Direction, Interface

_WIDTH = 100


def error_name(interface: Interface, kind: Trap) -> str:
    """The enumerator of an error."""
    return f"{interface.name.upper()}_{kind.name}"


def prototype(interface: Interface, spelling: Spelling = C_SPELLING, head: str = "") -> str:
    """The head of the function, without what follows it. `head`: what stands in front of its
    parameters, if that is another type or name."""
    parameters = [*argument_texts(interface, spelling)]
    parameters += [
        f"{spelling.space}{spelling.scalars[each.type]} *{each.name}" for each in interface.results
    ]
    return call_text(head or f"int32_t {interface.name}", parameters or ["void"])


def argument_texts(interface: Interface, spelling: Spelling = C_SPELLING) -> Iterator[str]:
    """The declarations of arguments, without those of results."""
    for argument in interface.arguments:
        if isinstance(argument, ArrayArgument) and argument.borrowed is not None and spelling.group:
            yield f"{spelling.group}{spelling.element(argument.element)} *{argument.name}"
        elif isinstance(argument, ArrayArgument):
            const = "const " if argument.direction is Direction.IN else ""
            element = spelling.element(argument.element)
            yield f"{spelling.space}{const}{element} *{argument.name}"
            yield f"{spelling.scalars[Type.I64]} {argument.length_name}"
        else:
            yield f"{spelling.scalars[argument.type]} {argument.name}"


def call_text(head: str, parts: Sequence[str]) -> str:
    """A head with parameters or arguments, on one line or on one for each."""
    text = f"{head}({', '.join(parts)})"
    return text if len(text) <= _WIDTH else f"{head}(\n    " + ",\n    ".join(parts) + ")"


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
    about += [f"Constant in the code: {each.name} = {each.value}." for each in interface.folded]
    about += map(_use, interface.arrays)
    about += _groups(interface)
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


def _use(argument: ArrayArgument) -> str:
    if argument.borrowed is None:
        return f"{argument.name}: {_USES[argument.direction]}."
    (length,) = argument.shape
    return f"{argument.name}: memory for an array of a group, at least {length} elements."


def _groups(interface: Interface) -> Iterator[str]:
    """Sizes of groups: the constants, and the limits of the others."""
    members = ", ".join(map(expression_text, interface.members))
    if interface.members:
        is_constant = all(isinstance(each, int) for each in interface.members)
        yield f"Members of a group: {members}{'' if is_constant else f', 1 to {MOST_MEMBERS}'}."
    for name, element, length in interface.group_arrays:
        if isinstance(length, int):
            yield f"Constant in the code: a group has an array {name} of {length} {element.kind}."


_USES = {
    Direction.IN: "elements are read",
    Direction.OUT: "elements are written",
    Direction.INOUT: "elements are read and written",
}
