# SPDX-License-Identifier: Apache-2.0
"""Pure functions of the instruction table as helpers in C, and their tables of constants."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from ferryvm.ir.c.dialect import Dialect, helper_text
from ferryvm.ir.c.expression import Arithmetic, function_name, table_name
from ferryvm.ir.function_body import FunctionBody, function_body
from ferryvm.ir.graph import BOOLEAN, Constant, Value
from ferryvm.isa.constant_table import declared
from ferryvm.isa.mathematics import FUNCTIONS, PARTS
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import Type

_BY_NAME = {function_name(each): each for each in (FUNCTIONS | PARTS).values()}


def function_definitions(dialect: Dialect, used: set[str]) -> list[str]:
    """Definitions of the tables and functions among some helpers; the helpers of these are added to
    `used`."""
    found: dict[str, str] = {}
    waiting = [name for name in _BY_NAME if name in used]
    while waiting:
        name = waiting.pop()
        text, needed = _definition(dialect, _BY_NAME[name])
        # A function comes after those that it applies.
        found = {name: text} | {key: value for key, value in found.items() if key != name}
        waiting += [each for each in _BY_NAME if each in needed]
        used |= needed
    return [*_tables(dialect, used), *found.values()]


def _tables(dialect: Dialect, used: set[str]) -> Iterator[str]:
    for table in declared().values():
        if table_name(table) in used:
            arithmetic = Arithmetic(dialect)
            words = ", ".join(arithmetic.constant(table.type, bits) for bits in table.bits)
            name, kind, t = table_name(table), dialect.types[table.type], table.type
            letter = "fd"[t.bits == 64] if t.is_float else "rl"[t.bits == 64]
            yield f"{dialect.constant}{kind} {name}[{len(table)}] = {{{words}}};\n"
            fields = {"name": name, "type": kind, "letter": letter, "bits": t.bits}
            yield dialect.look_up.format(**fields)


@functools.cache
def _definition(dialect: Dialect, function: PureFunction) -> tuple[str, frozenset[str]]:
    """The text of a function, and the helpers that it calls."""
    body = function_body(function)
    text, used = body_definition(dialect, function_name(function), function.result, body)
    return text, frozenset(used)


def body_definition(
    dialect: Dialect, name: str, result: Type, body: FunctionBody
) -> tuple[str, set[str]]:
    """The text of a function with this name and these operations, and the helpers that it calls."""
    arithmetic = Arithmetic(dialect)
    names: dict[Value, str] = {p: f"a{place}" for place, p in enumerate(body.parameters)}

    def named(value: Value) -> str:
        if not isinstance(value, Constant):
            return names[value]
        if value.type is BOOLEAN:
            return "true" if value.bits else "false"
        return arithmetic.constant(value.word_type, value.bits)

    lines, conditional = [], body.conditional()
    used = body.used()
    for place, operation in enumerate(body.operations):
        if operation not in used:
            continue
        emit = getattr(arithmetic, operation.name)
        text = emit(*operation.static, *map(named, operation.arguments))
        if operation in conditional:
            names[operation] = text  # in the selection, which evaluates it if it selects it
            continue
        assert operation.type is not None
        lines.append(f"const {dialect.types[operation.type]} v{place} = {text};")
        names[operation] = f"v{place}"
    lines.append(f"return {named(body.result)};")
    types = [f"{dialect.types[p.type]} {names[p]}" for p in body.parameters]
    text = helper_text(dialect.types[result], name, ", ".join(types), *lines)
    return text, arithmetic.used
