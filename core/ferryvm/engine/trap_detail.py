# SPDX-License-Identifier: Apache-2.0
"""The end of a trap's message: the operands that trapped, and what is allowed.

The state of a trap is that before the instruction, so its operands are on the stack, on every
backend. They are read by the types that the instruction table states for them."""

from __future__ import annotations

from collections.abc import Iterator

from ferryvm.isa import INSTRUCTIONS, Trap, Type
from ferryvm.isa.effect import Effect, effects
from ferryvm.isa.object import LENGTH_OFFSET, type_number
from ferryvm.isa.table import Instruction
from ferryvm.isa.type import I31REF, WORD_BYTES, to_python, with_article
from ferryvm.machine.launch_operands import launch_operands
from ferryvm.machine.piece import opened
from ferryvm.machine.state import Machine

FEWEST_OF_RANGES = 4
"""The operands of an instruction on a range of elements are at least as many; the last one is their
number. (A comparison and exchange has as many, too, in a chapter of its own.)"""


def trap_detail(machine: Machine) -> str:
    """The end of a trap's message, such as `: index 4, and the length is 4`; empty for traps
    whose kind says all."""
    pc = machine.control.pc
    row = INSTRUCTIONS[machine.program.code.opcodes[pc]]
    trap = machine.control.trap
    if trap == Trap.HEAP_EXHAUSTED:
        return _limit(machine, row)
    first = machine.control.sp - len(row.pops)
    operands: list[int] = machine.memory.stack[first : machine.control.sp].tolist()
    if trap == Trap.INDEX_OUT_OF_BOUNDS:
        return next(_outside(machine, row, operands), "")
    if trap == Trap.NEGATIVE_COUNT:
        return f": {to_python(Type.I64, operands[-1])}"
    if trap == Trap.CAST_FAILURE:
        wanted = machine.program.code.immediates[pc]
        return f": {with_article(_type(machine, operands[0]))} is no {_name(machine, wanted)}"
    if trap == Trap.BARRIER_DIVERGENCE:
        return _places(machine)
    return ""


def _places(machine: Machine) -> str:
    """The places of two items that do not wait at one barrier."""
    from ferryvm.machine.barrier import divergence  # few programs have barriers

    assert machine.objects is not None  # it has a launch
    phase, _ = opened(machine.objects, launch_operands(machine.control).record)
    found = divergence(machine.objects, phase) if phase is not None else None
    if found is None:
        return ""

    position = machine.program.source_map.position

    def at(pc: int) -> str:
        return str(position(pc) or f"pc {pc}")

    def written(place: tuple[int, ...]) -> tuple[int, ...]:
        """Without the calls of generated code, unless nothing else is there."""
        depths = (depth for depth, pc in enumerate(place) if position(pc) is not None)
        return place[next(depths, 0) :]

    texts = []
    places = [written(waiting.place) for waiting in found]
    first, second = places
    for (item, _), place in zip(found, places, strict=True):
        text = f"item {item} has ended"
        if place:
            text = f"item {item} waits at {at(place[0])}"
            if second and second[0] == first[0]:  # in calls that differ
                calls = zip(first, second, strict=False)
                different = (n for n, (one, other) in enumerate(calls) if one != other)
                if depth := next(different, 0):
                    text += f", called at {at(place[depth])}"
        texts.append(text)
    return ": " + "; ".join(texts)


def _outside(machine: Machine, row: Instruction, operands: list[int]) -> Iterator[str]:
    """Each index or range of an instruction that is not in its array."""
    signed = [to_python(Type.I64, word) for word in operands]
    if row.mnemonic == "array.index":
        yield f": index {signed[0]}, and the length is {signed[1]}"
        return
    is_range = len(operands) >= FEWEST_OF_RANGES and row.chapter == "array"
    count = operands[-1] if is_range else 1
    for at in (0, 2) if row.mnemonic.startswith("array.copy") else (0,):
        length = _word(machine, operands[at] + LENGTH_OFFSET)
        if operands[at + 1] + count > length:
            what = f"{signed[-1]} elements from index" if is_range else "index"
            yield f": {what} {signed[at + 1]}, and the length is {length}"


def _type(machine: Machine, reference: int) -> str:
    """The name of an object's type."""
    is_i31 = bool(reference & 1)
    return _name(machine, I31REF.number if is_i31 else type_number(_word(machine, reference)))


def _name(machine: Machine, type_: int) -> str:
    assert machine.objects is not None
    return machine.objects.types.references[type_].name


def _word(machine: Machine, offset: int) -> int:
    """A word of the object space."""
    assert machine.objects is not None
    word: int = machine.objects.space.words[offset // WORD_BYTES]
    return word


def _limit(machine: Machine, row: Instruction) -> str:
    """The limit that an allocation would have passed, and how it is raised."""
    if not {Effect.ALLOCATES_OBJECTS, Effect.CONTINUES_LAUNCHES} & effects(row):
        limit = machine.memory.heap_limit
        return f": it may grow to {limit} bytes (--heap-limit, Limits.heap)"
    objects, what = machine.objects, ""
    if row.mnemonic.startswith("array.new"):
        length = to_python(Type.I64, machine.memory.stack[machine.control.sp - 1])
        what = f" an array of {length} elements;"
    if objects is not None and objects.lacking:
        return f":{what} the system has no memory for {objects.lacking} bytes"
    limit = machine.memory.limits.objects
    return f":{what} live objects may take {limit} bytes (--object-limit, Limits.objects)"
