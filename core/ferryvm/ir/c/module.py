# SPDX-License-Identifier: Apache-2.0
"""A whole text: declarations, helpers, the region's function and those that it calls, the entry."""

from __future__ import annotations

from collections.abc import Iterator

from ferryvm.ir.c.dialect import Dialect
from ferryvm.ir.c.expression import Arithmetic
from ferryvm.ir.c.function import FunctionPrinter
from ferryvm.ir.c.shared import (
    ACTIVITY,
    ENTRIES,
    FAILURES,
    FORCED_IN,
    HOST_STACK_LIMIT,
    INSTRUCTIONS,
    NANOSECONDS,
    Choices,
    Describe,
    Shared,
    harmless,
    head,
    result_type,
    spelled,
)
from ferryvm.ir.graph import Body, Module
from ferryvm.isa.control import HEADER_WORDS
from ferryvm.isa.type import I64, Type

ENTRY = "ferry_region"
"""The C function that enters the region."""

__all__ = [
    "ACTIVITY",
    "ENTRIES",
    "ENTRY",
    "FAILURES",
    "INSTRUCTIONS",
    "NANOSECONDS",
    "Choices",
    "Describe",
    "module_text",
]


def no_comment(first: int, last: int) -> list[str]:
    """Nothing, whatever the instructions are."""
    return []


def module_text(
    module: Module,
    dialect: Dialect,
    declarations: str,
    choices: Choices,
    describe: Describe = no_comment,
) -> str:
    """A region as C. What others see of it are `ENTRY` and `ACTIVITY`.

    `declarations`: the control block and the statuses, see `ferryvm.machine.declaration`;
    `describe`: a comment on the instructions from one pc to another, both included.
    """
    guards = module.guards
    results = {number: body.result for number, body in module.functions.items()}
    shared = Shared(dialect, choices, module.counting, guards, results, describe)
    bodies: list[tuple[int | None, Body]] = [(None, module.root), *module.functions.items()]
    functions = []
    for number, body in bodies:
        title = f"/* {'region' if number is None else 'function'} {harmless(body.name)} */\n"
        functions.append(title + FunctionPrinter(shared, body, number).text())
    writers = list(_writers(shared))
    entry = _entry(shared, any(body.recurs for body in module.bodies))
    parts = [
        dialect.prelude,
        declarations,
        *_traps(shared),
        *dialect.definitions(shared.helpers),
        f"{dialect.external}{dialect.word} {ACTIVITY}[{FAILURES + len(guards)}];\n",
        *_returned(dialect, {result for result in results.values() if result is not None}),
        *writers,
        "".join(f"{head(shared, body, number)};\n" for number, body in module.functions.items()),
        *functions,
        entry,
    ]
    return "\n".join(part for part in parts if part)


def _traps(shared: Shared) -> Iterator[str]:
    if shared.traps:
        kinds = ", ".join(f"TRAP_{kind.name} = {int(kind)}" for kind in sorted(shared.traps))
        yield f"enum {{ {kinds} }};\n"


def _returned(dialect: Dialect, results: set[Type]) -> Iterator[str]:
    for t in sorted(results, key=str):
        fields = f"{dialect.types[t]} value; {dialect.status} left;"
        yield f"{result_type(dialect, t)} {{ {fields} }};\n"


def _writers(shared: Shared) -> Iterator[str]:
    """Functions out of the way that write frames and registers."""
    d = shared.dialect
    arithmetic = Arithmetic(d)
    arithmetic.used = shared.helpers
    for name, types in shared.frames.items():
        parameters = "".join(f", {spelled(d, t)} a{place}" for place, t in enumerate(types))
        yield (
            f"{d.cold}void {name}({d.words}frame{parameters})\n{{\n"
            + "".join(
                f"    frame[{HEADER_WORDS + place}] = {arithmetic.to_slot(t, f'a{place}')};\n"
                for place, t in enumerate(types)
            )
            + "}\n"
        )
    yield f"""\
{d.cold}{d.status} leave({d.control}control, {d.words}frame, {d.word} words, {d.word} pc, \
{d.status} status)
{{
    control->fp = (({d.word})frame - control->stack) / sizeof({d.word});
    control->sp = control->fp + words;
    control->pc = pc;
    control->status = status;
    return status;
}}
"""
    yield f"""\
{d.internal}{d.status} go_back({d.control}control, {d.words}frame, {d.word} result, \
{d.word} results)
{{
    const {d.word} own = (({d.word})frame - control->stack) / sizeof({d.word});
    control->pc = frame[0];
    control->fp = own - frame[1];
    control->sp = own + results;
    control->status = FERRY_LEAVE;
    frame[0] = result;
    return FERRY_LEAVE;
}}
"""


def _entry(shared: Shared, recurs: bool) -> str:
    """The function that others call: it counts, then enters the region."""
    d, choices = shared.dialect, shared.choices
    lines = [f"++{ACTIVITY}[{ENTRIES}];"]
    if choices.forced:
        lines.append(f"{FORCED_IN} = {ACTIVITY}[{ENTRIES}] % 7 + 1;")
    if recurs:
        shared.helpers.add("host_stack")
        lines.append(f"{HOST_STACK_LIMIT} = host_stack() - {choices.host_stack_bytes};")
    if not choices.observed:
        lines.append("return region(control);")
    else:
        shared.helpers.add("nanoseconds")
        lines.append(f"const {d.word} began = nanoseconds();")
        if shared.counting:
            lines.append(f"const {d.signed[I64]} fuel = control->fuel;")
        lines.append(f"const {d.status} status = region(control);")
        lines.append(f"{ACTIVITY}[{NANOSECONDS}] += nanoseconds() - began;")
        if shared.counting:
            lines.append(f"{ACTIVITY}[{INSTRUCTIONS}] += ({d.word})(fuel - control->fuel);")
        lines.append("return status;")
    body = "".join(f"    {line}\n" for line in lines)
    return f"{d.external}{d.status} {ENTRY}({d.control}control)\n{{\n{body}}}\n"
