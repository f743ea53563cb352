# SPDX-License-Identifier: Apache-2.0
"""Barriers of a member's code: all members come to each, whether they have failed or not.

    member's code                          the check                   the work
      if bad: leave                          if bad: say so              …
      … barrier                              return                      … barrier
      if worse: leave                                                    fail_if worse
      … barrier … return                                                 … barrier … return

A member that leaves in the middle would have to tell the others, which wait for it. So the exits
are taken out of a member's code. Those that can be foreseen, which do not depend on an element, are
made by a *check* of all members of a group, which comes first and changes nothing. Where a member
would leave elsewhere it fails (`failure`), and the group has to be undone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

from ferryvm.ir.control_flow_graph import remove_unreached
from ferryvm.ir.graph import Block, Body, Constant, Edge, Operation, Terminator, Value
from ferryvm.ir.loop.clone import copied
from ferryvm.ir.loop.preheader import Labels
from ferryvm.ir.member import UngroupedError
from ferryvm.ir.member.failure import NOTES, defer_exits
from ferryvm.ir.member.form import GroupForm
from ferryvm.ir.member.uniformity import Uniformity
from ferryvm.ir.operation import SHAPES, Role
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.isa.emitter import Condition

Where = Callable[[int], str]
"""The position of an instruction, for people."""


def check_barriers(body: Body, form: GroupForm, where: Where) -> None:
    """Raise UngroupedError if a barrier is not reached by all members; each begins a block."""
    for block in Uniformity(body.blocks, [form.member]).divergent:
        if _is_barrier(block):
            at = where(block.operations[0].pc)
            raise UngroupedError(f"some members may come to the barrier at {at} without others")


def take_exits(body: Body, form: GroupForm) -> tuple[Body, frozenset[Operation] | None]:
    """Remove all exits from code that has been split at barriers: the code of the check, and the
    operations of the body that are guarded, None if no member can fail. Raises UngroupedError."""
    early, is_short = _early(body)
    check = copied(body)
    for block, copy in zip(body.blocks, check.blocks, strict=True):
        both = zip(block.operations, copy.operations, strict=True)
        copy.operations = [two for one, two in both if one.state is None or one in early]
        block.operations = [o for o in block.operations if o not in early]
        if block.end.state is not None:
            block.terminator = Terminator("return")
    if is_short:
        check.blocks[0].terminator = Terminator("return")
    _truncate(check)
    guarded = defer_exits(body, form)
    remove_dead_code(body)
    return check, guarded


def _truncate(check: Body) -> None:
    """Let code end in front of the first barriers, without any change of memory."""
    for block in check.blocks:
        if _is_barrier(block):
            block.operations, block.terminator = [], Terminator("return")
        block.operations = [o for o in block.operations if SHAPES[o.name].role is not Role.CHANGES]
    exits = [b for b in check.blocks if any(o.state is not None for o in b.operations)]
    needed = {*exits, *leading_to(exits, check)}
    for block in check.blocks:
        if needed.isdisjoint(edge.block for edge in block.end.edges):
            block.terminator = Terminator("return")  # a loop without exits may take long
    remove_unreached(check)
    remove_dead_code(check)


def _early(body: Body) -> tuple[set[Operation], bool]:
    """The exits that the check has; true if all of them are at the entry, since an element decides
    where control goes from there, or a loop may take long."""
    passed = passed_values(body)
    first = _first_phase(body)
    is_short = any(
        any(o.name == "poll" for o in block.operations)
        or (len(block.end.edges) > 1 and depends_on_load(block.end.arguments, passed))
        for block in first
    )
    if is_short:
        first &= {body.blocks[0]}
    exits = (o for block in body.blocks if block in first for o in block.operations)
    found = {o for o in exits if o.state is not None and o.name != "poll"}
    return {o for o in found if not depends_on_load(o.arguments, passed)}, is_short


_GIVEN = frozenset({"member", "member_index", "group_array", "frame", "stack_limit", "cast"})
"""Operations that depend on the number of the member, and on what a kernel is given."""


@dataclasses.dataclass(frozen=True)
class CheckedWords:
    """The words that items share, by number, on which a check depends; of some it only matters
    whether they are 0, as of references."""

    whole: tuple[int, ...]
    zero: tuple[int, ...]

    def state(self, words: Sequence[int]) -> tuple[int | bool, ...]:
        """The part of these words that a check sees."""
        return *(words[n] for n in self.whole), *(not words[n] for n in self.zero)


def checked_words(check: Body) -> CheckedWords | None:
    """The words on which a check depends, besides the member and the place of the stack: for the
    same ones it need not be made again. None if it depends on anything else."""
    if not all(
        o.name in _GIVEN
        or (SHAPES[o.name].role in (Role.COMPUTES, Role.CHECKS) and o.name != "poll")
        for o in check.operations
    ):
        return None
    shared = check.blocks[0].parameters[1:]
    used: set[Value] = set()
    compared: set[Value] = set()
    for operation in check.operations:
        (compared if _is_test_of_zero(operation) else used).update(operation.arguments)
    for block in check.blocks:
        used.update(block.end.arguments, *(edge.arguments for edge in block.end.edges))
    whole = tuple(n for n, word in enumerate(shared) if word in used)
    return CheckedWords(whole, tuple(n for n, word in enumerate(shared) if word in compared - used))


def _is_test_of_zero(operation: Operation) -> bool:
    if operation.name != "compare" or operation.static[1] not in (Condition.EQ, Condition.NE):
        return False
    return any(isinstance(a, Constant) and a.bits == 0 for a in operation.arguments)


def passed_values(body: Body) -> dict[Value, list[Value]]:
    """The arguments of edges by the parameters that receive them."""
    passed: dict[Value, list[Value]] = {}
    for edge in body.edges:
        for parameter, argument in zip(edge.block.parameters, edge.arguments, strict=True):
            passed.setdefault(parameter, []).append(argument)
    return passed


def depends_on_load(values: Iterable[Value], passed: Mapping[Value, list[Value]]) -> bool:
    """True if values depend on memory, other than by branches."""
    seen, waiting = set[Value](), [*values]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        waiting += passed.get(value, ())
        if isinstance(value, Operation):
            role = SHAPES[value.name].role
            if role in (Role.READS, Role.CHANGES, Role.CALLS) and value.name != "static":
                return True
            waiting += value.arguments
    return False


def orders_all(body: Body) -> bool:
    """True if a member may store outside of its group's arrays in front of a barrier."""
    before = leading_to([block for block in body.blocks if _is_barrier(block)], body)
    return any(o in block.operations for o in changes(body) for block in before)


