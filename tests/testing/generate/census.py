# SPDX-License-Identifier: Apache-2.0
"""What random programs do when they run, counted instruction by instruction."""

from __future__ import annotations

import collections
import dataclasses

from ferryvm.engine import Engine
from ferryvm.isa import BY_MNEMONIC, Trap
from ferryvm.machine.control import Status
from ferryvm.testing.generate import LIMITS, MOST_INSTRUCTIONS, ProgramKind, generate
from ferryvm.verify import verify

from .settled import SETTLED

_THROWS = tuple(BY_MNEMONIC[name].opcode for name in ("throw", "throw_record"))
_JUMPS = tuple(BY_MNEMONIC[name].opcode for name in ("jump", "jump_if", "jump_unless"))


@dataclasses.dataclass
class Life:
    """One program's run, from start to end."""

    status: Status
    trap: Trap
    instructions: int = 0
    opcodes: collections.Counter[int] = dataclasses.field(default_factory=collections.Counter)
    """How often each was executed, the one that trapped included."""
    back_edges: int = 0
    laden_back_edges: int = 0
    """Those taken with operands on the stack."""
    deepest: int = 0
    """Calls under way at once, at most."""
    grown: int = 0
    """Times that the heap was made larger."""
    provided: int = 0
    """Times that an object did not fit, or that elements had to be prepared."""
    collections: int = 0
    objects: int = 0
    """Bytes of the objects alive at the end; 0 for a program without types of its own."""
    hosts: int = 0
    functions: frozenset[int] = frozenset()
    """Those that ran."""
    caught: int = 0
    """Exceptions that a clause caught."""
    caught_across: int = 0
    """Those of them that a caller of the function that threw them caught."""


def live(seed: int, number: int, kind: ProgramKind = ProgramKind.BYTECODE) -> Life:
    """Run a random program of settled instructions one instruction at a time, on a native
    backend."""
    engine = Engine("switch", limits=LIMITS)
    verified = verify(generate(seed, number, kind, SETTLED))
    execution = engine.start(verified)
    machine, control = execution.machine, execution.machine.control
    artifact = engine.backend.prepare(verified)
    opcodes = verified.program.code.opcodes.tolist()
    life, frames = Life(Status.RUNNING, Trap.NONE), [control.fp]
    owners = set()
    while life.instructions < MOST_INSTRUCTIONS:
        pc = control.pc
        opcode = opcodes[pc]
        life.opcodes[opcode] += 1
        owners.add(verified.owner(pc))
        control.fuel = 1
        life.status = artifact.enter(machine, counting=True)
        if life.status is Status.HOST:
            control.sp -= len(verified.program.hosts[control.exit_id].signature.parameters)
            control.pc += 1
            life.hosts += 1
        elif life.status is Status.GROW:
            if not machine.grow():
                life.status, control.trap = Status.TRAP, Trap.HEAP_EXHAUSTED
                break
            life.grown += 1
            continue
        elif life.status is Status.ALLOCATE:
            assert machine.objects is not None
            if not machine.objects.allocate():
                life.status, control.trap = Status.TRAP, Trap.HEAP_EXHAUSTED
                break
            life.provided += 1
            continue
        elif life.status is not Status.FUEL:
            break
        life.instructions += 1
        if opcode in _THROWS:
            life.caught += 1
            life.caught_across += control.fp < frames[-1]
        while control.fp < frames[-1]:
            frames.pop()
        if control.fp > frames[-1]:
            frames.append(control.fp)
            life.deepest = max(life.deepest, len(frames) - 1)
        if opcode in _JUMPS and control.pc < pc:
            life.back_edges += 1
            life.laden_back_edges += verified.depth(control.pc) > 0
    if life.status is Status.TRAP:
        life.trap = Trap(control.trap)
    if machine.objects is not None:
        life.collections = machine.objects.space.metrics.count
        machine.objects.collect()
        life.objects = machine.objects.space.metrics.live if verified.program.types else 0
    life.functions = frozenset(owners)
    return life
