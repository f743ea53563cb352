# SPDX-License-Identifier: Apache-2.0
"""A whole text: declarations, helpers, the region's function and those that it calls, the entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ferryvm.ir.c.context import (
    ACTIVITY,
    CROWDED,
    ENTRIES,
    FAILURES,
    FORCED_IN,
    HOST_STACK_LIMIT,
    INSTRUCTIONS,
    LOWEST_FRAME,
    NANOSECONDS,
    STACK,
    Choices,
    Describe,
    PrintingContext,
    function_name,
    harmless,
    head,
    result_type,
    spelled,
)
from ferryvm.ir.c.contraction import may_be_fused
from ferryvm.ir.c.dialect import Dialect
from ferryvm.ir.c.expression import Arithmetic
from ferryvm.ir.c.function import FunctionPrinter
from ferryvm.ir.c.function_helper import function_definitions
from ferryvm.ir.graph import Body, Module
from ferryvm.ir.headroom import frame_headroom
from ferryvm.isa.type import I64, WORD_BYTES, Type

ENTRY = "ferry_region"
"""The C function that enters the region."""

Resumed = Mapping[int, Module]
"""Regions at which a text continues after it left for a call that was too deep, by their entries:
entries of recursive functions, and return points of their callers."""


def no_comment(first: int, last: int) -> list[str]:
    """No comment, whatever the instructions are."""
    return []


def guard_pcs(module: Module, resumed: Resumed) -> list[int]:
    """pcs of all guards of a text, by their numbers in it."""
    return sorted({pc for each in (module, *resumed.values()) for pc in each.guards})


def module_text(
    module: Module,
    dialect: Dialect,
    declarations: str,
    choices: Choices,
    describe: Describe = no_comment,
    resumed: Resumed | None = None,
) -> str:
    """A region as C. The external names are `ENTRY` and `ACTIVITY`.

    `declarations`: the control block and the statuses, see `ferryvm.machine.declaration`;
    `describe`: a comment on the instructions from one pc to another, both included; `resumed`: the
    points at which the text can continue by itself, if `choices.levels` is not 0.
    """
    resumed = resumed or {}
    modules = [module, *resumed.values()]
    guards = guard_pcs(module, resumed)
    called = {number: body for each in modules for number, body in each.functions.items()}
    results = {number: body.result for number, body in called.items()}
    shared = PrintingContext(dialect, choices, module.counting, guards, results, describe)
    bodies = (body for each in modules for body in each.bodies)
    shared.catches = any(o.name == "caught" for body in bodies for o in body.operations)
    if choices.levels:
        shared.recursing = frozenset(number for number, body in called.items() if body.recurs)
    reach = _reach([called[number] for number in shared.recursing], choices.levels)
    roots = {"region": module.root} if dialect.has_root else {}
    roots |= {f"resume_{pc}": each.root for pc, each in resumed.items()}
    functions, heads = [], []
    for name, body in roots.items():
        title = f"/* region {harmless(body.name)} */\n"
        functions.append(title + FunctionPrinter(shared, body, None, name).text())
    for number, body in called.items():
        title = f"/* function {harmless(body.name)} */\n"
        for name, text in _copies(shared, number, body, reach):
            functions.append(title + text)
            heads.append(head(shared, body, number, name) + ";\n")
    writers = [*_writers(shared), *_records(shared)]
    if dialect.entry:
        most = max(body.parameters for each in modules for body in each.bodies)
        run = _run(shared, list(resumed), most) + "\n" if dialect.has_root else ""
        entry = run + dialect.entry
    else:
        entry = _entry(shared, any(body.recurs for body in module.bodies))
    applied = function_definitions(dialect, shared.helpers)
    printed = [body for each in modules for body in each.bodies]
    parts = [
        dialect.unfused if dialect.unfused and may_be_fused(printed) else "",
        dialect.prelude,
        declarations,
        *_traps(shared),
        *dialect.definitions(shared.helpers),
        *applied,
        *_activity(shared),
        *_returned(dialect, {result for result in results.values() if result is not None}),
        *writers,
        "".join(heads),
        *functions,
        entry,
    ]
    return "\n".join(part for part in parts if part)


def _copies(
    shared: PrintingContext, number: int, body: Body, reach: int
) -> Iterator[tuple[str, str]]:
    """Names and texts of a function and of its copies."""
    deepest = shared.choices.levels if number in shared.recursing else 0
    plain = f"{function_name(number, 0)}_plain"
    for level in range(deepest + 1):
        name = function_name(number, level)
        printer = FunctionPrinter(shared, body, number, name, level)
        if level == deepest > 0:
            yield name, printer.too_deep()
        elif deepest > 1:
            yield name, printer.with_headroom(plain, reach)
        else:
            yield name, printer.text()
    if deepest > 1:
        printer = FunctionPrinter(shared, body, number, plain)
        printer.scope.below = deepest
        yield plain, printer.text()


def _reach(bodies: list[Body], levels: int) -> int:
    """Bytes from the frame of an outermost copy to the end of the headroom of the innermost
    ones."""
    operations = [operation for body in bodies for operation in body.operations]
    bases = [o.fact(1, int) for o in operations if o.name in ("call", "call_indirect")]
    furthest = max(map(frame_headroom, operations), default=0)
    return WORD_BYTES * max(bases, default=0) * levels + furthest


def _traps(shared: PrintingContext) -> Iterator[str]:
    if shared.traps:
        kinds = ", ".join(f"TRAP_{kind.name} = {int(kind)}" for kind in sorted(shared.traps))
        yield f"enum {{ {kinds} }};\n"


def _activity(shared: PrintingContext) -> Iterator[str]:
    if not shared.dialect.entry:
        d, count = shared.dialect, FAILURES + len(shared.guards)
        yield f"{d.external}{d.word} {ACTIVITY}[{count}];\n"


def _returned(dialect: Dialect, results: set[Type]) -> Iterator[str]:
    for t in sorted(results, key=str):
        fields = f"{dialect.types[t]} value; {dialect.status} exited;"
        yield f"{result_type(dialect, t)} {{ {fields} }};\n"


def _writers(shared: PrintingContext) -> Iterator[str]:
    """Cold functions that write frames and registers."""
    d = shared.dialect
    arithmetic = Arithmetic(d, shared.helpers)
    for name, types in shared.frames.items():
        stored = [(place, t) for place, t in enumerate(types) if t is not None]
        parameters = "".join(f", {spelled(d, t)} a{place}" for place, t in stored)
        yield (
            f"{d.cold}void {name}({d.exit_stores}{d.frames}frame{parameters})\n{{\n"
            + "".join(
                f"    frame[{place}] = {arithmetic.to_slot(t, f'a{place}')};\n"
                for place, t in stored
            )
            + "}\n"
        )
    stack = d.segments["stack"]
    yield f"""\
{d.cold}{d.status} leave({d.parameters}, {d.frames}frame, {d.word} parameters, \
{d.word} words, {d.word} pc, {d.status} status)
{{
    const {d.word} own = (({d.word})frame - ({d.word}){stack}) / sizeof({d.word});
    control->fp = own + parameters;
    control->sp = own + words;
    control->pc = pc;
    control->status = status;
    return status;
}}
"""
    yield f"""\
{d.internal}void go_back({d.parameters}, {d.frames}frame, {d.word} parameters, \
{d.word} result, {d.word} results)
{{
    const {d.word} own = (({d.word})frame - ({d.word}){stack}) / sizeof({d.word});
    control->pc = frame[parameters];
    control->fp = own + parameters - frame[parameters + 1];
    control->sp = own + results;
    control->status = {shared.back};
    frame[0] = result;
}}
"""


def _records(shared: PrintingContext) -> Iterator[str]:
    """Functions that write the records of groups."""
    for name, body in shared.records.values():
        yield FunctionPrinter(shared, body, body.function, name, is_cold=True).text()


def _run(shared: PrintingContext, pcs: list[int], most: int) -> str:
    """The function that runs the region, and continues with calls that were too deep for it.

    `most`: the largest number of parameters of its functions.
    """
    d = shared.dialect
    again = ""
    if shared.recursing:
        cases = "".join(
            f"        case {pc}: status = resume_{pc}({d.passed}); break;\n" for pc in pcs
        )
        again = f"""\
    while (status == FERRY_RUNNING) {{
        const {d.word} lowest = control->fp > {most} ? control->fp - {most} : 0;
        if (lowest < {LOWEST_FRAME})
            {LOWEST_FRAME} = lowest;
        switch (control->pc) {{
{cases}\
        default: status = control->status = FERRY_LEAVE; break;
        }}
    }}
"""
    return f"""\
{d.internal}{d.status} run({d.parameters})
{{
    {d.status} status = region({d.passed});
{again}\
    return status;
}}
"""


def _entry(shared: PrintingContext, recurs: bool) -> str:
    """The exported function: it counts, then enters the region."""
    d, choices = shared.dialect, shared.choices
    lines = [f"++{ACTIVITY}[{ENTRIES}];"]
    if choices.forced:
        lines.append(f"{FORCED_IN} = {ACTIVITY}[{ENTRIES}] % 7 + 1;")
    shared.helpers |= {"host_stack", "unlikely"}
    lines += [
        f"const {d.word} top = host_stack();",
        f"const {d.word} lowest = control->host_stack + {ACTIVITY}[{STACK}];",
        "if (unlikely(top < lowest)) {",
        f"    ++{ACTIVITY}[{CROWDED}];",
        "    return control->status = FERRY_LEAVE;",
        "}",
    ]
    if recurs:
        deepest = f"top - {choices.host_stack_bytes}"
        lines.append(f"{HOST_STACK_LIMIT} = lowest > {deepest} ? lowest : {deepest};")
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
    return f"{d.external}{d.status} {ENTRY}({d.parameters})\n{{\n{body}}}\n"
