# SPDX-License-Identifier: Apache-2.0
"""Kernels with barriers are exported: as work-groups in OpenCL C, as loops over members
elsewhere."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

import ferryvm
from ferryvm.errors import FerryError
from ferryvm.portable import ExportError, ExportOptions, export_region
from ferryvm.portable.harness.golden import read_vectors
from ferryvm.verify import Verified, verify

from ..tier import nightly
from .conftest import run
from .opencl_host import in_python
from .proof import TARGETS, prove

GROUPS = Path(__file__).with_name("groups.skiff")

KERNELS = (
    *("reverse!", "sums!", "total!", "rotate!", "histogram!", "smooth!", "steps!"),
    *("main/launch.1", "main/launch.2"),
)
SIZES = {
    "reverse!": 64,
    "rotate!": 8,
    "sums!": 16,
    "histogram!": 16,
    "smooth!": 8,
    "steps!": 4,
    "total!": 8,
}
"""The constant sizes of groups in these tests: those of the program."""
ROTATED = [("reverse!", "c"), ("rotate!", "wasm")]
"""In the default tier; test_program.py and test_llvm.py have the other targets there."""
OTHERS = [(name, target) for name in KERNELS for target in TARGETS if (name, target) not in ROTATED]


@pytest.fixture(scope="session")
def groups() -> Verified:
    return verify(ferryvm.read(GROUPS))


@pytest.mark.parametrize(("name", "target"), [*ROTATED, *map(nightly, OTHERS)])
def test_a_kernel_proves_itself(groups: Verified, tmp_path: Path, name: str, target: str) -> None:
    options = ExportOptions(target, group=SIZES.get(name))
    made = export_region(groups, name, tmp_path / "folder", options)
    prove(made.directory, target)
    assert made.bytes <= 200_000
    vectors = [*read_vectors(made.directory / "vectors.txt", made.interface.name)]
    assert 2 * sum(each.status == 0 for each in vectors) >= len(vectors) - 1 >= 7


@pytest.mark.nightly
@pytest.mark.parametrize("name", KERNELS)
def test_sanitizers_find_nothing_in_loops_over_members(
    groups: Verified, tmp_path: Path, name: str
) -> None:
    export_region(groups, name, tmp_path / "folder")
    checked = run(tmp_path / "folder", "make", "-s", "sanitize", "CC=clang")
    assert checked.returncode == 0, checked.stdout


def test_a_member_that_has_failed_updates_nothing(groups: Verified, tmp_path: Path) -> None:
    export_region(groups, "histogram!", tmp_path / "folder", ExportOptions("opencl"))
    lines = (tmp_path / "folder" / "histogram.cl").read_text("utf-8").splitlines()
    updates = [n for n, line in enumerate(lines) if line.lstrip().startswith("(void)")]
    assert len(updates) == 2
    assert [lines[n - 1].strip() for n in updates] == ["if (!failed) {"] * 2


def test_the_manifest_has_the_geometry_of_the_launch(groups: Verified, tmp_path: Path) -> None:
    made = export_region(groups, "main/launch.1", tmp_path / "folder", ExportOptions("opencl"))
    manifest = json.loads((made.directory / "manifest.json").read_text("utf-8"))
    schema = (resources.files("ferryvm.portable") / "manifest.schema.json").read_text("utf-8")
    jsonschema.validate(manifest, json.loads(schema))
    assert manifest["launch"] == {
        "dimensions": 2,
        "items": ["4 * groups", 4],
        "group": [4, 4],
    }
    text = (made.directory / f"{made.interface.name}.cl").read_text("utf-8")
    assert "reqd_work_group_size(4, 4, 1)" in text
    assert "__local double g0[16]" in text


def test_the_size_of_groups_can_be_chosen(groups: Verified, tmp_path: Path) -> None:
    options = ExportOptions("opencl", group=4, vectors=5)
    made = export_region(groups, "reverse!", tmp_path / "folder", options)
    assert "g0[4]" in (made.directory / "reverse.cl").read_text("utf-8")


@ferryvm.kernel
def lengthy(out, x):
    i, total = ferryvm.item(), 0.0
    for k in range(300_000):
        total += x[i] * k
    ferryvm.barrier()
    out[i] = total


@pytest.mark.nightly
def test_a_kernel_of_which_no_group_ends_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no call of lengthy ended within 800000 instructions"):
        ferryvm.export(lengthy, ("float64[:]", "float64[:]"), tmp_path / "folder", group=4)


REFUSED = [
    ("parted", "some members may come to the barrier at .*:33 without others", "(barrier)"),
    ("shouting", "it calls the host function 'print_i64'", "print! local"),
    ("making", "the members of a group make objects", "make-array i64 item"),
    ("waiting", "'waiting' waits for other items; launch it in groups", "(barrier)"),
    ("launching", "it launches items that wait for each other", "(barrier)"),
]


@pytest.mark.parametrize(("name", "reason", "code"), REFUSED)
def test_other_kernels_are_refused_with_the_line(
    groups: Verified, tmp_path: Path, name: str, reason: str, code: str
) -> None:
    with pytest.raises(ExportError) as caught:
        export_region(groups, name, tmp_path / "folder")
    assert re.search(reason, str(caught.value))
    assert "\n" not in str(caught.value)
    assert caught.value.position is not None
    assert code in GROUPS.read_text("utf-8").splitlines()[caught.value.position.line - 1]


def test_other_regions_have_no_size_of_groups(groups: Verified, tmp_path: Path) -> None:
    with pytest.raises(FerryError, match="launches no groups whose size can be chosen"):
        export_region(groups, "launching", tmp_path / "folder", ExportOptions(group=4))


MUTATIONS = {
    "reverse!": [
        (r"group_barrier\(CLK_LOCAL_MEM_FENCE\);", ""),  # dropped barrier
        (r"g0\[v\d+\] = ", "g0[0] = "),  # wrong local index
        (r"63ul - ", "62ul - "),
        (r"member = get_local_id\(0\)", "member = get_local_id(0) / 2"),
        (r"group_ \* 64ul", "group_ * 32ul"),
    ],
    "sums!": [
        (r"group_barrier\(CLK_LOCAL_MEM_FENCE\);", ""),
        (r"p0 = 8ul", "p0 = 4ul"),
    ],
    "rotate!": [
        (r"(?s)(group_barrier.*?)group_barrier\(CLK_LOCAL_MEM_FENCE\);", r"\1"),  # the second one
        (r"% \(long\)8ul", "% (long)7ul"),
    ],
    "histogram!": [
        (r"\bg0\[k0\] = 0;", "g0[k0] = 1;"),
        (r"(group_add_4\(\(.*), 1ul\)", r"\1, 2ul)"),
    ],
    "smooth!": [
        (r"&& !failed\) \{\s+failed = true;", ") {"),
        (r"\(uint\)\(failed >> 32\) == first_failed", "true"),
    ],
}
"""Faults of kernels that their vectors find: what stands there, what is written instead."""

PLANTED = [(name, *change) for name, changes in MUTATIONS.items() for change in changes]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "old", "new"), PLANTED)
def test_vectors_find_a_planted_mutation(
    groups: Verified, tmp_path: Path, name: str, old: str, new: str
) -> None:
    pytest.importorskip("pyopencl")
    options = ExportOptions("opencl", group=SIZES.get(name))
    made = export_region(groups, name, tmp_path / "folder", options)
    source = made.directory / f"{made.interface.name}.cl"
    text, count = re.subn(old, new, source.read_text("utf-8"))
    assert count
    source.write_text(text, "utf-8")
    checked = in_python(made.directory)
    assert checked.returncode != 0, checked.stdout
    assert "vector " in checked.stdout or checked.returncode < 0  # the driver has crashed


IN_LOOPS = [
    ("reverse!", r"63ull - ", "62ull - "),
    ("rotate!", r"(c\d)\[\w+\] = ", r"\1[0] = "),  # context of another member
    ("sums!", r"g0\[p\d+\]", "g0[0]"),
    ("histogram!", r"k\d+ < 12ull", "false"),  # counts are not made zero
    ("main/launch.2", r"< \(int64_t\)8ull", "< (int64_t)7ull"),
]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "old", "new"), IN_LOOPS)
def test_vectors_find_a_mutation_of_loops_over_members(
    groups: Verified, tmp_path: Path, name: str, old: str, new: str
) -> None:
    options = ExportOptions(group=SIZES.get(name))
    made = export_region(groups, name, tmp_path / "folder", options)
    source = made.directory / f"{made.interface.name}.c"
    text, count = re.subn(old, new, source.read_text("utf-8"))
    assert count
    source.write_text(text, "utf-8")
    words = "gcc -std=c11 -w -O0 -ffp-contract=off -o check-program check.c"
    built = run(made.directory, *words.split(), source.name, "-lm")
    assert built.returncode == 0, built.stdout
    checked = run(made.directory, "./check-program")
    assert checked.returncode == 1, checked.stdout
