# SPDX-License-Identifier: Apache-2.0
"""What a program's state is when backends are compared, and when two states are equal.

A state is status, trap kind, pc, sp, fp, hp, fuel left, every word of the statics, of the stack in
use and every byte of the heap in use, the output, the result. Equal means equal bits, with one
exception: where a word is known to hold a float (a static, a local, an operand), any NaN equals
any NaN. Nothing is known of heap bytes, so there the exception does not hold; arithmetic yields one
NaN only, so a difference there is a fault too.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ferryvm.isa.control import HEADER_WORDS
from ferryvm.isa.type import WORD_BYTES, Type, to_float
from ferryvm.machine.state import Machine, Snapshot


@dataclasses.dataclass(frozen=True)
class State:
    """One execution, stopped."""

    machine: Snapshot
    fuel: int | None
    """Instructions that may still complete; None where nobody counted: it is then not compared."""
    output: bytes


@dataclasses.dataclass(frozen=True)
class Difference:
    """The first field in which two states differ."""

    field: str
    """`status`, `trap`, `pc`, ... or a place such as `local 2 of fib`, `static 0 (count)`, `heap`."""
    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.field}: {self.left} here, {self.right} there"


_NUMBERS = ("pc", "sp", "fp", "hp")


def difference(machine: Machine, left: State, right: State) -> Difference | None:
    """The first difference of two states of one program, None if they are equal.

    `machine` is one at the left state: it says which words hold floats.
    """
    a, b = left.machine, right.machine
    for name in ("status", "trap"):
        x, y = getattr(a, name), getattr(b, name)
        if x is not y:
            return Difference(name, x.name, y.name)
    for name in _NUMBERS:
        if getattr(a, name) != getattr(b, name):
            return Difference(name, str(getattr(a, name)), str(getattr(b, name)))
    if None not in (left.fuel, right.fuel) and left.fuel != right.fuel:
        return Difference("fuel left", str(left.fuel), str(right.fuel))
    return (
        _words(a.statics, b.statics, static_places(machine))
        or _words(a.stack, b.stack, stack_places(machine))
        or _bytes("heap", a.heap, b.heap)
        or _bytes("output", left.output, right.output)
    )


Place = tuple[str, Type | None]
"""What a word is, in words, and its type; None for a word that is no value."""


def _words(left: bytes, right: bytes, places: list[Place]) -> Difference | None:
    if left == right:
        return None
    x, y = np.frombuffer(left, "<u8"), np.frombuffer(right, "<u8")
    for index in np.flatnonzero(x != y).tolist():
        name, t = places[index]
        a, b = int(x[index]), int(y[index])
        if t is None or not (is_nan(t, a) and is_nan(t, b)):
            return Difference(name, f"{a:#x}", f"{b:#x}")
    return None


def is_nan(t: Type, word: int) -> bool:
    """Whether a word is a NaN of that type."""
    return t.is_float and word <= t.mask and math.isnan(to_float(t, word))


def _bytes(name: str, left: bytes, right: bytes) -> Difference | None:
    if left == right:
        return None
    size = min(len(left), len(right))
    unequal = np.flatnonzero(
        np.frombuffer(left[:size], np.uint8) != np.frombuffer(right[:size], np.uint8)
    )
    at = int(unequal[0]) if len(unequal) else size
    first = at // WORD_BYTES * WORD_BYTES
    shown = [part[first : first + WORD_BYTES].hex(" ") or "nothing" for part in (left, right)]
    return Difference(f"{name} at byte {at}", *shown)


def static_places(machine: Machine) -> list[Place]:
    """What each word of the statics is."""
    return [
        (f"static {number} ({static.name})", static.type)
        for number, static in enumerate(machine.program.statics)
    ]


def stack_places(machine: Machine) -> list[Place]:
    """What each word of the stack in use is, from the verifier's stack maps."""
    program, verified, stack = machine.program, machine.verified, machine.memory.stack
    pc, fp, top = machine.control.pc, machine.control.fp, machine.control.sp
    frames: list[list[Place]] = []
    while True:
        owner = verified.owner(pc)
        name = program.functions[owner].name
        places: list[Place] = [(f"return pc of {name}", None), (f"distance of {name}", None)]
        types = program.frame_types(owner)
        places += [(f"local {number} of {name}", t) for number, t in enumerate(types)]
        operands = verified.operand_types(pc)[: top - fp - HEADER_WORDS - len(types)]
        places += [(f"operand {number} of {name}", t) for number, t in enumerate(operands)]
        frames.append(places)
        distance = stack[fp + 1]
        if not distance:
            return [place for frame in reversed(frames) for place in frame]
        pc, fp, top = stack[fp] - 1, fp - distance, fp
