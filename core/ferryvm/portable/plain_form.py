# SPDX-License-Identifier: Apache-2.0
"""Plain form of a subject: its code with all callees, known facts of parameters, passes.

Subject ─ lift, inline ─> region IR ─ known facts ─> passes ─ plain_body ─> plain form
"""

from __future__ import annotations

from ferryvm.ir.control_flow_graph import remove_unreached
from ferryvm.ir.graph import (
    BOOLEAN,
    Body,
    Module,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.lift import lift
from ferryvm.ir.loop.natural import find_loops
from ferryvm.ir.operation import HEADER
from ferryvm.ir.passes import optimise
from ferryvm.ir.passes.check_elimination import eliminate_checks
from ferryvm.ir.passes.code_motion import hoist_invariants
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.inline import inline_all, remove_uncalled
from ferryvm.ir.passes.jump_threading import thread_jumps
from ferryvm.ir.passes.range_check import hoist_range_checks
from ferryvm.ir.passes.unroll_and_jam import unroll_and_jam
from ferryvm.ir.passes.unswitch import unswitch
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.ir.use import substitute
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Condition
from ferryvm.isa.object import header
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64
from ferryvm.portable.limit import check_calls, check_exportable, is_transfer_check
from ferryvm.portable.member import (
    ALLOCATION,
    finish_member,
    member_code,
    refuse_barriers,
    replace_barrier_exits,
)
from ferryvm.portable.plain import PlainFunction
from ferryvm.portable.plain_body import ERASED, PlainBody
from ferryvm.portable.subject import Subject
from ferryvm.region.region import region

NESTS = 2
"""The level from which on iterations of outer loops are interleaved, where that is profitable:
several times as fast, and much longer. Others stay as they are."""

VERSIONED = 3
"""The level from which on all loops have a version without range checks."""

LARGEST = 100_000
"""The largest number of operations of a callee that is inlined."""


def plain_form(subject: Subject, name: str, level: int = 2) -> PlainFunction:
    """The plain form of a subject under a name, after the passes of a level (0 to 3).

    Raises ExportError for code that has none.
    """
    module, body = _optimised(subject, level)
    has_nest = any(loop.parent is not None for loop in find_loops(body))
    if level >= VERSIONED or (level == NESTS and has_nest):
        made = hoist_range_checks(body) and unroll_and_jam(body, module.footprints)
        if made or level >= VERSIONED:
            unswitch(body, module.footprints)
        else:
            _, body = _optimised(subject, level)
    _simplify(body)
    return PlainBody(subject, body, name).run()


def _simplify(body: Body) -> None:
    """Fold branches and conditions that copies of loops have twice."""
    thread_jumps(body)
    hoist_invariants(body)
    number_values(body)
    eliminate_checks(body)
    thread_jumps(body)
    remove_dead_code(body)


def _optimised(subject: Subject, level: int) -> tuple[Module, Body]:
    module, body = _inlined(subject)
    check_calls(subject, module, body)
    refuse_barriers(subject, body)
    _know(subject, body)
    check_exportable(subject, body)
    module.functions = {}
    optimise(module, level, subject.verified)
    return module, body


def plain_member(
    subject: Subject, name: str, level: int, *, runs_members: bool, first: int | None
) -> PlainFunction:
    """The plain form of a member of a group; `subject`: the item that is the group. `runs_members`:
    the target runs members by itself, in work-groups; `first`: the first parameter on which sizes of
    groups may depend, None if they are constants.

    Raises ExportError for code that has none.
    """
    module, body = _inlined(subject)
    check_calls(subject, module, body)
    replace_barrier_exits(subject, body)
    _know(subject, body)
    check_exportable(subject, body, ALLOCATION)
    code = member_code(subject, body, runs_members, first)
    check_exportable(subject, body)
    module.functions = {}
    optimise(module, level, subject.verified)
    finish_member(subject, body, code, goes_on=runs_members)
    return PlainBody(subject, body, name, code).run()


def _inlined(subject: Subject) -> tuple[Module, Body]:
    found = region(subject.verified, _region_name(subject))
    module = lift(found, exceptions=True)
    body = module.functions[subject.wrapper]
    for each in module.functions.values():
        _end_at_traps(module, each)
    inline_all(module, body, LARGEST)
    remove_uncalled(module, subject.wrapper)
    module.root = body
    del module.functions[subject.wrapper]
    return module, body


def _end_at_traps(module: Module, body: Body) -> None:
    """Trap in place of calls of functions that only trap: what follows them is never reached."""
    for block in body.blocks:
        for place, operation in enumerate(block.operations):
            if operation.name != "call":
                continue
            blocks = module.functions[operation.fact(0, int)].blocks
            while blocks[0].end.name == "jump" and not blocks[0].operations:
                blocks = [blocks[0].end.edges[0].block]
            end = blocks[0].end
            if end.name == "trap" and all(o.name in ERASED for o in blocks[0].operations):
                block.operations = block.operations[:place]
                block.terminator = Terminator("trap", end.static, (), operation.state)
                block.terminator.pc = operation.pc
                break
    remove_unreached(body)


def _region_name(subject: Subject) -> str:
    from ferryvm.region.code import code

    return code(subject.verified).names[subject.wrapper]


def _know(subject: Subject, body: Body) -> None:
    """Fold all that is known of the parameters: arrays are no null, and have the type of the
    signature; statics that nothing changes are parameters; the stack is large enough, since nothing
    recurs."""
    new: dict[Value, Value] = {}
    parameters = body.blocks[0].parameters
    constants: dict[Value, Value] = {}
    for at, bits in subject.folded.items():
        constants[parameters[at]] = body.constant(parameters[at].word_type, bits)
    unchanged = {n: at for n, at in subject.statics.items() if n not in subject.changed}
    for block in body.blocks:
        for operation in block.operations:
            if operation.name == "static" and operation.static[0] in unchanged:
                new[operation] = parameters[unchanged[operation.fact(0, int)]]
        block.operations = [
            each
            for each in block.operations
            if each not in new
            and not (each.name == "set_static" and each.static[0] in unchanged)
            and not is_transfer_check(subject, each)
            and not (each.name == "trap_if" and each.static[0] is Trap.STACK_OVERFLOW)
        ]
    substitute(body.blocks, new)
    substitute(body.blocks, constants)
    arrays = {
        parameter: kind
        for parameter, (_, kind) in zip(parameters, subject.parameters, strict=True)
        if isinstance(kind, Element)
    }
    known: dict[Value, Value] = {}
    for operation in body.operations:
        made = _known(body, operation, arrays)
        if made is not None:
            known[operation] = made
    substitute(body.blocks, known)
    remove_dead_code(body)
    number_values(body)
    thread_jumps(body)
    remove_dead_code(body)


def _known(body: Body, operation: Operation, arrays: dict[Parameter, Element]) -> Value | None:
    if operation.name == "header_word" and operation.static[0] == HEADER:
        array = operation.arguments[0]
        if isinstance(array, Parameter) and array in arrays:
            return body.constant(I64, header(arrays[array].array.number))
    if operation.name == "compare" and operation.static[0] is I64:
        condition = operation.static[1]
        has_array = any(a in arrays for a in operation.arguments)
        zero = body.constant(I64, 0)
        if has_array and zero in operation.arguments and condition in (Condition.EQ, Condition.NE):
            return body.constant(BOOLEAN, int(condition is Condition.NE))
    if operation.name == "launch_word":
        return body.constant(I64, I64.mask >> 1)
    return None