def leading_to(blocks: Iterable[Block], body: Body) -> set[Block]:
    """The blocks from which control may come to one of these."""
    sources: dict[Block, list[Block]] = {block: [] for block in body.blocks}
    for block in body.blocks:
        for edge in block.end.edges:
            sources[edge.block].append(block)
    found, waiting = set[Block](), [*blocks]
    while waiting:
        for source in sources[waiting.pop()]:
            if source not in found:
                found.add(source)
                waiting.append(source)
    return found


_OWN = NOTES | {"barrier", "iterations_spent"}
"""Operations that change what nobody else sees."""


def changes(body: Body) -> list[Operation]:
    """The operations that change what others than the group see."""
    return [
        o
        for o in body.operations
        if SHAPES[o.name].role is Role.CHANGES
        and o.name not in _OWN
        and not (isinstance(o.arguments[0], Operation) and o.arguments[0].name == "group_array")
    ]


def _is_barrier(block: Block) -> bool:
    return bool(block.operations) and block.operations[0].name == "barrier"


def _first_phase(body: Body) -> set[Block]:
    """The blocks in front of the first barriers; a block behind one may be among them only in a
    loop."""
    found, waiting = set[Block](), [body.blocks[0]]
    while waiting:
        block = waiting.pop()
        if block not in found and not _is_barrier(block):
            found.add(block)
            waiting += [edge.block for edge in block.end.edges]
    return found - _behind_barriers(body)


def _behind_barriers(body: Body) -> set[Block]:
    found, waiting = set[Block](), [block for block in body.blocks if _is_barrier(block)]
    while waiting:
        block = waiting.pop()
        if block not in found:
            found.add(block)
            waiting += [edge.block for edge in block.end.edges]
    return found


def split_at_barriers(body: Body) -> None:
    """Let each barrier begin a block."""
    labels = Labels(body)
    blocks: list[Block] = []
    for block in body.blocks:
        blocks.append(block)
        here = block
        for operation in [*block.operations]:
            if operation.name == "barrier" and here.operations[0] is not operation:
                place = here.operations.index(operation)
                rest = labels.block(block, "wait")
                rest.operations = here.operations[place:]
                rest.terminator = here.terminator
                here.operations = here.operations[:place]
                here.terminator = Terminator("jump", edges=(Edge(rest, []),))
                blocks.append(rest)
                here = rest
    body.blocks[:] = blocks
