# SPDX-License-Identifier: Apache-2.0
"""Maps of Python functions are exported as launches, and prove themselves without ferryvm."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.parallel.program import BY_NAME
from benchmarks.python.item import OF, loaded

import ferryvm
from ferryvm.errors import FerryError
from ferryvm.portable import Exported

from ..tier import nightly
from .conftest import run
from .proof import TARGETS, prove

PROGRAMS = (
    *("daxpy", "blackscholes", "nbody", "dft", "mandelbrot", "kmeans", "hilbert", "spectralnorm"),
)
USUAL = [("blackscholes", "c"), ("kmeans", "wasm")]
"""In the default tier; tests/portable/test_program.py has the launch of a kernel in OpenCL there."""


def _rotated() -> Iterator[Any]:
    yield from USUAL
    yield from (nightly((n, t)) for n in PROGRAMS for t in TARGETS if (n, t) not in USUAL)


def _kind(value: object) -> object:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}[:]"
    return range if isinstance(value, range) else value


def exported_map(name: str, folder: Path, target: str) -> Exported:
    """The map of a program's item in Python as a folder."""
    twin = BY_NAME[name]
    items = OF[name](twin.make(twin.tiny).arguments)
    item = loaded(twin.path("py")).item
    names = item.__code__.co_varnames[len(items.elements) : item.__code__.co_argcount]
    shared = [items.arguments[each] for each in names]
    kinds = [*map(_kind, (*items.elements, *shared))]
    count = len(items.elements)
    return ferryvm.export(item, kinds, folder, target=target, elements=count, name=f"{name}_map")


@pytest.mark.parametrize(("name", "target"), [*_rotated()])
def test_a_map_proves_itself_without_ferryvm(tmp_path: Path, name: str, target: str) -> None:
    made = exported_map(name, tmp_path / "folder", target)
    prove(made.directory, target)
    assert made.vectors >= 10


def test_results_and_elements_are_arrays(tmp_path: Path) -> None:
    def parts(x, above, k):
        return math.floor(x * k), x > above[0]

    kinds = ("float32[:]", "float64[:]", float)
    made = ferryvm.export(parts, kinds, tmp_path / "folder", elements=1)
    found = [(each.name, str(each.element)) for each in made.interface.arrays]
    assert found == [("out_0", "i64"), ("out_1", "u8"), ("x", "f32"), ("above", "f64")]
    prove(made.directory, "c")


def test_a_range_is_the_number_of_the_item(tmp_path: Path) -> None:
    def squared(i, n):
        return i * i % n

    made = ferryvm.export(squared, (range, int), tmp_path / "folder", elements=1)
    assert [each.name for each in made.interface.arguments] == ["items", "out", "n"]
    manifest = json.loads((made.directory / "manifest.json").read_text("utf-8"))
    assert [(each["name"], each["value"]) for each in manifest["folded"]] == [
        ("start_of_i", "0"),
        ("step_of_i", "1"),
    ]
    prove(made.directory, "c")


def test_an_exception_of_an_item_is_an_error_with_its_line(tmp_path: Path) -> None:
    def root(x):
        return math.sqrt(x)

    made = ferryvm.export(root, ("float64[:]",), tmp_path / "folder", elements=1)
    line = root.__code__.co_firstlineno + 1
    (found,) = [
        lines for kind, lines in made.interface.errors.items() if kind.name == "UNCAUGHT_EXCEPTION"
    ]
    assert line in found


def test_a_shorter_array_is_an_error(tmp_path: Path) -> None:
    made = ferryvm.export(math.sqrt, ("float64[:]",), tmp_path / "folder", elements=1)
    assert "INDEX_OUT_OF_BOUNDS" in {kind.name for kind in made.interface.errors}


def test_vectors_find_a_mutation_of_a_map(tmp_path: Path) -> None:
    def scaled(x, y, k):
        return x * k + y

    kinds = ("float64[:]", "float64[:]", float)
    made = ferryvm.export(scaled, kinds, tmp_path / "folder", elements=2)
    source = made.directory / "scaled.c"
    text, count = re.subn(r"(x\[\w+\]) \* k\b", r"\1 * (k + 1)", source.read_text("utf-8"))
    assert count
    source.write_text(text, "utf-8")
    words = "gcc -std=c11 -w -O0 -ffp-contract=off -o check-program check.c scaled.c -lm"
    assert run(made.directory, *words.split()).returncode == 0
    assert run(made.directory, "./check-program").returncode == 1


REFUSED: list[tuple[Any, tuple[object, ...], int, str]] = [
    (lambda x: [x], ("float64[:]",), 1, "the results must be numbers"),
    (lambda x: x + 1.0, ("float64[:, :]",), 1, r"write 'float64\[:\]'"),
    (lambda x: x + 1.0, (float,), 1, "no argument is an array of elements"),
    (lambda x: x + 1.0, ("float64[:]",), 2, "1 parameters, 2 elements"),
]


@pytest.mark.parametrize(("function", "kinds", "count", "reason"), REFUSED)
def test_other_maps_are_refused_in_one_line(
    tmp_path: Path, function: Any, kinds: tuple[object, ...], count: int, reason: str
) -> None:
    with pytest.raises(FerryError, match=reason) as caught:
        ferryvm.export(function, kinds, tmp_path / "folder", elements=count, name="mapped")
    assert "\n" not in str(caught.value)
