# SPDX-License-Identifier: Apache-2.0
"""Loops that are one block, by hand and out of programs, and a machine to pipeline them for."""

from __future__ import annotations

from ferryvm.backend import Options
from ferryvm.ir.graph import Static
from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64
from ferryvm.region.region import Region
from ferryvm_backends.vliw.code.liveness import live_at_entry
from ferryvm_backends.vliw.code.lower.body import lower
from ferryvm_backends.vliw.code.modulo.dependence_graph import (
    DependenceEdge,
    DependenceNode,
    Iteration,
)
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineCode,
    MachineOperation,
    MemoryOperand,
    Operand,
    Register,
    Segment,
)
from ferryvm_backends.vliw.code.register_file import FileAssignment
from ferryvm_backends.vliw.machine.model import FileKind, Machine
from ferryvm_backends.vliw.machine.read import read_text
from ferryvm_backends.vliw.passes import optimised

HEAP, STACK = Segment.HEAP, Segment.STACK
MACHINE = read_text(
    """
name = "loops"
clock = 50
slots = 8
immediates = 4
delay_slots = 1
predication = false
bypass = true
instructions = 1000
memory = 100_000
transfer = { bytes_per_cycle = 1, setup = 1 }
file = [
  { name = "r", kind = "integer", registers = 16, read_ports = 16, write_ports = 8 },
  { name = "p", kind = "boolean", registers = 8, read_ports = 8, write_ports = 4 },
]
unit = [
  { name = "plain", work = { move = 1, add = 1, compare = 1 } },
  { name = "rich", work = { move = 1, add = 1, compare = 1, multiply = 3 } },
  { name = "slow", work = { divide = { latency = 9, interval = 4 } } },
  { name = "memory", count = 2, work = { load = 2, store = 1 } },
  { name = "control", work = { branch = 1 } },
]
""",
    "loops.toml",
)


class Loop:
    """A loop that is made operation by operation."""

    def __init__(self) -> None:
        self.body, self.done = MachineBlock("loop"), MachineBlock("done")
        self.code = MachineCode("by hand", [self.body, self.done])
        self.read_after: list[Register] = []
        """What is read when control has left."""

    def register(self, kind: FileKind = FileKind.INTEGER) -> Register:
        """A new register."""
        return self.code.register(kind)

    def do(self, name: str, *operands: Operand, to: Register | None = None) -> Register:
        """An operation, and its result."""
        static: tuple[Static, ...] = () if name == "move" else (I64,)
        result = to or self.register()
        self.body.operations.append(MachineOperation(name, static, operands, result))
        return result

    def load(self, address: Operand, offset: int = 0, segment: Segment = HEAP) -> Register:
        """A load of a word, and its result."""
        place, result = MemoryOperand(segment, offset), self.register()
        self.body.operations.append(MachineOperation("load", (), (address,), result, place))
        return result

    def store(
        self, address: Operand, value: Operand, offset: int = 0, segment: Segment = HEAP
    ) -> None:
        """A store of a word."""
        place = MemoryOperand(segment, offset)
        self.body.operations.append(MachineOperation("store", (), (address, value), None, place))

    def exit(self, value: Operand) -> None:
        """Leave if a value is negative."""
        predicate = self.register(FileKind.BOOLEAN)
        static = (I64, Condition.LT_S)
        self.body.operations += [
            MachineOperation("compare", static, (value, 0), predicate),
            MachineOperation("exit", (), (predicate,), target=self.done),
        ]

    def round(self, iterations: int = 1) -> Iteration:
        """The graph of the loop, with its end."""
        block = MachineBlock(self.body.label, [*self.body.operations])
        block.operations.append(MachineOperation("jump", target=block))
        reads = [
            MachineOperation("store", (), (0, r), None, MemoryOperand(STACK))
            for r in self.read_after
        ]
        self.done.operations = [*reads, MachineOperation("stop")]
        self.code.blocks = [block, self.done]
        return Iteration(block, live_at_entry(self.code), iterations)


def nodes(loop: Iteration, name: str) -> list[DependenceNode]:
    """The operations of a name."""
    return [node for node in loop.nodes if node.operation.name == name]


def dependences_between(loop: Iteration, first: str, second: str) -> set[DependenceEdge]:
    """What operations of one name have to wait for, of those of another."""
    return {
        edge
        for edge in loop.edges
        if loop.nodes[edge.first].operation.name == first
        and loop.nodes[edge.second].operation.name == second
    }


def loops_of(
    part: Region, machine: Machine, iterations: int = 1
) -> tuple[MachineCode, list[Iteration]]:
    """The code of a region, and graphs of those of its loops that are one block."""
    code = lower(optimised(part, Options(), machine), {})
    blocks = [block for block in code.blocks if block.operations[-1].target is block]
    live = live_at_entry(code)
    FileAssignment(code, machine).run(frozenset(blocks))
    return code, [Iteration(block, live, iterations) for block in blocks]
