# SPDX-License-Identifier: Apache-2.0
"""The code of one group of a launch, if it has the form of a batch: blocks one after the other, of
which some are loops over the items of a region.

    header ─> before … ─> unfit: leave     first checks, objects
                 └──────> behind ─> region 0 ─> behind ─> region 1 ─> … ─> behind: poll ─> header
"""

from __future__ import annotations

import dataclasses

from ferryvm.ir.graph import (
    Block,
    Constant,
    Parameter,
    Value,
)
from ferryvm.ir.group.branch import item_poll
from ferryvm.ir.loop.induction import InductionVariable, find_induction_variable
from ferryvm.ir.loop.natural import Loop, loops_of
from ferryvm.isa.type import I64


class NotBatchedError(Exception):
    """Groups of a launch cannot run together."""


@dataclasses.dataclass(frozen=True, eq=False)
class GroupRegion:
    """The loop over the items of a region, or over rows of them."""

    loop: Loop
    variable: InductionVariable
    count: int
    """Of its iterations."""
    done: Parameter = dataclasses.field(default_factory=lambda: Parameter(I64))
    """The rows of all groups so far."""
    group: Parameter = dataclasses.field(default_factory=lambda: Parameter(I64))
    """The number of the group in its batch."""

    @property
    def first(self) -> Block:
        """The first block of an iteration."""
        return self.variable.onward.block


@dataclasses.dataclass(eq=False)
class GroupChain:
    """The blocks of one group, in their order."""

    groups: Loop
    """The loop over groups."""
    number: Parameter
    """Of the group."""
    limit: Value
    """The number of groups."""
    before: list[Block] = dataclasses.field(default_factory=list)
    """Up to the block that decides whether the items fit, which it ends with."""
    behind: list[Block] = dataclasses.field(default_factory=list)
    """Between and behind the regions."""
    regions: list[GroupRegion] = dataclasses.field(default_factory=list)
    doubts: list[Value] = dataclasses.field(default_factory=list)
    """Conditions under which control leaves in front of a region."""
    unfit: Block | None = None
    """The block that leaves in front of the first region."""


def group_chain(groups: Loop) -> GroupChain:
    """The blocks of a group. Raises NotBatchedError for another form."""
    variable = find_induction_variable(groups)
    if variable is None or groups.back_edge is None or not groups.latch.operations:
        raise NotBatchedError
    is_counted = isinstance(variable.step, Constant) and variable.step.bits == 1
    is_alone = groups.header.parameters == [variable.value]
    latch = groups.latch
    if not (is_counted and is_alone and latch.operations[-1].name == "poll"):
        raise NotBatchedError
    if latch.end.name != "jump":
        raise NotBatchedError
    chain = GroupChain(groups, variable.value, variable.bound)
    inner = {each.header: each for each in loops_of(groups.graph) if groups.contains(each)}
    block = variable.onward.block
    while block is not groups.latch:
        if block.parameters and block not in inner:
            raise NotBatchedError
        loop = inner.get(block)
        if loop is not None:
            region = _region(loop)
            chain.regions.append(region)
            block = region.variable.exit.block
            continue
        is_before = chain.unfit is None
        (chain.before if is_before else chain.behind).append(block)
        block = _onward(chain, block)
    chain.behind.append(groups.latch)
    if not chain.regions or chain.unfit is None or groups.latch.parameters:
        raise NotBatchedError
    return chain


def _region(loop: Loop) -> GroupRegion:
    variable, poll = find_induction_variable(loop), item_poll(loop)
    if variable is None or poll is None or not loop.is_innermost or loop.entry is None:
        raise NotBatchedError
    numbers = [
        each.bits if isinstance(each, Constant) else -1
        for each in (variable.start, variable.step, variable.bound)
    ]
    inside = {*loop.members}
    leaves = [e for b in loop.members for e in b.end.edges if e.block not in inside]
    if numbers[:2] != [0, 1] or numbers[2] < 1 or leaves != [variable.exit]:
        raise NotBatchedError
    if loop.header.parameters != [variable.value] or variable.exit.arguments:
        raise NotBatchedError
    first = variable.onward.block
    if first.parameters or loop.graph.only_edge(loop.graph.places[first]) is None:
        raise NotBatchedError
    stateful = [o for b in loop.members for o in (*b.operations, b.end) if o.state is not None]
    if stateful != [poll]:
        raise NotBatchedError
    return GroupRegion(loop, variable, numbers[2])


def _onward(chain: GroupChain, block: Block) -> Block:
    """The block that comes behind one of a group, if it does not leave."""
    end = block.end
    if end.name == "jump":
        (edge,) = end.edges
    else:
        if end.name != "branch":
            raise NotBatchedError
        leaving = [edge for edge in end.edges if edge.block.end.name == "leave"]
        if len(leaving) != 1 or leaving[0].block.operations or leaving[0].arguments:
            raise NotBatchedError
        yes, no = end.edges
        edge = no if yes is leaving[0] else yes
        if chain.unfit is None:
            if chain.regions or leaving[0].block.end.exit.phase is not None:
                raise NotBatchedError
            if edge is not yes:
                raise NotBatchedError
            chain.unfit = leaving[0].block
        elif yes is leaving[0]:
            chain.doubts.append(end.arguments[0])
        else:
            raise NotBatchedError
    if edge.block not in chain.groups.members:
        raise NotBatchedError
    return edge.block
