# SPDX-License-Identifier: Apache-2.0
"""Programs of machines, and what they leave in memory."""

from __future__ import annotations

import ctypes
import dataclasses

import ferryvm
from ferryvm.backend import Options
from ferryvm.machine.control import REGISTER_BYTES, ControlBlock
from ferryvm.machine.memory import Limits
from ferryvm.machine.state import Machine as State
from ferryvm.region.object_access import object_access
from ferryvm.region.region import Region, region
from ferryvm.verify import verify
from ferryvm_backends.vliw.code.encode import compile_module
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.local_memory import LocalMemory
from ferryvm_backends.vliw.machine.model import Machine
from ferryvm_backends.vliw.passes import optimised
from ferryvm_backends.vliw.simulate.interpret import interpret
from ferryvm_backends.vliw.simulate.metric import RunMetrics
from ferryvm_backends.vliw.simulate.native import NativeProgram

from ...heap_vector import on_heap

SMALL = Limits(stack=8 << 10, heap=64 << 10, first_heap=16 << 10)


@dataclasses.dataclass(frozen=True)
class Ended:
    """How a run ended: what it took, and all memory of the machine."""

    counts: RunMetrics
    registers: bytes
    """The first half of the control block."""
    memory: dict[str, bytes]
    """But for the control block."""


def whole(text: str) -> Region:
    """The whole of a Skiff program."""
    return region(verify(ferryvm.compile(on_heap(text))), "program")


def compiled(part: Region, machine: Machine, counting: bool = False) -> Program:
    """The program of a region."""
    return compile_module(optimised(part, Options(counting=counting), machine), machine)


def _local(program: Program, part: Region) -> LocalMemory:
    return LocalMemory(program, part.verified, object_access(part))


def run(program: Program, part: Region, is_native: bool, budget: int = 1 << 40) -> Ended:
    """Run a program from the state that its region's program begins in."""
    state, local = State(part.verified, SMALL), _local(program, part)
    list(local.send(state.control))
    memory = local.memory
    if is_native:
        counts = NativeProgram(program).run(memory, budget)
    else:
        counts = interpret(program, memory, budget)
    found = {s.value: bytes(b.data) for s, b in memory.segments.items()}
    registers = bytes(local.control)[:REGISTER_BYTES]
    list(local.fetch(state.control))  # what is retained knows then how far it is in use
    return Ended(counts, registers, found | {"control": b""})


def status(ended: Ended) -> int:
    """Of the control block that is left."""
    padded = ended.registers.ljust(ctypes.sizeof(ControlBlock), b"\0")
    return ControlBlock.from_buffer_copy(padded).status
