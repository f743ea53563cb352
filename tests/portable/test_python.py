# SPDX-License-Identifier: Apache-2.0
"""`ferryvm.export` writes Python functions; errors stand where Python raises or goes on by
itself."""

from __future__ import annotations

import ctypes
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm.isa.trap import Trap
from ferryvm.portable import ExportError

from ..tier import sample
from .conftest import run


def saxpy(a: Any, x: Any, y: Any) -> None:
    for i in range(len(x)):
        y[i] = a * x[i] + y[i]


def norm(x: Any) -> Any:
    s = 0.0
    for v in x:
        s += v * v
    return math.sqrt(s)


def power(a: Any, n: Any) -> Any:
    r = 1
    for _ in range(n):
        r = r * a
    return r


def matmul(a: Any, b: Any, c: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            s = 0.0
            for k in range(a.shape[1]):
                s += a[i, k] * b[k, j]
            c[i, j] = s


def quotient(a: Any, b: Any) -> Any:
    try:
        return a / b
    except ZeroDivisionError:
        return 0.0


def fresh(n: Any) -> Any:
    return np.zeros(n)


def factorial(n: int) -> int:
    return n * factorial(n - 1) if n > 1 else 1


def shout(x: Any) -> Any:
    print(x)  # what is refused
    return x


def both(x: Any) -> Any:
    return 1 if x > 0.0 else x


EXPORTED: list[tuple[Callable[..., Any], Sequence[object]]] = [
    (norm, ("float64[:]",)),
    (saxpy, (np.float32, np.zeros(3, "f4"), "float32[:]")),
    (matmul, ("float64[:, :]", "float64[:,:]", np.zeros((2, 2)))),
    (power, (int, int)),
    (quotient, (float, 1.0)),
]


@pytest.mark.parametrize(("function", "arguments"), sample(EXPORTED, 1))
def test_an_exported_python_function_proves_itself(
    tmp_path: Path, function: Callable[..., Any], arguments: Sequence[object]
) -> None:
    ferryvm.export(function, arguments, tmp_path / "folder")
    checked = run(tmp_path / "folder", "make", "check", "CC=gcc")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("level", sample([3, 0, 1], 1))
def test_code_of_each_level_proves_itself(tmp_path: Path, level: int) -> None:
    matrices = ("float64[:, :]",) * 3
    ferryvm.export(matmul, matrices, tmp_path / "folder", optimize=level, vectors=40)
    checked = run(tmp_path / "folder", "make", "check", "CC=gcc")
    assert checked.returncode == 0, checked.stdout


def test_no_size_of_an_example_is_in_the_text(tmp_path: Path) -> None:
    texts = []
    for size in (3, 1000):
        array = np.zeros(size)
        ferryvm.export(saxpy, (2.0, array, array.copy()), tmp_path / f"{size}", vectors=1)
        texts.append((tmp_path / f"{size}" / "saxpy.c").read_text("utf-8"))
    assert texts[0] == texts[1]


def library(tmp_path: Path, function: Callable[..., Any], *arguments: object) -> Any:
    ferryvm.export(function, arguments, tmp_path / "folder", vectors=1)
    built = run(tmp_path / "folder", "make", "CC=gcc")
    assert built.returncode == 0, built.stdout
    return ctypes.CDLL(str(tmp_path / "folder" / f"lib{function.__name__}.so"))


def test_a_number_that_leaves_64_bits_is_an_error_with_its_line(tmp_path: Path) -> None:
    call = library(tmp_path, power, int, int).power
    result = ctypes.c_int64()
    assert call(ctypes.c_int64(3), ctypes.c_int64(4), ctypes.byref(result)) == 0
    assert result.value == 81
    status = call(ctypes.c_int64(3), ctypes.c_int64(41), ctypes.byref(result))
    assert status & 255 == Trap.INTEGER_OVERFLOW
    assert "r = r * a" in Path(__file__).read_text("utf-8").splitlines()[(status >> 8) - 1]


def test_the_shape_of_a_matrix_is_a_formula_of_arguments(tmp_path: Path) -> None:
    made = ferryvm.export(matmul, ("float64[:, :]",) * 3, tmp_path / "folder", vectors=1)
    found = json.loads((made.directory / "manifest.json").read_text("utf-8"))["arguments"]
    shapes = [(each["name"], each["shape"]) for each in found if each["kind"] == "array"]
    assert shapes == [("a", ["a_1", "a_2"]), ("b", ["b_1", "b_2"]), ("c", ["c_1", "c_2"])]


@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        (fresh, (int,), "fresh returns array of float64, 1-d; pass an array that it fills"),
        (shout, (float,), "it executes this statement in Python; do that before or after"),
        (factorial, (int,), "'factorial' calls itself; write the recursion as a loop"),
        (both, (float,), "both returns float or int; return values of one type"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    tmp_path: Path, function: Callable[..., Any], arguments: Sequence[object], reason: str
) -> None:
    with pytest.raises(
        ExportError, match=rf"test_python\.py:\d+:\d+: cannot be exported: {reason}"
    ):
        ferryvm.export(function, arguments, tmp_path / "folder")


@pytest.mark.parametrize("argument", ["float64", "float63[:]", str, "float64[x]"])
def test_an_argument_that_is_no_kind_is_refused(tmp_path: Path, argument: object) -> None:
    with pytest.raises(ferryvm.UnsupportedError, match="argument "):
        ferryvm.export(norm, (argument,), tmp_path / "folder")


def test_a_number_that_is_named_by_a_text_is_refused_with_its_type() -> None:
    wanted = "'complez': .* of a number pass the type itself, such as complex or numpy.complex64;"
    with pytest.raises(ferryvm.UnsupportedError, match=wanted):
        ferryvm.export(norm, ("complez",), "folder")


@pytest.mark.parametrize(
    ("argument", "nearest"),
    [
        ("complez", "complex64, complex128, "),
        ("flaot64[:]", "float64, float32, "),
        ("int8", "int8, "),
    ],
)
def test_types_of_elements_are_listed_with_the_nearest_first(
    tmp_path: Path, argument: str, nearest: str
) -> None:
    with pytest.raises(ferryvm.UnsupportedError, match=f"^argument '.*; types are {nearest}"):
        ferryvm.export(norm, (argument,), tmp_path / "folder")


def test_the_number_of_arguments_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ferryvm.UnsupportedError, match="has the parameters a, x, y; found 1"):
        ferryvm.export(saxpy, (1.0,), tmp_path / "folder")
