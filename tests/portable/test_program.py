# SPDX-License-Identifier: Apache-2.0
"""Data-parallel programs and Python kernels are exported, and prove themselves where ferryvm cannot
be imported.

The programs are the eight of FastR's collection of parallel code (Stadler et al. 2016; Fumero et
al. 2017), as benchmarks/parallel has them. The kernels are of the kinds that vendors of GPUs ship
as samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.parallel.program import BY_NAME

import ferryvm
from ferryvm.isa.element import Element
from ferryvm.portable import Exported, ExportError, ExportOptions, export_region
from ferryvm.portable.harness.golden import read_vectors
from ferryvm.verify import verify

from ..python.corpus_kernel import SAMPLES, Sample
from ..tier import nightly
from .proof import TARGETS, prove

PROGRAMS = (
    *("daxpy", "blackscholes", "nbody", "dft", "mandelbrot", "kmeans", "hilbert", "spectralnorm"),
)
KERNELS = ("transpose", "multiply", "reduce", "scan", "histogram", "sort", "dct", "attract")
"""Kernels with barriers; the others have arrays of groups whose length is an argument."""

USUAL = [("mandelbrot", "llvm"), ("daxpy", "c")]
"""In the default tier; tests/portable/test_opencl.py has a launch of items in OpenCL there."""
USUAL_KERNELS = [("scan", "opencl"), ("transpose", "c")]
"""tests/portable/test_group.py has a kernel of Skiff in WebAssembly."""


def _rotated(names: tuple[str, ...], usual: list[tuple[str, str]]) -> Iterator[Any]:
    yield from usual
    for name in names:
        yield from (nightly((name, t)) for t in TARGETS if (name, t) not in usual)


@pytest.mark.parametrize(("name", "target"), [*_rotated(PROGRAMS, USUAL)])
def test_a_program_proves_itself_without_ferryvm(tmp_path: Path, name: str, target: str) -> None:
    made = exported_program(name, tmp_path / "folder", target)
    prove(made.directory, target)
    assert made.bytes <= 200_000
    assert made.vectors >= 10


def _sample(name: str) -> Sample:
    return next(found for make in SAMPLES if (found := make()).kernel.__name__ == name)


def _signature(argument: object) -> object:
    """The text for an array; a number is its own example."""
    if isinstance(argument, np.ndarray):
        return f"{argument.dtype}[{','.join(':' * argument.ndim)}]"
    return argument


def exported_program(name: str, folder: Path, target: str) -> Exported:
    """The launch of a program as a folder."""
    verified = verify(ferryvm.read(BY_NAME[name].path("skiff")))
    options = ExportOptions(target, name=f"{name}_kernel")
    return export_region(verified, "work/launch.1", folder, options)


def exported_kernel(name: str, folder: Path, target: str) -> Exported:
    """The launch of a sample's kernel as a folder."""
    found = _sample(name)
    arguments = [*map(_signature, found.arguments)]
    return ferryvm.export(found.kernel, arguments, folder, target=target, group=found.group)


@pytest.mark.parametrize(("name", "target"), [*_rotated(KERNELS, USUAL_KERNELS)])
def test_a_python_kernel_proves_itself_without_ferryvm(
    tmp_path: Path, name: str, target: str
) -> None:
    made = exported_kernel(name, tmp_path / "folder", target)
    prove(made.directory, target)
    assert made.bytes <= 200_000
    vectors = read_vectors(made.directory / "vectors.txt", made.interface.name)
    assert any(each.status == 0 and each.outputs for each in vectors)


def test_a_length_of_a_group_array_that_is_an_argument_is_refused_by_ptx(tmp_path: Path) -> None:
    wanted = "depends on the length of 'weights'; pass each length as a number of its own, and make"
    with pytest.raises(ExportError, match=wanted) as caught:
        exported_kernel("convolve", tmp_path / "folder", "ptx")
    assert "corpus_kernel.py:" in str(caught.value)


@ferryvm.kernel
def turned(out, x, width):
    tile = ferryvm.group_array(width, "f64")
    i, me = ferryvm.item(), ferryvm.local_item()
    tile[me] = x[i]
    ferryvm.barrier()
    out[i] = tile[width - 1 - me]


def test_a_size_that_is_an_argument_can_be_a_constant(tmp_path: Path) -> None:
    kinds = ("float64[:]", "float64[:]", int)
    wanted = r"depends on the argument 'width'; make it a constant \(--fold width=VALUE\)"
    with pytest.raises(ExportError, match=wanted):
        ferryvm.export(turned, kinds, tmp_path / "a", target="spirv", group=8)
    made = ferryvm.export(turned, kinds, tmp_path / "b", group=8, fold={"width": 8})
    assert [each.name for each in made.interface.arguments] == ["groups", "out", "x"]
    prove(made.directory, "c")


def test_the_caller_lends_an_array_whose_length_is_an_argument(tmp_path: Path) -> None:
    kinds = ("float64[:]", "float64[:]", int)
    made = ferryvm.export(turned, kinds, tmp_path / "folder", group=8)
    assert [each.name for each in made.interface.arguments] == ["groups", "out", "x", "width", "g0"]
    assert made.interface.group_arrays == (("g0", Element.F64, "width"),)
    assert made.interface.members == (8,)
    prove(made.directory, "c")


def test_a_kernel_without_groups_is_a_launch_of_items(tmp_path: Path) -> None:
    made = ferryvm.export(
        scaled, ("float64[:]", "float64[:]", 2.0), tmp_path / "folder", target="opencl"
    )
    assert "get_global_id(0)" in (made.directory / "scaled.cl").read_text("utf-8")


@pytest.mark.nightly
def test_a_kernel_without_groups_proves_itself(tmp_path: Path) -> None:
    made = ferryvm.export(
        scaled, ("float64[:]", "float64[:]", 2.0), tmp_path / "folder", target="opencl"
    )
    prove(made.directory, "opencl")


def test_groups_are_for_kernels_only(tmp_path: Path) -> None:
    with pytest.raises(ferryvm.UnsupportedError, match="_signature is no kernel"):
        ferryvm.export(_signature, (1.0,), tmp_path / "folder", group=4)


@ferryvm.kernel
def scaled(out, x, factor):
    i = ferryvm.item()
    out[i] = factor * x[i]
