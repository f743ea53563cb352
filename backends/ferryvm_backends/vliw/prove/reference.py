# SPDX-License-Identifier: Apache-2.0
"""The meaning of a block: its operations in order, on terms.

A block is left by its exits and at its end. A block that jumps to itself continues with the next
iteration, so it has infinitely many exits, which are generated on demand. Each exit states its path
condition: that no exit before it is taken.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterator, Mapping

from ferryvm_backends.vliw.code.liveness import Live
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineOperation,
    MemoryOperand,
    Operand,
    Register,
)
from ferryvm_backends.vliw.prove.claim import Claim
from ferryvm_backends.vliw.prove.memory import MemoryAliasing
from ferryvm_backends.vliw.prove.term import POISON, AccessNumber, Guard, Term, Trace


class BlockExitKind(enum.Enum):
    """The kind of an exit of a block."""

    EXIT = "exit"
    POLL = "exit if the time is over"
    JUMP = "jump"
    COMPUTED = "jump to a computed place"
    STOP = "stop"


@dataclasses.dataclass(frozen=True)
class BlockExit:
    """An exit of a block: its targets, and the state there."""

    kind: BlockExitKind
    operation: MachineOperation
    targets: tuple[MachineBlock, ...]
    values: Mapping[Register, Term]
    """Values of the registers that the targets need."""
    trace: Trace
    """The stores before it."""
    operand: Term | None = None
    """The predicate of an exit, or the target of a computed jump."""
    holds: bool = True
    """The value of the predicate for which the exit is taken."""

    def is_taken(self, predicate: bool) -> bool:
        """True if an exit leaves, with its predicate known."""
        return predicate == self.holds


class Reference:
    """The sequential meaning of a block."""

    def __init__(
        self, block: MachineBlock, claim: Claim, live: Live, memory: MemoryAliasing
    ) -> None:
        self.block, self.claim, self.live = block, claim, live
        self.memory, self.terms = memory, memory.terms
        self._values: dict[Register, Term] = {}
        self._trace: Trace = ()
        self._found: list[BlockExit] = []
        self._rest = self._run()
        self._passes = 0

    def exits(self) -> Iterator[BlockExit]:
        """The exits in the order of the block; without end for one that jumps to itself."""
        number = 0
        while True:
            if number == len(self._found):
                block_exit = next(self._rest, None)
                if block_exit is None:
                    return
                self._found.append(block_exit)
            yield self._found[number]
            number += 1

    def _value(self, operand: Operand) -> Term:
        if isinstance(operand, Register):
            found = self._values.get(operand)
            if found is None:
                is_live = operand in self.live[self.block]
                found = self.terms.register(operand) if is_live else POISON
            return found
        bits = operand if isinstance(operand, int) else self.claim.places[operand]
        return self.terms.constant(bits)

    def _run(self) -> Iterator[BlockExit]:
        while True:
            for operation in self.block.operations:
                block_exit = self._do(operation)
                if block_exit is not None:
                    yield block_exit
            if self.block.operations[-1].target is not self.block:
                return
            self._passes += 1

    def _do(self, operation: MachineOperation) -> BlockExit | None:
        terms, given = self.terms, [self._value(each) for each in operation.given]
        guard = self._guard(operation)
        match operation.name:
            case "exit" | "exit_unless":
                return self._exit(BlockExitKind.EXIT, operation, given[0], operation.name == "exit")
            case "exit_expired":
                return self._exit(BlockExitKind.POLL, operation)
            case "jump":
                return self._exit(BlockExitKind.JUMP, operation)
            case "jump_to":
                return self._exit(BlockExitKind.COMPUTED, operation, given[0])
            case "stop":
                return self._exit(BlockExitKind.STOP, operation)
            case "store":
                assert operation.place is not None
                access = self._access(operation.place, given[0], guard)
                self._trace = self.memory.after(self._trace, terms.store(access, given[1], guard))
                return None
            case "load":
                assert operation.place is not None
                access = self._access(operation.place, given[0], guard)
                value = terms.load(access, self.memory.seen(self._trace, access))
            case "move":
                value = given[0]
            case _:
                name = terms.name(operation.name, operation.static)
                value = terms.apply(name, [terms.under(guard, each) for each in given])
        result = operation.result
        assert result is not None
        self._values[result] = (
            value if guard is None else terms.choice(guard, value, self._value(result))
        )
        return None

    def _access(self, place: MemoryOperand, address: Term, guard: Guard | None) -> AccessNumber:
        return self.terms.access(place, address, guard, self._passes)

    def _guard(self, operation: MachineOperation) -> Guard | None:
        """The predicate of an operation."""
        found = operation.predicate
        return None if found is None else Guard(self._value(found[0]), found[1])

    def _exit(
        self,
        kind: BlockExitKind,
        operation: MachineOperation,
        operand: Term | None = None,
        holds: bool = True,
    ) -> BlockExit:
        targets = operation.targets()
        needed = {register for target in targets for register in self.live[target]}
        values = {register: self._value(register) for register in needed}
        return BlockExit(kind, operation, targets, values, self._trace, operand, holds)
