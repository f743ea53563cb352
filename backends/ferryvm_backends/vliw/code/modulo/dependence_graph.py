# SPDX-License-Identifier: Apache-2.0
"""The dependence graph of a loop: operations of one iteration, sources of their operands,
dependences.

Loop-carried registers are replaced by their sources: an operand is a result of the iteration
before, or of an earlier one where iterations only copy it. Only an access may read a result of a
later iteration, once that has a register (`with_bases`). An edge with distance d says that an
operation depends on another one d iterations earlier.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ferryvm.isa.type import I64, WORD_BYTES
from ferryvm_backends.vliw.code.dependence import DependenceKind, is_apart
from ferryvm_backends.vliw.code.liveness import Live
from ferryvm_backends.vliw.code.operation import (
    EXITS,
    MachineBlock,
    MachineOperation,
    Operand,
    Register,
)

_FARTHEST = 64
"""Rounds that are looked at for two accesses of one line to meet."""
_LONGEST_STEP = 1 << 20
_LARGEST_OFFSET = 1 << 30
"""The limit of the offset of an access whose base may be that of another iteration, so that the
adjusted offset fits."""


@dataclasses.dataclass(frozen=True)
class NodeResult:
    """The result of an operation, of so many iterations before this one; of a later one if less
    than 0."""

    node: int
    distance: int = 0


@dataclasses.dataclass(frozen=True)
class Invariant:
    """A register that does not change in the loop."""

    register: Register


@dataclasses.dataclass(frozen=True)
class _Entry:
    """The value of a register at the start of an iteration; only during construction."""

    register: Register


Source = NodeResult | Invariant | int
_Value = NodeResult | Invariant | int | _Entry
_Found = tuple[MachineOperation, list[_Value], dict[Register, _Value]]
"""An operation, its operands, and the needs of its target; `NodeResult` counts operations in
order."""


@dataclasses.dataclass(eq=False)
class DependenceNode:
    """An operation of the iteration."""

    number: int
    operation: MachineOperation
    """Its operands and result mean nothing here."""
    sources: tuple[Source, ...]
    needed: dict[Register, Source]
    """For an exit: the registers that its target expects."""
    initial: Mapping[int, Register] = dataclasses.field(default_factory=dict)
    """The registers with the results of so many iterations before the first one, as far as anyone
    reads them."""
    step: int | None = None
    """For an access: the step of its base in each iteration, if the base of a later iteration can
    be used as well."""

    @property
    def is_exit(self) -> bool:
        """True if control may leave the loop by it."""
        return self.operation.name in EXITS and self.operation.target is not None


@dataclasses.dataclass(frozen=True)
class DependenceEdge:
    """The second operation depends on the first, so many iterations earlier."""

    first: int
    second: int
    reason: DependenceKind
    distance: int = 0


class Iteration:
    """An iteration of a loop that is one block, or several iterations of the program's together."""

    def __init__(self, block: MachineBlock, live: Live, iterations: int = 1) -> None:
        self.block = block
        self.nodes: list[DependenceNode] = []
        self._read(block, live, iterations)
        for node in self.nodes:
            node.step = self._step_of_base(node)
        self.repeat = next(n.number for n in self.nodes if n.operation.name == "repeat")

    @functools.cached_property
    def edges(self) -> list[DependenceEdge]:
        """The dependences. An iteration that is too large to be pipelined needs none."""
        return list(dict.fromkeys([*self._values(), *self._exits(), *self._memory()]))

    # --- operations -------------------------------------------------------------------------

    def _read(self, block: MachineBlock, live: Live, iterations: int) -> None:
        operations = block.operations[:-1]
        changed = {o.result for o in operations if o.result is not None}
        now: dict[Register, _Value] = {}
        found: list[_Found] = []
        polls = [o for o in operations if o.name == "exit_expired"]

        def value(operand: Operand) -> _Value:
            if not isinstance(operand, Register):
                assert isinstance(operand, int)
                return operand
            return now.get(operand, _Entry(operand) if operand in changed else Invariant(operand))

        for iteration, operation in ((n, each) for n in range(iterations) for each in operations):
            is_last = iteration == iterations - 1
            if operation.name == "exit_expired" and not (is_last and operation is polls[-1]):
                continue  # the time is looked at once an iteration
            if operation.name == "move":
                assert operation.result is not None
                now[operation.result] = value(operation.operands[0])
                continue
            operands = [value(each) for each in operation.operands]
            needed: dict[Register, _Value] = {}
            if operation.name in EXITS:
                assert operation.target is not None
                wanted = sorted(live[operation.target], key=lambda each: each.number)
                needed = {r: value(r) for r in wanted if r in changed}
            if operation.result is not None:
                now[operation.result] = NodeResult(len(found))
            new = _repeat(operation) if operation.name == "exit_expired" else operation
            if operation.place is not None and operation.place.item is not None:
                item = operation.place.item._replace(iteration=iteration, iterations=iterations)
                place = dataclasses.replace(operation.place, item=item)
                new = dataclasses.replace(operation, place=place)
            found.append((new, operands, needed))
        if not polls:
            found.append((MachineOperation("repeat", pc=block.operations[-1].pc), [], {}))
        carried = sorted(live[block] & changed, key=lambda each: each.number)
        now = {r: now[r] for r in carried if r in now}
        self._pass_on(*_without_unused(_folded(found, now), now), carried)

    def _pass_on(
        self,
        found: list[_Found],
        now: dict[Register, _Value],
        carried: list[Register],
    ) -> None:
        """Pass this iteration's registers to the next iteration."""
        passed = {r: now.get(r, _Entry(r)) for r in carried}
        remaining = [register for register in carried if passed[register] != _Entry(register)]
        next_: dict[Register, Source] = {r: Invariant(r) for r in carried if r not in remaining}
        initial: dict[int, dict[int, Register]] = defaultdict(dict)

        def made_before(register: Register) -> NodeResult | None:
            """The producer of a register's value at the start of the next iteration, if it is
            known."""
            value, distance = passed[register], 1
            if isinstance(value, _Entry):
                before = next_.get(value.register)
                if isinstance(before, NodeResult):
                    value, distance = before, before.distance + 1
            if not isinstance(value, NodeResult) or distance in initial[value.node]:
                return None  # one operation has one result of each iteration before the first
            return NodeResult(value.node, distance)

        while remaining:
            found_now = ((r, made) for r in remaining if (made := made_before(r)) is not None)
            register, made = next(found_now, (remaining[0], None))
            if made is None:
                move = MachineOperation("move", result=register, pc=self.block.operations[-1].pc)
                found.append((move, [passed[register]], {}))
                made = NodeResult(len(found) - 1, 1)
            remaining.remove(register)
            initial[made.node][made.distance] = register
            next_[register] = made

        def source(value: _Value) -> Source:
            return next_[value.register] if isinstance(value, _Entry) else value

        for number, (operation, operands, needed) in enumerate(found):
            self.nodes.append(
                DependenceNode(
                    number,
                    operation,
                    tuple(source(each) for each in operands),
                    {register: source(each) for register, each in needed.items()},
                    initial[number],
                )
            )

    def with_bases(self, distances: Mapping[int, int]) -> Iteration:
        """The iteration in which some accesses, by number, use the bases of so many iterations
        before, with adjusted offsets."""
        found = copy.copy(self)
        found.nodes, found.edges = self.nodes.copy(), self.edges
        for number, distance in distances.items():
            node = self.nodes[number]
            base, place = node.sources[0], node.operation.place
            assert isinstance(base, NodeResult)
            assert node.step is not None
            assert place is not None
            offset = place.offset + (distance - base.distance) * node.step
            found.nodes[number] = dataclasses.replace(
                node,
                operation=dataclasses.replace(
                    node.operation, place=dataclasses.replace(place, offset=offset)
                ),
                sources=(dataclasses.replace(base, distance=distance), *node.sources[1:]),
            )
        return found

    def _step_of_base(self, node: DependenceNode) -> int | None:
        place = node.operation.place
        base = node.sources[0] if place is not None else None
        if place is None or not isinstance(base, NodeResult):
            return None
        root, _ = self._line(NodeResult(base.node))
        # A value of an iteration before the first one belongs to the recurrence only if it is its
        # root.
        if not isinstance(root, NodeResult) or base.distance > (root.node == base.node):
            return None
        step = self._step(root)
        if (
            step is None
            or abs(_signed(step)) > _LONGEST_STEP
            or abs(place.offset) > _LARGEST_OFFSET
        ):
            return None
        return _signed(step)

    # --- dependences ------------------------------------------------------------------------

    def _values(self) -> Iterator[DependenceEdge]:
        for node in self.nodes:
            for source in node.sources:
                if isinstance(source, NodeResult):
                    yield DependenceEdge(
                        source.node, node.number, DependenceKind.VALUE, source.distance
                    )

    def _exits(self) -> Iterator[DependenceEdge]:
        exits = [node for node in self.nodes if node.is_exit]
        for first, second in itertools.pairwise(exits):
            yield DependenceEdge(first.number, second.number, DependenceKind.ORDER)
        if exits:
            yield DependenceEdge(exits[-1].number, exits[0].number, DependenceKind.ORDER, 1)
        for node in exits:
            for source in node.needed.values():
                if isinstance(source, NodeResult):
                    yield DependenceEdge(
                        source.node, node.number, DependenceKind.WRITTEN_BACK, source.distance
                    )
        for node in self.nodes:
            if node.operation.name == "store" and exits:
                before = [each for each in exits if each.number < node.number]
                after = [each for each in exits if each.number > node.number]
                last = before[-1] if before else exits[-1]
                yield DependenceEdge(
                    last.number, node.number, DependenceKind.CONTROL, 0 if before else 1
                )
                following = after[0] if after else exits[0]
                yield DependenceEdge(
                    node.number, following.number, DependenceKind.DONE, 0 if after else 1
                )

    def _memory(self) -> Iterator[DependenceEdge]:
        accesses = [node for node in self.nodes if node.operation.place is not None]
        for one in accesses:
            for other in accesses:
                names = one.operation.name, other.operation.name
                if "store" not in names:
                    continue
                distance = self._meet(one, other)
                if distance is not None:
                    reason = DependenceKind.MEMORY if names[0] == "load" else DependenceKind.ORDER
                    yield DependenceEdge(one.number, other.number, reason, distance)

    def _meet(self, one: DependenceNode, other: DependenceNode) -> int | None:
        """The smallest number of iterations after which the second access may overlap the first
        one."""
        first, second = one.operation.place, other.operation.place
        assert first is not None
        assert second is not None
        if is_apart(first, second):
            return None
        least = 0 if one.number < other.number else 1
        if first.item is not None and second.item is not None:
            least = max(least, first.item.is_other(second.item))
            if first.item.of_iteration and second.item.of_iteration:
                within = None if least else self._meet_anywhere(one, other, 0)
                return within if within == 0 else None
        return self._meet_anywhere(one, other, least)

    def _meet_anywhere(self, one: DependenceNode, other: DependenceNode, least: int) -> int | None:
        """The same, whichever items access; `least`: the smallest number of iterations."""
        first, second = one.operation.place, other.operation.place
        assert first is not None
        assert second is not None
        root, offset = self._line(one.sources[0])
        root_, offset_ = self._line(other.sources[0])
        step = self._step(root)
        if root != root_ or step is None:
            return least
        start, start_ = first.offset + offset, second.offset + offset_
        for distance in range(least, _FARTHEST if step else least + 1):
            between = _signed(start_ + distance * step - start)
            if -second.size < between < first.size:
                return distance
        return None

    def _line(self, source: Source) -> tuple[Source, int]:
        """An address as something and a constant."""
        offset = 0
        while isinstance(source, NodeResult) and source.distance == 0:
            node = self.nodes[source.node]
            operation, sources = node.operation, node.sources
            more = _constant(operation, sources)
            if more is None and operation.name == "add":  # it may be the other operand
                sources = sources[::-1]
                more = _constant(operation, sources)
            if more is None:
                break
            source, offset = sources[0], offset + more
        if isinstance(source, int):
            return 0, offset + source
        return source, offset

    def _step(self, root: Source) -> int | None:
        """The step of an affine expression in an iteration; None if it is not known."""
        if not isinstance(root, NodeResult):
            return 0
        if (
            root.distance != 1
        ):  # a value that is passed on twice belongs to two alternating recurrences
            return None
        again, step = self._line(NodeResult(root.node))
        return step if again == root else None


