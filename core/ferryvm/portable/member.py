# SPDX-License-Identifier: Apache-2.0
"""Groups in front of plain form: an item that launches members becomes the code of one member.

    item of the launch ─ ferryvm.ir.member ─> a member, barriers, arrays of the group ─> plain form

Targets with work-groups print a member; others run loops over members
(`ferryvm.portable.item_loop`). In the first ones a member that fails goes on to all barriers
(`ferryvm.ir.member.failure`); in the others it returns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NoReturn

from ferryvm.errors import Position
from ferryvm.ir.graph import (
    BOOLEAN,
    Body,
    Constant,
    FrameState,
    Operation,
    Parameter,
    Terminator,
    Value,
)
from ferryvm.ir.loop.induction import find_induction_variable
from ferryvm.ir.loop.natural import Loop, find_loops
from ferryvm.ir.member import UngroupedError
from ferryvm.ir.member.axis import split_axes
from ferryvm.ir.member.boundary import (
    check_barriers,
    depends_on_load,
    orders_all,
    passed_values,
    split_at_barriers,
)
from ferryvm.ir.member.check import eliminate_member_checks
from ferryvm.ir.member.failure import defer_exits, merge_traps
from ferryvm.ir.member.first_store import mark_stored_first
from ferryvm.ir.member.form import GroupForm, group_form, mark_barriers, settle
from ferryvm.ir.member.size import Leaf, LeafKind, group_sizes, launch_loops, leaves
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.ir.passes.launch_exit import sink_launch_exits
from ferryvm.ir.passes.value_numbering import number_values
from ferryvm.ir.use import substitute
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import I64
from ferryvm.portable.expression import Expression, expression_of
from ferryvm.portable.interface import MOST_MEMBERS
from ferryvm.portable.refusal import ExportError
from ferryvm.portable.subject import Subject
from ferryvm.region.barrier import BARRIER

MOST_BYTES = 1 << 18
"""The largest size of the arrays of a group."""

_FOLDS = 3
"""Times that constants are folded, until branches on sizes are decided."""

_LAUNCH = frozenset({"pay", "report_version", "parallel_if", "continue_launch_if", "check_entry"})
"""Operations of launches that the code of a member does without."""

ALLOCATION = frozenset(
    {"allocate_if", "clear_prepared", "set_object_top", "set_header_word", "object_top"}
    | {"object_end", "prepared_place", "prepared_bytes", "release_objects"}
)
"""Operations that an item makes the arrays of its group with."""


@dataclasses.dataclass
class MemberCode:
    """Facts on the code of a member."""

    form: GroupForm
    guarded: frozenset[Operation] = frozenset()
    """Operations that do nothing in a member that has failed."""
    exits: dict[Operation, Operation] = dataclasses.field(default_factory=dict)
    """The exits of the program, by the operations at which a member fails."""
    sizes: dict[Parameter, Expression] = dataclasses.field(default_factory=dict)
    """Parameters that are sizes, by places of parameters. Those that stand for an expression are the
    last parameters of the entry."""
    orders_all: bool = False
    """True if members may read behind a barrier what others stored into arguments before it."""


def refuse_barriers(subject: Subject, body: Body) -> None:
    """Raise ExportError if items wait for each other."""
    opcodes = subject.verified.program.code.opcodes
    for operation in body.operations:
        is_exit = operation.name == "continue_launch_if"
        if is_exit and opcodes[operation.exit.pc] == BARRIER:
            what = "it launches items that wait for each other"
            instead = "export the launch of their groups"
            raise ExportError(what, instead, subject.place(operation.exit))


def replace_barrier_exits(subject: Subject, body: Body) -> None:
    """Replace exits at barriers by barriers, before anything else is changed. Raises
    ExportError."""
    try:
        mark_barriers(body, subject.verified.program)
    except UngroupedError as error:
        _refuse(subject, error)


def member_code(subject: Subject, body: Body, has_axes: bool, first: int | None) -> MemberCode:
    """Make an item of groups one member of its group; `has_axes`: the target has axes of members;
    `first`: the first parameter that all groups share, on which sizes may depend; None: they are
    constants. Raises ExportError."""
    sink_launch_exits(body)
    for block in body.blocks:
        block.operations = [o for o in block.operations if o.name not in _LAUNCH]
        for operation in (*block.operations, block.end):
            if operation.state is not None:
                operation.state = FrameState(subject.placed(operation.state), ())
                operation.pc = operation.state.pc
        if block.end.name == "throw" and subject.may_throw:
            end = block.end
            block.terminator = Terminator("trap", (Trap.UNCAUGHT_EXCEPTION,), (), end.state)
            block.terminator.pc = end.pc
    for _ in range(_FOLDS):
        settle(body)
    program = subject.verified.program
    try:
        made = {o for loop in launch_loops(body, program) for o in loop.operations}
        for operation in body.operations:
            if operation in made and operation.name == "allocate_if":
                raise ExportError(
                    "the members of a group make objects",
                    "make arrays where the group begins",
                    subject.position(operation.pc),
                )
        found = leaves(body, program)
        if found and first is None:
            _refuse_sizes(subject, found)
        sizes = _name_sizes(subject, body, first) if found and first is not None else {}
        form = group_form(body, program)
    except UngroupedError as error:
        _refuse(subject, error)
    _check_sizes(subject, form)
    if has_axes:
        form = split_axes(body, form)
    eliminate_member_checks(body, form)
    return MemberCode(form, sizes=sizes)


def _name_sizes(subject: Subject, body: Body, first: int) -> dict[Parameter, Expression]:
    """Let each size that is no constant be a parameter, which stands for its expression. Raises
    ExportError for one that has none, such as a launch of two dimensions."""
    entry = body.blocks[0]
    places = {p: place for place, p in enumerate(entry.parameters) if place >= first}
    found: dict[Expression, Parameter] = {}
    new: dict[Value, Value] = {}
    for value in group_sizes(body, subject.verified.program):
        if isinstance(value, Constant):
            continue
        expression = expression_of(value, places)
        if expression is None:
            _refuse_sizes(subject, leaves(body, subject.verified.program))
        own = value if isinstance(value, Parameter) else Parameter(I64)
        new[value] = found.setdefault(expression, own)
    entry.parameters += [p for p in found.values() if p not in places]
    substitute(body.blocks, new)
    return {parameter: expression for expression, parameter in found.items()}


def finish_member(subject: Subject, body: Body, code: MemberCode, goes_on: bool) -> None:
    """Find what the target needs of code that has passed the passes; `goes_on`: a member that fails
    goes on to the barriers of the others. Raises ExportError."""
    form = code.form
    eliminate_member_checks(body, form)
    number_values(body)  # without threading jumps, which would part members in front of barriers
    remove_dead_code(body)
    merge_traps(body)
    _drop_polls(body)
    split_at_barriers(body)
    try:
        if goes_on:
            _check_ends(body)
            code.guarded = defer_exits(body, form, code.exits) or frozenset()
            remove_dead_code(body)
        check_barriers(body, form, lambda pc: str(subject.position(pc) or f"pc {pc}"))
    except UngroupedError as error:
        _refuse(subject, error)
    code.form = mark_stored_first(body, form)
    code.orders_all = orders_all(body)


def _check_ends(body: Body) -> None:
    """Let what always fails be checks in front of the end of a member."""
    for block in body.blocks:
        end = block.end
        if end.name != "trap":
            continue
        check = Operation("trap_if", None, end.static, (body.constant(BOOLEAN, 1),), end.state)
        check.pc = end.pc
        block.operations.append(check)
        block.terminator = Terminator("return")
        block.terminator.pc = end.pc


def _drop_polls(body: Body) -> None:
    """Remove the polls of loops that end whether members have failed or not: of those with
    barriers, and those that count to what no element decides."""
    passed = passed_values(body)

    def ends(loop: Loop) -> bool:
        if any(o.name == "barrier" for o in loop.operations):
            return True
        found = find_induction_variable(loop)
        if found is None:
            return False
        return not depends_on_load((found.start, found.step, found.bound), passed)

    has_exits = any(
        o.state is not None and o.name != "poll"
        for block in body.blocks
        for o in (*block.operations, block.end)
    )
    for loop in find_loops(body):
        if not has_exits or ends(loop):
            for latch in loop.latches:
                block = loop.graph.blocks[latch]
                block.operations = [o for o in block.operations if o.name != "poll"]


def _refuse_sizes(subject: Subject, found: Sequence[Leaf]) -> NoReturn:
    """Raise ExportError for sizes that depend on values of a call."""
    named = [(leaf.kind, subject.parameters[1 + leaf.number][0]) for leaf in found]
    shown = [
        f"the length of {name!r}" if kind is LeafKind.LENGTH else f"the argument {name!r}"
        for kind, name in named
    ]
    what = f"the size of its groups, or of an array of theirs, depends on {' and '.join(shown)}"
    folds = [f"--fold {name}=VALUE" for kind, name in named if kind is not LeafKind.LENGTH]
    instead = " and ".join(folds)
    if len(folds) < len(named):
        length = "pass each length as a number of its own, and make that a constant (--fold)"
        instead = f"{instead}; {length}" if folds else length
    else:
        instead = f"make it a constant ({instead})"
    raise ExportError(what, instead, subject.position(subject.entry))


def _check_sizes(subject: Subject, form: GroupForm) -> None:
    size = sum(array.bytes for array in form.arrays)
    position = subject.position(subject.entry)
    if form.size is None and not 0 < form.members <= MOST_MEMBERS:
        what = f"its groups have {form.members} members"
        raise ExportError(what, f"1 to {MOST_MEMBERS} are possible", position)
    if size > MOST_BYTES:
        what = f"the arrays of a group take {size} bytes"
        raise ExportError(what, f"{MOST_BYTES} are possible", position)


def _refuse(subject: Subject, error: UngroupedError) -> NoReturn:
    position: Position | None = subject.position(subject.entry)
    instead = (
        "let a group make its arrays, then launch its members, all of which come to each barrier"
    )
    raise ExportError(f"its groups are no work-groups: {error}", instead, position) from None
