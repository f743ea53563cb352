# SPDX-License-Identifier: Apache-2.0
"""Exported functions and maps of complex numbers: their arrays are those of the parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm.errors import FerryError
from ferryvm.portable import import_kernel

from ..tier import nightly
from .proof import TARGETS, prove


def julia(z, c, scale):
    return z * z * scale + c, abs(z.real) > 1.0


@pytest.mark.parametrize(
    ("target", "dtype"),
    [
        *(("c", "complex128"), ("opencl", "complex64")),
        *(
            nightly((target, dtype))
            for target in TARGETS
            for dtype in ("complex64", "complex128")
            if (target, dtype) not in [("c", "complex128"), ("opencl", "complex64")]
        ),
    ],
)
def test_a_map_of_complex_numbers_proves_itself(tmp_path: Path, target: str, dtype: str) -> None:
    kinds = (f"{dtype}[:]", np.dtype(dtype).type, np.float32)
    made = ferryvm.export(julia, kinds, tmp_path / "folder", target=target, elements=1)
    manifest = json.loads((made.directory / "manifest.json").read_text("utf-8"))
    given = {each["name"]: each for each in manifest["arguments"]}
    assert given["z"]["shape"] == ["z_length // 2", 2]
    assert given["out_0"]["type"] == {"complex64": "f32", "complex128": "f64"}[dtype]
    assert made.vectors >= 20
    prove(made.directory, target)


def test_an_imported_map_has_the_bits_of_a_map(tmp_path: Path) -> None:
    def rotated(z, w, k):
        return z * w - k

    kinds = ("complex128[:]", "complex128[:]", complex)
    made = ferryvm.export(rotated, kinds, tmp_path / "folder", elements=2)
    zs = np.array([1 + 2j, -0.5j, 3 - 1j])
    out = np.empty(6)
    kernel = import_kernel(made.directory)
    kernel(3, out, zs.view(float), zs[::-1].copy().view(float), 0.5, -1.0)
    wanted = ferryvm.map(rotated, zs, zs[::-1].copy(), k=0.5 - 1j)
    assert out.tobytes() == wanted.tobytes()


def test_the_length_of_an_array_is_that_of_its_numbers(tmp_path: Path) -> None:
    def total(zs, factor):
        found = 0j
        for n in range(len(zs)):
            found += complex(zs[n]) * factor
        return found

    made = ferryvm.export(total, ("complex128[:]", complex), tmp_path / "folder")
    assert [each.name for each in made.interface.results] == ["result_real", "result_imag"]
    zs = np.array([1 + 2j, -0.5j, 3 - 1j])
    found = import_kernel(made.directory)(zs.view(float), 0.5, -1.0)
    assert complex(*found) == total(zs, 0.5 - 1j)


REFUSED: list[tuple[Any, tuple[object, ...], int, str]] = [
    (lambda z, w: z * w[0, 0], ("complex128[:]", "complex128[:, :]"), 1, "in one dimension"),
    (lambda z: min(z, 1j), (complex,), 0, "complex numbers have no order here"),
]


@pytest.mark.parametrize(("function", "kinds", "count", "reason"), REFUSED)
def test_refusals_are_one_line(
    tmp_path: Path, function: Any, kinds: tuple[object, ...], count: int, reason: str
) -> None:
    with pytest.raises(FerryError, match=reason) as caught:
        ferryvm.export(function, kinds, tmp_path / "folder", elements=count, name="made")
    assert "\n" not in str(caught.value)