def _constant(operation: MachineOperation, operands: Sequence[_Value]) -> int | None:
    """The constant that an operation adds to its first operand, if that is all it does."""
    if operation.name not in ("add", "sub") or operation.static != (I64,):
        return None
    more = operands[1]
    if not isinstance(more, int):
        return None
    return more if operation.name == "add" else -more


def _folded(found: list[_Found], now: Mapping[Register, _Value]) -> list[_Found]:
    """Accesses and sums that count from the same as others do where only sums with constants are
    between, which then may not be needed: several iterations share one pointer."""
    new = [_from_root(found, each) for each in found]
    wanted = {*now.values()}
    for operation, operands, needed in new:
        wanted.update(needed.values())
        if _constant(operation, operands) is None:
            wanted.update(operands)
    for number, (operation, operands, needed) in enumerate(new):
        mine, first = _constant(operation, operands), operands[0] if operands else None
        if mine is None or not isinstance(first, NodeResult) or first in wanted:
            continue
        more = _constant(*new[first.node][:2])
        if more is not None:
            total = more + mine if operation.name == "add" else -more - mine
            root = new[first.node][1][0]
            new[number] = operation, [root, total % (1 << 64)], needed
    return new


def _from_root(found: list[_Found], each: _Found) -> _Found:
    """An operation; for an access, with its address as a sum."""
    operation, operands, needed = each
    place = operation.place
    if place is None:
        return each
    base, offset = operands[0], place.offset
    while isinstance(base, NodeResult) and (more := _constant(*found[base.node][:2])) is not None:
        base, offset = found[base.node][1][0], offset + _signed(more)
    if abs(offset) > _LARGEST_OFFSET:
        return each
    place = dataclasses.replace(place, offset=offset)
    return dataclasses.replace(operation, place=place), [base, *operands[1:]], needed


def _without_unused(
    found: list[_Found], now: dict[Register, _Value]
) -> tuple[list[_Found], dict[Register, _Value]]:
    """Operations and the registers' values after them, without unused sums."""
    used = {*now.values()}
    needed_numbers: list[int] = []
    for number in reversed(range(len(found))):
        operation, operands, needed = found[number]
        if NodeResult(number) in used or _constant(operation, operands) is None:
            needed_numbers.append(number)
            used.update(operands, needed.values())
    numbers = {old: new for new, old in enumerate(reversed(needed_numbers))}

    def value(old: _Value) -> _Value:
        return NodeResult(numbers[old.node]) if isinstance(old, NodeResult) else old

    remaining = [
        (operation, [*map(value, operands)], {r: value(v) for r, v in needed.items()})
        for operation, operands, needed in map(found.__getitem__, reversed(needed_numbers))
    ]
    return remaining, {register: value(each) for register, each in now.items()}


def _repeat(poll: MachineOperation) -> MachineOperation:
    return MachineOperation("repeat", target=poll.target, pc=poll.pc)


def _signed(number: int) -> int:
    half = 1 << (8 * WORD_BYTES - 1)
    return (number + half) % (2 * half) - half
