# SPDX-License-Identifier: Apache-2.0
"""The programs with references, their sizes and their twins in benchmarks/programs/references.

Each has a function `work` of one size. ferryvm's twins are assembly, so that they measure the
machine and no compiler, and Skiff, as users write them.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import ferryvm
from benchmarks.benchmark import PROGRAMS as FOLDER
from ferryvm.program import Program


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The sizes of a program."""

    compiled: int
    """For llvm and gcc."""
    interpreted: int
    """For interpreters, Lua and CPython, and for gcc beside them."""


@dataclasses.dataclass(frozen=True)
class Twin:
    """A program that is written once for each language."""

    name: str
    sizes: Sizes
    tiny: Sizes
    """What a test runs."""
    goal: float
    """Times that llvm may take as long as gcc."""
    is_float: bool = False
    has_structs: bool = False
    """True if the program is of structs; only then there are twins in Lua and in Python."""

    def path(self, suffix: str) -> Path:
        """Where the twin with a file name's suffix is."""
        return path_of(f"{self.name}.{suffix}")


def path_of(name: str) -> Path:
    """The path of a file of the programs' folder."""
    return FOLDER / "references" / name


def assembled(name: str) -> Program:
    """A program of the folder, by its name."""
    path = path_of(f"{name}.fasm")
    return ferryvm.assemble(path.read_text(encoding="utf-8"), str(path))


def of_skiff(name: str) -> Program:
    """The same program in Skiff."""
    path = path_of(f"{name}.skiff")
    return ferryvm.compile(path.read_text(encoding="utf-8"), file=str(path))


TWINS = (
    Twin("floyd", Sizes(600, 120), Sizes(12, 6), 1.5),
    Twin("lu", Sizes(700, 160), Sizes(12, 6), 1.5, is_float=True),
    Twin("jacobi", Sizes(2000, 20), Sizes(2, 2), 1.5, is_float=True),
    Twin("fft", Sizes(262_144, 16_384), Sizes(32, 16), 1.5, is_float=True),
    Twin("trees", Sizes(16, 16), Sizes(5, 4), 2.5, has_structs=True),
    Twin("sort", Sizes(200_000, 200_000), Sizes(20, 20), 2.5, has_structs=True),
)
