# SPDX-License-Identifier: Apache-2.0
"""The first difference of registers, words and bytes of two states of a program.

Equality is bitwise, with one exception: in a word whose type is a float (a static, a local, an
operand), any NaN equals any NaN. Heap bytes are untyped, so the exception does not apply to them;
arithmetic yields only the canonical NaN, so a difference there is a fault, too.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol

import numpy as np

from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import WORD_BYTES, Type, ValueType, to_float
from ferryvm.machine.sparse import Sparse
from ferryvm.machine.state import Machine


@dataclasses.dataclass(frozen=True)
class Difference:
    """The first field in which two states differ."""

    field: str
    """`status`, `trap`, `pc`, ... or a location such as `local 2 of fib`, `static 0 (count)`,
    `heap`."""
    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.field}: {self.left} here, {self.right} there"


class Registers(Protocol):
    """The registers that control blocks and snapshots have in common."""

    @property
    def pc(self) -> int: ...
    @property
    def sp(self) -> int: ...
    @property
    def fp(self) -> int: ...
    @property
    def hp(self) -> int: ...


_NUMBERS = ("pc", "sp", "fp", "hp")


def register_difference(left: Registers, right: Registers) -> Difference | None:
    """The first register that differs, None if they are equal."""
    for name in _NUMBERS:
        if getattr(left, name) != getattr(right, name):
            return Difference(name, str(getattr(left, name)), str(getattr(right, name)))
    return None


Place = tuple[str, ValueType | None]
"""A word's description and its type; None for a word that holds no value."""


def word_difference(left: bytes, right: bytes, places: list[Place]) -> Difference | None:
    """The first word that differs, None if there is none but NaNs."""
    if left == right:
        return None
    x, y = np.frombuffer(left, "<u8"), np.frombuffer(right, "<u8")
    for index in np.flatnonzero(x != y).tolist():
        name, t = places[index]
        a, b = int(x[index]), int(y[index])
        if t is None or not (is_nan(t, a) and is_nan(t, b)):
            return Difference(name, f"{a:#x}", f"{b:#x}")
    return None


def is_nan(t: ValueType, word: int) -> bool:
    """True if a word is a NaN of that type."""
    return isinstance(t, Type) and t.is_float and word <= t.mask and math.isnan(to_float(t, word))


def byte_difference(name: str, left: bytes, right: bytes) -> Difference | None:
    """The first byte that differs, shown with the word that it is in."""
    return None if left == right else sparse_difference(name, Sparse.of(left), Sparse.of(right))


def sparse_difference(name: str, left: Sparse, right: Sparse) -> Difference | None:
    """The first byte that differs, shown with the word that it is in."""
    if left == right:
        return None
    size = min(len(left), len(right))
    word = next(left.unequal(right), size // WORD_BYTES) * WORD_BYTES
    pair = [one.cut(word, word + WORD_BYTES) for one in (left, right)]
    at = next((at for at, (a, b) in enumerate(zip(*pair, strict=False)) if a != b), size - word)
    return Difference(f"{name} at byte {word + at}", *(one.hex(" ") or "nothing" for one in pair))


def static_places(machine: Machine) -> list[Place]:
    """The place of each word of the statics."""
    return [
        (f"static {number} ({static.name})", static.type)
        for number, static in enumerate(machine.program.statics)
    ]


def stack_places(machine: Machine) -> list[Place]:
    """The place of each word of the stack in use, by the verifier's stack maps."""
    program, verified, stack = machine.program, machine.verified, machine.memory.stack
    pc, fp, top = machine.control.pc, machine.control.fp, machine.control.sp
    frames: list[list[Place]] = []
    while True:
        owner = verified.owner(pc)
        name = program.functions[owner].name
        types = program.frame_types(owner)
        places: list[Place] = [(f"local {number} of {name}", t) for number, t in enumerate(types)]
        header = verified.parameters(pc)
        places[header:header] = [(f"return pc of {name}", None), (f"distance of {name}", None)]
        operands = verified.operand_types(pc)[: top - fp + header - HEADER_WORDS - len(types)]
        places += [(f"operand {number} of {name}", t) for number, t in enumerate(operands)]
        frames.append(places)
        distance = stack[fp + 1]
        if not distance:
            return [place for frame in reversed(frames) for place in frame]
        pc, fp, top = stack[fp] - 1, fp - distance, fp - header
