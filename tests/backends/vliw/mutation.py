# SPDX-License-Identifier: Apache-2.0
"""Programs of machines as the prover is given them, and ways to damage them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Collection, Iterator

import pytest

from ferryvm.region.region import Region
from ferryvm_backends.vliw.code import encode
from ferryvm_backends.vliw.code.operation import EXITS, MachineCode
from ferryvm_backends.vliw.code.program import (
    Bundle,
    Bypass,
    Immediate,
    LoopSummary,
    Program,
    Read,
    Slot,
    Source,
)
from ferryvm_backends.vliw.machine.model import Machine
from ferryvm_backends.vliw.prove.claim import Claim
from ferryvm_backends.vliw.prove.proof import prove
from ferryvm_backends.vliw.prove.symbolic import SymbolicExecutor, SymbolicState

from .program import compiled


@dataclasses.dataclass(frozen=True)
class Proved:
    """What the prover is given."""

    code: MachineCode
    program: Program
    claim: Claim
    part: Region

    def prove(self, program: Program | None = None) -> None:
        """Prove the program, or a damaged one."""
        prove(self.code, program or self.program, self.claim)

    def reached(self) -> set[int]:
        """The bundles that the proof comes to: an exit of a later iteration that asks what an
        earlier one has asked is never taken."""
        found: set[int] = set()
        with pytest.MonkeyPatch.context() as patch:
            cycle = SymbolicExecutor.cycle

            def seen(follower: SymbolicExecutor, state: SymbolicState) -> list[SymbolicState]:
                found.add(state.at)
                return cycle(follower, state)

            patch.setattr(SymbolicExecutor, "cycle", seen)
            self.prove()
        return found

    def differing(self, program: Program) -> set[int]:
        """The bundles in which a program is another one."""
        pairs = zip(self.program.bundles, program.bundles, strict=True)
        return {number for number, (one, other) in enumerate(pairs) if one != other}


def proved(part: Region, machine: Machine) -> Proved:
    """A region's program, with what it is to be."""
    given: list[tuple[MachineCode, Program, Claim]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encode, "prove_if_enabled", lambda *them: given.append(them))
        compiled(part, machine)
    ((code, program, claim),) = given
    return Proved(code, program, claim, part)


Where = tuple[int, Slot]
"""A bundle's number, and a slot of it."""


def slots(program: Program) -> list[Where]:
    """All slots."""
    return [(number, slot) for number, bundle in enumerate(program.bundles) for slot in bundle]


def changed(program: Program, *changes: tuple[int, Slot | None, Slot | None]) -> Program:
    """A program with slots of bundles taken out, put in, or put in others' place."""
    bundles: list[Bundle] = list(program.bundles)
    for number, old, new in changes:
        used = [slot for slot in bundles[number] if slot is not old]
        used += [] if new is None else [new]
        bundles[number] = tuple(sorted(used, key=lambda slot: slot.unit))
    return dataclasses.replace(program, bundles=tuple(bundles))


def moved(program: Program, where: Where, cycles: int) -> Program:
    """A program with an operation that many cycles later."""
    number, slot = where
    return changed(program, (number, slot, None), (number + cycles, None, slot))


def altered(program: Program, where: Where, **fields: object) -> Program:
    """A program with other words in a slot."""
    number, slot = where
    return changed(program, (number, slot, dataclasses.replace(slot, **fields)))  # type: ignore[arg-type]  # tests


# --- kernels of pipelined loops -------------------------------------------------------------


def _kernels(program: Program) -> Iterator[tuple[LoopSummary, Where]]:
    for loop in program.loops:
        if loop.is_pipelined:
            yield from ((loop, each) for each in slots(program) if loop.start <= each[0] < loop.end)


def _by(cycles: int) -> Callable[[Program], Iterator[Program]]:
    def found(program: Program) -> Iterator[Program]:
        for loop, (number, slot) in _kernels(program):
            to = number + cycles
            if loop.start <= to < loop.end:
                there = [other for other in program.bundles[to] if other.unit == slot.unit]
                if there:
                    yield changed(program, (number, slot, there[0]), (to, there[0], slot))
                else:
                    yield moved(program, (number, slot), cycles)

    return found


def _other_way(program: Program) -> Iterator[Program]:
    """What stands in a unit instead of what is in a register, and the other way round."""
    for _, (number, slot) in _kernels(program):
        for index, source in enumerate(slot.sources):
            others: list[Source] = []
            if isinstance(source, Read):
                others = [Bypass(u) for u in range(len(program.machine.units)) if u != slot.unit]
            elif isinstance(source, Bypass):
                reads = program.machine.units[slot.unit].reads
                kind = next(f.kind for f in program.machine.files)
                files = [n for n, f in enumerate(program.machine.files) if f.name in reads]
                files = [n for n in files if program.machine.files[n].kind is kind]
                others = [Read(n, r) for n in files for r in range(4)]
            for other in others:
                sources = (*slot.sources[:index], other, *slot.sources[index + 1 :])
                yield altered(program, (number, slot), sources=sources)


