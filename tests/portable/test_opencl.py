# SPDX-License-Identifier: Apache-2.0
"""Functions and launches exported as OpenCL C pass their golden vectors on a device, from Python
and from C."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ferryvm.errors import FerryError
from ferryvm.portable import ExportOptions, export_region
from ferryvm.verify import Verified

from ..tier import sample
from .conftest import Folder
from .opencl_host import from_c, in_python

pyopencl = pytest.importorskip("pyopencl")

FUNCTIONS = (
    *("main/launch.1", "main/launch.2", "main/launch.3", "axpy", "steps", "roots", "histogram"),
    *("narrow", "scaled", "dot", "divide", "mix", "norm", "shift!"),
)


@pytest.mark.nightly
@pytest.mark.parametrize("name", sample(FUNCTIONS, 1))
def test_a_kernel_proves_itself_from_python(opencl: Folder, name: str) -> None:
    checked = in_python(opencl(name))
    assert checked.returncode == 0, checked.stdout
    assert "60 vectors pass" in checked.stdout


@pytest.mark.nightly
@pytest.mark.parametrize("name", sample(FUNCTIONS, 1))
def test_a_kernel_proves_itself_from_c(opencl: Folder, name: str) -> None:
    checked = from_c(opencl(name))
    assert checked.returncode == 0, checked.stdout
    assert " vectors pass (C)" in checked.stdout


MUTATIONS = {
    "main/launch.1": [
        ("const bool fits = ", "const bool fits = true || "),
        ("!fits && ", "fits && "),
        ("scale * ", "scale + "),
        ("= failed;", "= failed + 1;"),
        ("_INDEX_OUT_OF_BOUNDS | ", "_INDEX_OUT_OF_BOUNDS + 1 | "),
        ("y[item_] = ", "y[0] = "),
    ],
    "main/launch.2": [("get_global_id(0), x", "get_global_id(0) / 2, x"), ("p0 + 1ul", "p0 + 2ul")],
    "main/launch.3": [(", 1ul)", ", 2ul)")],
    "axpy": [("a * ", "a + "), ("*status = ", "*status = 256 + ")],
    "shift!": [("+ k1]", "+ k1 + 1]")],
}
"""Faults of a kernel that its vectors find: what stands there, what is written instead."""

PLANTED = [(name, *change) for name, changes in MUTATIONS.items() for change in changes]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "old", "new"), sample(PLANTED, 1))
def test_vectors_find_a_planted_mutation(
    opencl: Folder, tmp_path: Path, name: str, old: str, new: str
) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(opencl(name), folder)
    (source,) = folder.glob("*.cl")
    text = source.read_text("utf-8")
    assert old in text
    source.write_text(text.replace(old, new), "utf-8")
    checked = in_python(folder)
    assert checked.returncode == 1 or checked.returncode < 0, checked.stdout
    if checked.returncode == 1:  # else an access out of bounds has crashed it
        assert "note: " in checked.stdout
        assert "vector " in checked.stdout


def test_sums_of_floats_in_loops_are_to_stay_in_order(opencl: Folder) -> None:
    text = (opencl("dot") / "dot_kernel.cl").read_text("utf-8")
    assert text.count("    in_order()\n    for (;;) {") == 1
    assert "in_order" not in (opencl("steps") / "steps.cl").read_text("utf-8")


def test_a_kernel_may_not_be_named_like_a_built_in_function(
    kernels: Verified, tmp_path: Path
) -> None:
    with pytest.raises(FerryError, match="name 'dot': is a built-in function of opencl"):
        export_region(kernels, "dot", tmp_path / "a", ExportOptions("opencl", name="dot"))
    assert export_region(
        kernels, "dot", tmp_path / "b", ExportOptions("opencl")
    ).interface.name == ("dot_kernel")


def test_an_unknown_device_is_said(opencl: Folder) -> None:
    checked = in_python(opencl("axpy"), "no such device")
    assert checked.returncode == 2
    assert "no device has 'no such device' in its name" in checked.stdout
