# SPDX-License-Identifier: Apache-2.0
"""Sizes of groups are arguments of exported kernels, or expressions of them, and the manifest says
so; those that are constants are numbers there."""

from __future__ import annotations

import ctypes
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import ferryvm
from ferryvm.errors import FerryError
from ferryvm.portable import ExportError, ExportOptions, export_region, import_kernel
from ferryvm.portable.expression import Compound, Place, expression_text, mapped, value_of
from ferryvm.portable.harness.golden import expression
from ferryvm.verify import Verified, verify

from ..command import ferry
from ..tier import nightly
from .conftest import run
from .opencl_host import from_c, in_python
from .proof import TARGETS, prove
from .test_group import GROUPS, KERNELS

SIZES = Path(__file__).with_name("sizes.skiff")
SQUARE, WEIGHED, PLANE = "main/launch.1", "main/launch.2", "main/launch.3"

ROTATED = [(SQUARE, "c"), (WEIGHED, "llvm"), ("last!", "wasm"), ("last!", "opencl")]
OTHERS = [
    (name, target)
    for name in (SQUARE, WEIGHED, "last!")
    for target in TARGETS
    if (name, target) not in ROTATED
]


@pytest.fixture(scope="session")
def sizes() -> Verified:
    return verify(ferryvm.read(SIZES))


@pytest.fixture(scope="session")
def groups() -> Verified:
    return verify(ferryvm.read(GROUPS))


def manifest_of(folder: Path) -> Any:
    """The manifest, which is as its schema says."""
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    schema = (resources.files("ferryvm.portable") / "manifest.schema.json").read_text("utf-8")
    jsonschema.validate(manifest, json.loads(schema))
    return manifest


@pytest.mark.parametrize(("name", "target"), [*ROTATED, *map(nightly, OTHERS)])
def test_a_kernel_with_sizes_that_are_arguments_proves_itself(
    sizes: Verified, tmp_path: Path, name: str, target: str
) -> None:
    made = export_region(sizes, name, tmp_path / "folder", ExportOptions(target))
    assert made.vectors >= 20
    prove(made.directory, target)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [each for each in KERNELS if each.endswith("!")])
def test_the_size_of_groups_of_each_kernel_may_be_an_argument(
    groups: Verified, tmp_path: Path, name: str
) -> None:
    target = TARGETS[KERNELS.index(name) % len(TARGETS)]
    made = export_region(groups, name, tmp_path / "folder", ExportOptions(target))
    assert made.interface.members == ("members",)
    prove(made.directory, target)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [SQUARE, WEIGHED, "last!"])
def test_sanitizers_find_no_access_beyond_lent_memory(
    sizes: Verified, tmp_path: Path, name: str
) -> None:
    export_region(sizes, name, tmp_path / "folder")
    checked = run(tmp_path / "folder", "make", "-s", "sanitize", "CC=clang")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.nightly
def test_a_host_in_c_gives_local_memory_by_the_expression(sizes: Verified, tmp_path: Path) -> None:
    export_region(sizes, SQUARE, tmp_path / "folder", ExportOptions("opencl"))
    checked = from_c(tmp_path / "folder")
    assert checked.returncode == 0, checked.stdout


def test_the_manifest_has_sizes_as_expressions_of_arguments(
    sizes: Verified, tmp_path: Path
) -> None:
    export_region(sizes, SQUARE, tmp_path / "folder", ExportOptions("opencl", vectors=1))
    manifest = manifest_of(tmp_path / "folder")
    assert manifest["launch"] == {"dimensions": 1, "items": "(n * n) * groups", "group": "n * n"}
    arrays = [{"name": "g0", "type": "f64", "length": "n * n"}]
    assert manifest["groups"] == {"members": "n * n", "arrays": arrays}
    lent = {"name": "g0", "kind": "lent", "type": "f64", "shape": ["n * n"]}
    assert manifest["arguments"][-2] == lent
    text = (tmp_path / "folder" / "main_launch_1.cl").read_text("utf-8")
    assert "reqd_work_group_size" not in text
    assert re.search(r"__local double \*g0,\s+__global int \*status\)", text)


def test_a_number_in_the_manifest_is_a_constant_of_the_code(
    groups: Verified, tmp_path: Path
) -> None:
    export_region(groups, "histogram!", tmp_path / "folder", ExportOptions(group=16, vectors=1))
    manifest = manifest_of(tmp_path / "folder")
    arrays = [{"name": "g0", "type": "i32", "length": 12}]
    assert manifest["groups"] == {"members": 16, "arrays": arrays}
    header = (tmp_path / "folder" / "histogram.h").read_text("utf-8")
    assert "Members of a group: 16.\n" in header
    assert "Constant in the code: a group has an array g0 of 12 i32.\n" in header


def test_the_size_in_the_program_is_no_constant_of_the_code(
    groups: Verified, tmp_path: Path
) -> None:
    export_region(groups, "reverse!", tmp_path / "folder", ExportOptions(vectors=1))
    text = (tmp_path / "folder" / "reverse.c").read_text("utf-8")
    assert "64" not in text[text.index("{", text.index("int32_t reverse(")) :].replace("int64", "")
    header = (tmp_path / "folder" / "reverse.h").read_text("utf-8")
    assert "int64_t groups,\n    int64_t members,\n" in header


