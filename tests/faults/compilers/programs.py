# SPDX-License-Identifier: Apache-2.0
"""Programs in which faults of compilers are looked for: generated ones, and those by hand."""

from __future__ import annotations

import enum
import functools
from pathlib import Path

from tests.backends.llvm.test_random_loops import Loops
from tests.backends.vliw.test_random_loops import Windows
from tests.ir.control_flow import any_graph

import ferryvm
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.testing.generate.weights import Weights
from ferryvm.verify import Verified, verify

from ...heap_vector import on_heap
from .by_hand import BY_HAND

SEED = 20261123
_OBJECTS = Path(__file__).with_name("objects.toml")
_WEIGHTS = Path(__file__).resolve().parents[2] / "fuzz" / "loops.toml"

MOST = 80
"""Generated programs that a fault is looked for in, unless another number is asked for."""


_TURNS = ("loops", "graph", "bytecode", "loops", "windows", "skiff")
"""Generators that make programs in turn."""


class Origin(enum.Enum):
    """Where programs come from. Faults are looked for in the programs of each by itself."""

    GENERATED = "generated"
    """Random loops, loops over windows of vectors, control-flow graphs, bytecode and Skiff in turn,
    as tests and `ferry fuzz` make them."""
    OBJECTS = "with objects"
    """Random programs in bytecode with structs and arrays."""
    BY_HAND = "by hand"


_SLOW = {"vliw": 3}
"""Compilers that take seconds for a program: so many times fewer generated programs are for
them."""


def count(origin: Origin, backend: str, most: int = MOST) -> int:
    """How many programs there are for a compiler; `most`: of generated ones."""
    return len(BY_HAND) if origin is Origin.BY_HAND else most // _SLOW.get(backend, 1)


@functools.lru_cache(maxsize=512)
def program(origin: Origin, number: int) -> tuple[str, Verified]:
    """The program of a number, with what it is called."""
    if origin is Origin.BY_HAND:
        name = [*BY_HAND][number]
        text = BY_HAND[name]
        made = ferryvm.assemble(text) if ".function" in text else ferryvm.compile(on_heap(text))
        return name, verify(made)
    if origin is Origin.OBJECTS:
        made = generate(SEED, number, weights=Weights.load(str(_OBJECTS)))
        return f"objects {number}", verify(made)
    turn, place = _TURNS[number % len(_TURNS)], number // len(_TURNS)
    place = 2 * place + (number % len(_TURNS) > 2) if turn == "loops" else place
    match turn:
        case "loops":
            made = Loops(place).program()
        case "windows":
            made = Windows(place).program()
        case "graph":
            return f"graph {place}", any_graph(place)
        case "bytecode":
            made = generate(SEED, place, weights=Weights.load(str(_WEIGHTS)))
        case _:
            made = generate(SEED, place, ProgramKind.SKIFF)
    return f"{turn} {place}", verify(made)
