# SPDX-License-Identifier: Apache-2.0
"""Random programs: the same ones for the same seed, on every Python."""

from __future__ import annotations

import enum
from collections import Counter

from ferryvm.errors import FerryError
from ferryvm.float_environment import in_ours
from ferryvm.program import Program
from ferryvm.testing.generate.body import Corner
from ferryvm.testing.generate.bytecode import MOST_INSTRUCTIONS, generate_bytecode
from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.trap import LIMITS
from ferryvm.testing.generate.weights import Weights

__all__ = [
    "LIMITS",
    "MOST_INSTRUCTIONS",
    "Corner",
    "Kind",
    "Weights",
    "generate",
    "mutated_image",
    "skiff_source",
]


class Kind(enum.Enum):
    """What is generated."""

    BYTECODE = "bytecode"
    SKIFF = "skiff"
    IMAGE = "image"


@in_ours
def generate(
    seed: int,
    number: int,
    kind: Kind = Kind.BYTECODE,
    weights: Weights | None = None,
    occurred: Counter[Corner] | None = None,
) -> Program:
    """The `number`-th program of a seed; it passes `verify` and ends within MOST_INSTRUCTIONS.

    `occurred`: gets how often a program in bytecode has what campaigns count. Raises FerryError
    for Kind.IMAGE, which `mutated_image` makes: it may be no program.
    """
    if kind is Kind.IMAGE:
        raise FerryError("a mutated image may be no program: use mutated_image")
    if kind is Kind.SKIFF:
        from ferryvm import skiff

        return skiff.compile(skiff_source(seed, number, weights), f"random-{seed}-{number}.skiff")
    return generate_bytecode(Chance(seed, number, kind.value), weights, occurred)


@in_ours
def skiff_source(seed: int, number: int, weights: Weights | None = None) -> str:
    """Text of the `number`-th Skiff program of a seed."""
    from ferryvm.testing.generate.skiff import write

    return write(Chance(seed, number, Kind.SKIFF.value), weights)


@in_ours
def mutated_image(seed: int, number: int) -> bytes:
    """The `number`-th mutated image of a seed: bytes that may be a program, or not."""
    from ferryvm.testing.generate.mutation import mutate
    from ferryvm.testing.generate.origin import origin

    chance = Chance(seed, number, Kind.IMAGE.value)
    kind = chance.pick((Kind.BYTECODE, Kind.SKIFF))
    return mutate(chance, origin(chance, lambda: generate(seed, number, kind), LIMITS))