def _other_copy(program: Program) -> Iterator[Program]:
    """Registers of the iteration before or behind."""
    for loop, (number, slot) in _kernels(program):
        length = loop.end - loop.start
        for step in (-loop.interval, loop.interval):
            bundle = program.bundles[loop.start + (number - loop.start + step) % length]
            for other in bundle:
                if (other.unit, other.name, len(other.sources)) != (
                    *(slot.unit, slot.name),
                    len(slot.sources),
                ):
                    continue
                if other.written != slot.written:
                    yield altered(program, (number, slot), written=other.written)
                for index, source in enumerate(other.sources):
                    if source != slot.sources[index]:
                        sources = (*slot.sources[:index], source, *slot.sources[index + 1 :])
                        yield altered(program, (number, slot), sources=sources)


def _other_top(program: Program) -> Iterator[Program]:
    for loop, (number, slot) in _kernels(program):
        if slot.name == "repeat":
            for by in (-loop.interval, -1, 1, 2, loop.interval):
                yield altered(program, (number, slot), again=max(loop.start + by, 0))


KERNEL_MUTATIONS: dict[str, Callable[[Program], Iterator[Program]]] = {
    "a cycle earlier": _by(-1),
    "a cycle later": _by(1),
    "other way": _other_way,
    "other copy": _other_copy,
    "other top": _other_top,
}


# --- at random ------------------------------------------------------------------------------


def _shift(program: Program, where: Where, chance: random.Random) -> Program | None:
    to = chance.choice([-2, -1, 1, 2])
    there = where[0] + to
    if not 0 <= there < len(program.bundles):
        return None
    if any(slot.unit == where[1].unit for slot in program.bundles[there]):
        return None
    return moved(program, where, to)


def _unit(program: Program, where: Where, chance: random.Random) -> Program | None:
    return altered(program, where, unit=chance.randrange(len(program.machine.units)))


def _source(program: Program, where: Where, chance: random.Random) -> Program | None:
    sources = list(where[1].sources)
    if not sources:
        return None
    place = chance.randrange(len(sources))
    match sources[place]:
        case Read(file, number):
            registers = program.machine.files[file].registers
            other = Read(file, (number + chance.randrange(1, registers)) % registers)
            near = Read(file, number ^ 1)
            sources[place] = chance.choice([other, near, Bypass(where[1].unit)])
        case Bypass(unit):
            count = len(program.machine.units)
            sources[place] = chance.choice([Bypass((unit + 1) % count), Read(0, unit % 8)])
        case Immediate(bits):
            sources[place] = Immediate(chance.choice([bits ^ 1, bits + 8, 0]))
    return altered(program, where, sources=tuple(sources))


def _swap(program: Program, where: Where, chance: random.Random) -> Program | None:
    return altered(program, where, sources=where[1].sources[::-1])


def _written(program: Program, where: Where, chance: random.Random) -> Program | None:
    written = where[1].written
    if written is None:
        return None
    others = [None, Read(written.file, written.number ^ 1), Read(written.file, written.number + 1)]
    return altered(program, where, written=chance.choice(others))


def _delete(program: Program, where: Where, chance: random.Random) -> Program | None:
    return changed(program, (*where, None))


def _inverse(program: Program, where: Where, chance: random.Random) -> Program | None:
    names = {"exit": "exit_unless", "exit_unless": "exit", "add": "sub", "all": "any", "any": "all"}
    if where[1].name not in names:
        return None
    return altered(program, where, name=names[where[1].name])


def _target(program: Program, where: Where, chance: random.Random) -> Program | None:
    if where[1].target is None:
        return None
    others = [*program.labels, where[1].target + 1, where[1].target - 1]
    return altered(program, where, target=max(chance.choice(others), 0))


def _place(program: Program, where: Where, chance: random.Random) -> Program | None:
    place = where[1].place
    if place is None:
        return None
    offset, size = chance.choice([(8, 8), (4, 4), (0, 4), (-8, 8)])
    new = dataclasses.replace(place, offset=max(place.offset + offset, 0), size=size)
    return altered(program, where, place=new)


def _exchange(program: Program, where: Where, chance: random.Random) -> Program | None:
    number = min(where[0] + 1, len(program.bundles) - 1)
    for other in program.bundles[number]:
        if other.unit == where[1].unit:
            return changed(program, (*where, other), (number, other, where[1]))
    return None


def _above(program: Program, where: Where, chance: random.Random) -> Program | None:
    """An effect or an exit moved far."""
    if where[1].name != "store" and where[1].name not in EXITS:
        return None
    far = chance.choice([-6, -5, -4, -3, 3, 4, 5])
    return moved(program, where, far) if 0 <= where[0] + far < len(program.bundles) else None


MUTATIONS: list[Callable[[Program, Where, random.Random], Program | None]] = [
    *(_shift, _unit, _source, _swap, _written, _delete),
    *(_inverse, _target, _place, _exchange, _above),
]


def damaged(
    program: Program, chance: random.Random, bundles: Collection[int]
) -> tuple[str, Program]:
    """A program with a random change in one of some bundles, and what that is."""
    places = [where for where in slots(program) if where[0] in bundles]
    while True:
        mutation, where = chance.choice(MUTATIONS), chance.choice(places)
        found = mutation(program, where, chance)
        if found is not None and found.bundles != program.bundles:
            return f"{mutation.__name__} {where}", found
