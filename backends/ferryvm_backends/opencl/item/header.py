# SPDX-License-Identifier: Apache-2.0
"""Header words of the arrays that items share, passed with the launch instead of loaded by each item.

    array ──> header, length, place on the device ──> arguments of the kernel

Each work-item would load them one after another, and search the place of elements outside of the
object space; that takes longer than what many items do. Nothing changes a header while items run: an
item that would make an object leaves.
"""

from __future__ import annotations

from ferryvm.ir.graph import Module, Parameter, Value
from ferryvm.ir.use import callees, substitute
from ferryvm.isa.type import I64

HeaderWord = tuple[int, int]
"""The number of an argument that items share, and of a word of its header."""


def passed_headers(module: Module, function: int, most: int) -> tuple[HeaderWord, ...]:
    """Give the function of the items parameters for header words of its arguments, `most` at most,
    behind all others; which ones they are."""
    body = module.functions[function]
    operations = [o for each in module.functions.values() for o in each.operations]
    if any(function in callees(o) for o in operations):
        return ()
    entry = body.blocks[0]
    shared = {parameter: n for n, parameter in enumerate(entry.parameters[1:])}
    made: dict[HeaderWord, Parameter] = {}
    new: dict[Value, Value] = {}
    for block in body.blocks:
        remaining = []
        for operation in block.operations:
            number = None
            if operation.name == "header_word":
                number = shared.get(operation.arguments[0])  # type: ignore[call-overload]  # any value may be a key
            if number is None:
                remaining.append(operation)
                continue
            key = number, operation.fact(0, int)
            if key not in made and len(made) == most:
                remaining.append(operation)
                continue
            new[operation] = made.setdefault(key, Parameter(I64))
        block.operations = remaining
    entry.parameters += made.values()
    substitute(body.blocks, new)
    return tuple(made)
