# SPDX-License-Identifier: Apache-2.0
"""Libraries of mathematical functions in C: vectors of SLEEF, SVML and libmvec, and glibc's
scalars.

Their functions are called through pointers by loops in C (`loop.c`), so that no compiler replaces a
call.
"""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import dataclasses
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks.benchmark import ROOT
from benchmarks.build import build
from benchmarks.mathematics.operand import Operands
from benchmarks.mathematics.repeated import Array
from benchmarks.peers.native import C_FLAGS, HOST
from benchmarks.peers.peer import MissingError, tool
from ferryvm.isa.pure_function import PureFunction
from ferryvm.isa.type import F32
from ferryvm_backends.llvm.lane_count import vector_bits

FOLDERS = "FERRYVM_BENCHMARK_LIBRARIES"
"""The variable of the environment with folders of libraries, separated by colons."""

SLEEF, SVML, LIBMVEC, GLIBC = "sleef", "svml", "libmvec", "glibc"


@dataclasses.dataclass(frozen=True)
class Library:
    """A library of functions of vectors."""

    name: str
    files: tuple[str, ...]
    """Names of its file; the first that exists counts."""
    symbols: Callable[[PureFunction, int], Sequence[str]]
    """Names that a function for vectors of so many bits may have; the first one that exists
    counts."""
    label: str
    is_within_one: bool
    """True if an error of at most 1 ulp is documented: then it is one of those that goals are held
    to."""
    needs: tuple[str, ...] = ()
    """Names of files that are loaded before it."""


def _mvec(function: PureFunction, bits: int) -> list[str]:
    lanes, letter = bits // function.result.bits, "e" if bits == 512 else "d"
    return [f"_ZGV{letter}N{lanes}{'v' * len(function.parameters)}_{scalar_name(function)}"]


def _sleef(function: PureFunction, bits: int) -> list[str]:
    lanes, letter = bits // function.result.bits, "f" if function.result is F32 else "d"
    isa = "avx512f" if bits == 512 else "avx2"
    name = base_name(function)
    return [f"Sleef_{name}{letter}{lanes}_{error}{isa}" for error in ("u10", "u05")]


def _svml(function: PureFunction, bits: int) -> list[str]:
    lanes, letter = bits // function.result.bits, "f" if function.result is F32 else ""
    isa = "z0" if bits == 512 else "l9"
    return [f"__svml_{base_name(function)}{letter}{lanes}_ha_{isa}"]


LIBRARIES = (
    Library(SLEEF, ("libsleef.so.3", "libsleef.so"), _sleef, "SLEEF, 1 ulp", True),
    Library(SVML, ("libsvml.so",), _svml, "SVML, _ha, 1 ulp", True, needs=("libintlc.so.5",)),
    Library(LIBMVEC, ("libmvec.so.1",), _mvec, "libmvec, 4 ulp", False),
)


def base_name(function: PureFunction) -> str:
    """The name without the type."""
    return function.name.partition(".")[2]


def scalar_name(function: PureFunction) -> str:
    """The name in C."""
    return base_name(function) + ("f" if function.result is F32 else "")


@functools.cache
def _opened(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)


def vector_function(library: Library, function: PureFunction, folders: Sequence[Path]) -> int:
    """The address of a function. Raises MissingError where there is none."""
    bits = vector_bits()
    if bits == 0:
        raise MissingError("this processor has no vectors with masks")
    opened = _find(library, folders)
    for symbol in library.symbols(function, bits):
        address = _address(opened, symbol)
        if address is not None:
            return address
    raise MissingError(f"{library.name} has no {library.symbols(function, bits)[0]}")


def scalar_function(function: PureFunction) -> int:
    """The address of glibc's function. Raises MissingError where there is none."""
    address = _address(_opened(ctypes.util.find_library("m") or "libm.so.6"), scalar_name(function))
    if address is None:
        raise MissingError(f"glibc has no {scalar_name(function)}")
    return address


def _find(library: Library, folders: Sequence[Path]) -> ctypes.CDLL:
    places = [*(str(folder) + "/" for folder in folders), f"{sys.prefix}/lib/", ""]
    for needed in library.needs:
        _first(place + needed for place in places)
    found = _first(place + file for file in library.files for place in places)
    if found is None:
        raise MissingError(f"{library.files[0]} is not installed")
    return found


def _first(paths: Iterable[str]) -> ctypes.CDLL | None:
    """The first library that can be loaded."""
    for path in paths:
        with contextlib.suppress(OSError):
            return _opened(path)
    return None


def _address(library: ctypes.CDLL, symbol: str) -> int | None:
    try:
        found = getattr(library, symbol)
    except AttributeError:
        return None
    return ctypes.cast(found, ctypes.c_void_p).value


def lanes_loop(address: int, operands: Operands, to: Array) -> Callable[[], object]:
    """Calls of a vector function over the operands, with the results in `to`."""
    return _loop("lanes", address, operands, to)


def sum_loop(address: int, operands: Operands) -> Callable[[], object]:
    """Calls of a scalar function over the operands, whose results are added."""
    return _loop("sum", address, operands)


def _loop(kind: str, address: int, operands: Operands, *more: Array) -> Callable[[], object]:
    bits = vector_bits() or 256
    command = [tool("gcc"), *C_FLAGS, HOST, f"-DBITS={bits}", "-Wno-psabi", "-shared", "-fPIC"]
    library = ctypes.CDLL(str(build("loop.so", command, [ROOT / "mathematics" / "loop.c"])))
    run = getattr(library, f"{kind}{len(operands.arrays)}_{operands.type}")
    run.restype = None
    arrays = (*operands.arrays, *more)  # which have to live as long as the calls

    def call() -> None:
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        run(ctypes.c_void_p(address), ctypes.c_int64(operands.count), *pointers)

    return call
