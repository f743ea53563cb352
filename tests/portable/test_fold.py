# SPDX-License-Identifier: Apache-2.0
"""Arguments become constants of the exported code only if that is asked for, and the manifest
tells."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm.errors import FerryError
from ferryvm.portable import ExportOptions, export_region, import_kernel
from ferryvm.verify import Verified

from ..command import ferry
from ..tier import sample
from .conftest import KERNELS, run


def exported(kernels: Verified, folder: Path, name: str, **fold: str | float) -> tuple[str, Any]:
    """The text of a function with constants, and its manifest."""
    made = export_region(kernels, name, folder, ExportOptions(fold=fold))
    text = (folder / f"{made.interface.name}.c").read_text("utf-8")
    return text, json.loads((folder / "manifest.json").read_text("utf-8"))


FOLDED = [
    ("axpy", {"a": 2.5}, ["x", "x_length", "y", "y_length"], ["2.5"]),
    ("main/launch.1", {"scale": 3}, ["items", "x", "from", "y"], ["3.0"]),
    ("scaled", {"scale": "0.5"}, ["x", "calls", "result", "new_calls"], ["0.5"]),
    ("shift!", {"n": "4"}, ["v", "v_length"], ["4"]),
]


@pytest.mark.parametrize(("name", "fold", "names", "values"), sample(FOLDED, 2))
def test_a_folded_argument_is_a_constant_and_the_folder_proves_itself(
    kernels: Verified,
    tmp_path: Path,
    name: str,
    fold: dict[str, str | float],
    names: list[str],
    values: list[str],
) -> None:
    text, manifest = exported(kernels, tmp_path / "f", name, **fold)
    listed = [each["name"] for each in manifest["arguments"]]
    assert [each for each in listed if not each.endswith("_length") or each in names] == names
    assert [each["value"] for each in manifest["folded"]] == values
    (folded,) = fold
    assert not re.search(rf"\b{folded}\b", text[text.rindex("\nint32_t ") :])
    checked = run(tmp_path / "f", "make", "check", "CC=gcc")
    assert checked.returncode == 0, checked.stdout


def test_nothing_is_folded_that_was_not_asked_for(kernels: Verified, tmp_path: Path) -> None:
    _, manifest = exported(kernels, tmp_path / "f", "axpy")
    assert manifest["folded"] == []


@pytest.mark.nightly  # the launch above has it in C
def test_a_work_item_has_the_constant_too(kernels: Verified, tmp_path: Path) -> None:
    pytest.importorskip("pyopencl")
    options = ExportOptions("opencl", fold={"scale": 3.0}, vectors=20)
    export_region(kernels, "main/launch.1", tmp_path / "f", options)
    kernel = import_kernel(tmp_path / "f")
    x, y = np.arange(4.0), np.zeros(4)
    kernel(4, x, np.array([3, 2, 1, 0]), y)
    assert y.tolist() == [9.0, 6.0, 3.0, 0.0]


def head(x: Any, n: int) -> float:
    total = 0.0
    for i in range(n):
        total += x[i]
    return float(total)


def test_a_python_function_is_exported_with_a_constant(tmp_path: Path) -> None:
    made = ferryvm.export(head, ("float64[:]", int), tmp_path / "f", fold={"n": 3}, vectors=20)
    assert [each.name for each in made.interface.arguments] == ["x"]
    assert import_kernel(tmp_path / "f")(np.arange(9.0)) == 3.0


def test_dimensions_that_are_folded_are_numbers_in_the_shape(tmp_path: Path) -> None:
    def corner(a: Any) -> Any:
        return a[1, 1]

    made = ferryvm.export(corner, ("float64[:, :]",), tmp_path / "f", vectors=10)
    _, rows, columns = (each.name for each in made.interface.arguments)
    fold = {rows: 2, columns: 3}
    ferryvm.export(corner, ("float64[:, :]",), tmp_path / "g", vectors=10, fold=fold)
    (array, _, _) = json.loads((tmp_path / "g" / "manifest.json").read_text("utf-8"))["arguments"]
    assert array["shape"] == ["2", "3"]
    assert import_kernel(tmp_path / "g")(np.arange(6.0).reshape(2, 3)) == 4.0


@pytest.mark.parametrize(
    ("name", "fold", "message"),
    [
        ("axpy", {"x": 1}, "fold x=1: is an array; numbers can be folded"),
        ("axpy", {"b": 1}, "axpy has no argument 'b'; it has a, x, y"),
        ("shift!", {"n": "1.5"}, "fold n=1.5: a number from -9223372036854775808 to"),
        ("shift!", {"n": 1.5}, "fold n=1.5: a number from"),
        ("shift!", {"n": 1 << 63}, "a number from -9223372036854775808 to 9223372036854775807"),
        ("axpy", {"a": "one"}, "fold a=one: a number is expected for an f64"),
        ("scaled", {"calls": 1}, "fold calls=1: is changed by scaled"),
        ("main/launch.1", {"items": 3}, "items=3: is the number of items, which is no constant"),
    ],
)
def test_what_cannot_be_folded_is_one_line(
    kernels: Verified, tmp_path: Path, name: str, fold: dict[str, str | float], message: str
) -> None:
    with pytest.raises(FerryError, match=re.escape(message)):
        export_region(kernels, name, tmp_path / "f", ExportOptions(fold=fold))
    assert not (tmp_path / "f").exists()


def test_the_command_takes_constants_by_name(tmp_path: Path) -> None:
    words = ("export", KERNELS, "--region", "shift!", "-o", tmp_path / "f", "--vectors", 5)
    assert ferry(*words, "--fold", "n=0x4").code == 0
    assert "Constant in the code: n = 4." in (tmp_path / "f" / "shift.h").read_text("utf-8")
    assert "--fold n: NAME=VALUE is expected" in ferry(*words, "--fold", "n").err