def test_a_target_with_constant_sizes_has_those_of_the_program(
    groups: Verified, sizes: Verified, tmp_path: Path
) -> None:
    made = export_region(groups, "reverse!", tmp_path / "a", ExportOptions("ptx", vectors=1))
    assert made.interface.members == (64,)
    with pytest.raises(ExportError, match="in groups of no constant size; say it: --group SIZE"):
        export_region(sizes, "last!", tmp_path / "b", ExportOptions("ptx"))


def test_two_dimensions_of_no_constant_size_are_refused(sizes: Verified, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"make it a constant \(--fold n=VALUE\)"):
        export_region(sizes, PLANE, tmp_path / "a")
    made = export_region(sizes, PLANE, tmp_path / "b", ExportOptions(fold={"n": "3"}, vectors=5))
    assert made.interface.members == (9,)


def test_the_command_tells_how_many_launches_are_no_vectors(tmp_path: Path) -> None:
    done = ferry("export", SIZES, "--region", PLANE, "--fold", "n=3", "-o", tmp_path / "a")
    pattern = r": main_launch_3, 1 vector \((\d\d+) launches are none: their items are not independent\), "
    assert re.search(pattern, done.out), done.out


@pytest.fixture(scope="session")
def last(sizes: Verified, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sizes") / "folder"
    export_region(sizes, "last!", folder, ExportOptions(vectors=12))
    assert run(folder, "make", "-s", "all", "CC=gcc").returncode == 0
    return folder


LENT_INDEX_ERROR = 6
"""The status of a size that is too large, or larger than the memory that is lent for it."""


@pytest.mark.parametrize(
    ("members", "length", "lent", "status"),
    [
        (4, 4, 4, 0),
        (4, 4, 3, LENT_INDEX_ERROR),
        (4, -1, 3, LENT_INDEX_ERROR),
        (0, 4, 4, LENT_INDEX_ERROR),
        (-4, 4, 4, LENT_INDEX_ERROR),
        (1025, 4, 4, LENT_INDEX_ERROR),
        (1024, 1024, 1024, 0),
    ],
)
def test_sizes_that_do_not_fit_are_an_error(
    last: Path, members: int, length: int, lent: int, status: int
) -> None:
    function = ctypes.CDLL(str(last / "liblast.so")).last
    to, tile = np.zeros(1024, np.int64), np.full(1024, 7, np.int32)
    long, pointer = ctypes.c_int64, ctypes.c_void_p
    given = (long(1), long(members), long(length), pointer(to.ctypes.data), long(1024))
    assert function(*given, pointer(tile.ctypes.data), long(lent)) == status
    assert to.any() == (status == 0)


@pytest.mark.parametrize("target", ["c", *map(nightly, ["wasm", "opencl", "llvm"])])
def test_an_imported_kernel_lends_its_own_memory(
    sizes: Verified, tmp_path: Path, target: str
) -> None:
    if target in ("opencl", "wasm"):
        pytest.importorskip({"opencl": "pyopencl", "wasm": "wasmtime"}[target])
    export_region(sizes, WEIGHED, tmp_path / "folder", ExportOptions(target, vectors=12))
    kernel = import_kernel(tmp_path / "folder")
    weights, out = np.arange(5, dtype=np.int64), np.zeros(10, np.int64)
    kernel(2, weights, out)
    assert out.tolist() == [0, 1, 3, 5, 7] * 2


MUTATIONS = [
    ("last!", "group_ * members_", "group_ * 4ul"),
    (SQUARE, "n * n,", "n * 2,"),
]
"""Sizes of one call in the place of arguments: what stands there, what is written instead."""


@pytest.mark.parametrize(("name", "old", "new"), [MUTATIONS[0], *map(nightly, MUTATIONS[1:])])
def test_vectors_find_the_size_of_one_call(
    sizes: Verified, tmp_path: Path, name: str, old: str, new: str
) -> None:
    pytest.importorskip("pyopencl")
    made = export_region(sizes, name, tmp_path / "folder", ExportOptions("opencl"))
    source = made.directory / f"{made.interface.name}.cl"
    text = source.read_text("utf-8")
    assert old in text
    source.write_text(text.replace(old, new), "utf-8")
    checked = in_python(made.directory)
    assert checked.returncode != 0, checked.stdout


def test_an_expression_reads_the_same_in_all_languages() -> None:
    area = Compound("*", Place(2), Compound("+", Place(3, True), 1))
    assert value_of(area, {Place(2): 3, Place(3, True): 4}) == 15
    named = mapped(area, lambda place: f"x{place.number}{'_length' * place.is_length}")
    assert expression_text(named) == "x2 * (x3_length + 1)"
    assert expression(expression_text(named), {"x2": 3, "x3_length": 4}) == 15
    assert expression_text(named, lambda name: f"v[{name[1]}]") == "v[2] * (v[3] + 1)"


def test_a_size_that_no_small_argument_gives_is_named(tmp_path: Path) -> None:
    text = """
    (define (f item local tile (to (array i64))) (barrier) (array-set! to item local))
    (define (g k n (tile (array i64)) (to (array i64))) (barrier) (array-set! to k n))
    (define (group at n (to (array i64)))
      (define tile (make-array i64 4))
      (for-each-item (* n 100) (g n tile to)))
    (for-each-item 2 (group 1 (make-array i64 100)))
    """
    verified = verify(ferryvm.compile(text))
    with pytest.raises(FerryError, match="no small arguments give groups of 1 to 64 members"):
        export_region(verified, "main/launch.1", tmp_path / "folder")
