# SPDX-License-Identifier: Apache-2.0
"""Random programs: the same ones for the same seed, on every Python."""

from __future__ import annotations

import enum
from collections import Counter
from typing import TYPE_CHECKING

from ferryvm.errors import FerryError
from ferryvm.float_environment import in_ours
from ferryvm.program import HostImport, Program
from ferryvm.testing.generate.body import Corner
from ferryvm.testing.generate.bytecode import MOST_INSTRUCTIONS, generate_bytecode
from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.trap import KERNEL_LIMITS, LIMITS, OBJECT_LIMITS
from ferryvm.testing.generate.weights import Weights

if TYPE_CHECKING:
    from ferryvm.testing.generate.python import PythonProgram

__all__ = [
    "KERNEL_LIMITS",
    "LIMITS",
    "MOST_INSTRUCTIONS",
    "MUTATED",
    "OBJECT_LIMITS",
    "OF_PYTHON",
    "Corner",
    "ProgramKind",
    "Weights",
    "generate",
    "mutated_image",
    "python_program",
    "skiff_source",
]


class ProgramKind(enum.Enum):
    """The kind of a generated program."""

    BYTECODE = "bytecode"
    SKIFF = "skiff"
    KERNEL = "kernel"
    IMAGE = "image"
    STATE = "state"
    PYTHON = "python"
    MAP = "map"


MUTATED = (ProgramKind.IMAGE, ProgramKind.STATE)
"""Kinds of files that are altered, and may be refused."""

OF_PYTHON = (ProgramKind.PYTHON, ProgramKind.MAP)
"""Kinds of Python functions, which CPython is the baseline of."""


@in_ours
def generate(
    seed: int,
    number: int,
    kind: ProgramKind = ProgramKind.BYTECODE,
    weights: Weights | None = None,
    occurred: Counter[Corner] | None = None,
    hosts: tuple[HostImport, ...] = (),
) -> Program:
    """The `number`-th program of a seed; it passes `verify` and ends within MOST_INSTRUCTIONS.

    `occurred`: receives the counts of corners in a bytecode program; `hosts`: host functions that
    programs call besides those that print. Raises FerryError for MUTATED, which `mutated_image`
    makes: it may not be a program; and for OF_PYTHON.
    """
    if kind in MUTATED:
        raise FerryError(f"a mutated {kind.value} may be no program: use mutated_image")
    if kind in OF_PYTHON:
        raise FerryError("a Python function is no program by itself: use python_program")
    if kind in (ProgramKind.SKIFF, ProgramKind.KERNEL):
        from ferryvm import skiff

        text = skiff_source(seed, number, weights, hosts, kind)
        return skiff.compile(text, f"random-{seed}-{number}.skiff")
    return generate_bytecode(Chance(seed, number, kind.value), weights, occurred, hosts)


@in_ours
def skiff_source(
    seed: int,
    number: int,
    weights: Weights | None = None,
    hosts: tuple[HostImport, ...] = (),
    kind: ProgramKind = ProgramKind.SKIFF,
) -> str:
    """Text of the `number`-th program of a seed in Skiff, of the kind SKIFF or KERNEL; `hosts`: as
    for `generate`."""
    chance = Chance(seed, number, kind.value)
    if kind is ProgramKind.KERNEL:
        from ferryvm.testing.generate import kernel

        return kernel.write(chance, weights, hosts)
    from ferryvm.testing.generate.skiff import write

    return write(chance, weights, hosts)


def python_program(
    seed: int,
    number: int,
    weights: Weights | None = None,
    kind: ProgramKind = ProgramKind.PYTHON,
) -> PythonProgram:
    """The `number`-th Python function of a seed, with its helpers and arguments of calls, or of
    maps of it."""
    chance = Chance(seed, number, kind.value)
    if kind is ProgramKind.MAP:
        from ferryvm.testing.generate import python_map

        return python_map.write(chance, weights)
    from ferryvm.testing.generate.python import write

    return write(chance, weights)


@in_ours
def mutated_image(seed: int, number: int, what: ProgramKind = ProgramKind.IMAGE) -> bytes:
    """The `number`-th altered file of a seed: bytes that may be a program or a state, or
    neither."""
    from ferryvm.testing.generate.mutation import mutate, mutate_state
    from ferryvm.testing.generate.origin import origin, state_origin

    chance = Chance(seed, number, what.value)
    kind = chance.pick((ProgramKind.BYTECODE, ProgramKind.SKIFF))
    if what is ProgramKind.STATE:
        state = state_origin(chance, lambda: generate(seed, number, kind), LIMITS)
        return mutate_state(chance, state)
    return mutate(chance, origin(chance, lambda: generate(seed, number, kind), LIMITS))
