# SPDX-License-Identifier: Apache-2.0
"""Functions exported as C are built where no ferryvm is found, and their golden vectors pass."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ferryvm.isa.type import I64
from ferryvm.portable.c.check import check_text
from ferryvm.portable.c.declaration import header_text
from ferryvm.portable.interface import Interface, Result

from ..tier import sample
from .conftest import Folder, run

FUNCTIONS = (
    *("axpy", "steps", "roots", "doubled!", "buckets", "histogram", "narrow", "scaled", "dot"),
    *("divide", "mix", "norm", "shift!", "daxpy", "main/launch.1", "main/launch.2"),
    "main/launch.3",
)
RUNTIME = r"control|frame|stack|heap|objects|header|ferryvm_"
"""Words that only code with a runtime has."""


@pytest.mark.parametrize("name", sample(FUNCTIONS, 1))
def test_an_exported_folder_proves_itself_without_ferryvm(exported: Folder, name: str) -> None:
    folder = exported(name)
    checked = run(folder, "make", "check", "CC=gcc")
    assert checked.returncode == 0, checked.stdout
    entry = re.sub(r"\W+", "_", name).strip("_")
    assert f"{entry}: 60 vectors pass (C)" in checked.stdout
    assert f"{entry}: 60 vectors pass (Python)" in checked.stdout


@pytest.mark.parametrize("name", sample(FUNCTIONS, 1))
def test_sanitizers_find_nothing(exported: Folder, name: str) -> None:
    checked = run(exported(name), "make", "sanitize", "CC=clang")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("level", sample(("-O2", "-Os", "-O3"), 1))
def test_no_compiler_sees_an_access_out_of_bounds_in_a_harness(tmp_path: Path, level: str) -> None:
    """The table of a function without arguments is the one that compilers see through."""
    interface = Interface("f", (), (Result("result", I64),), {})
    (tmp_path / "f.h").write_text(header_text(interface, "a test"), "utf-8")
    (tmp_path / "check.c").write_text(check_text(interface), "utf-8")
    words = "gcc -std=c11 -Wall -Wextra -Wconversion -Werror -c -o /dev/null check.c"
    built = run(tmp_path, *words.split(), level)
    assert built.returncode == 0, built.stdout


@pytest.mark.parametrize("name", sample(FUNCTIONS, 5))
def test_the_text_has_no_parameters_of_a_runtime_and_no_header(exported: Folder, name: str) -> None:
    folder = exported(name)
    (source,) = (path for path in folder.glob("*.c") if path.name != "check.c")
    code = re.sub(r"/\*.*?\*/", "", source.read_text("utf-8"), flags=re.DOTALL)
    assert not re.search(rf"\b({RUNTIME})\w*\b", code)


MUTATIONS = {
    "axpy": [
        ("y[p1] + v26", "y[p1] - v26"),
        ("a * x[p1]", "a + x[p1]"),
        ("p1 + 1ull", "p1 + 2ull"),
        ("(int64_t)p1 < (int64_t)y_length_", "(int64_t)p1 <= (int64_t)y_length_ - 2"),
        ("p0 >= x_length_", "p0 > x_length_"),
        ("| 7 << 8", "| 8 << 8"),
        ("y[p1] = canonical", "y[0] = canonical"),
        ("a * x[p1]", "a * y[p1]"),
        ("canonical_f64(y[p1] + v26)", "canonical_f64(y[p1]) + 0.0"),
    ],
    "steps": [
        ("p0 * 3ull", "p0 * 1ull"),
        ("(p0 * 3ull) + 1ull", "(p0 * 3ull) + 3ull"),
        ("% (int64_t)2ull", "% (int64_t)4ull"),
        ("> (int64_t)1ull", "> (int64_t)2ull"),
        ("(int64_t)p0 > (int64_t)1ull", "p0 > 1ull"),  # does not end
        ("p1 + 1ull", "p1 + p1"),
    ],
    "histogram": [
        ("k1 = 0;", "k1 = 1;"),
        ("(int32_t)0ull", "(int32_t)1ull"),
        ("counts[v9] + 1u", "counts[v9] | 1u"),
        ("v9 >= counts_length_", "v9 > counts_length_"),
        ("HISTOGRAM_INDEX_OUT_OF_BOUNDS | 41", "HISTOGRAM_INDEX_OUT_OF_BOUNDS | 7"),
    ],
    "scaled": [("scale * x", "scale + x"), ("+ 1ull", "+ 2ull")],
}
"""Faults of a source that its vectors find: what stands there, what is written instead."""

PLANTED = [(name, *change) for name, changes in MUTATIONS.items() for change in changes]


@pytest.mark.parametrize(("name", "old", "new"), sample(PLANTED, 2))
def test_vectors_find_a_planted_mutation(
    exported: Folder, tmp_path: Path, name: str, old: str, new: str
) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(exported(name), folder)
    source = folder / f"{name}.c"
    text = source.read_text("utf-8")
    assert old in text
    at = text.rindex(old)
    source.write_text(text[:at] + new + text[at + len(old) :], "utf-8")
    words = "gcc -std=c11 -w -O0 -ffp-contract=off -fsanitize=address -o check-program check.c"
    built = run(folder, *words.split(), source.name, "-lm")
    assert built.returncode == 0, built.stdout
    checked = run(folder, "./check-program", "vectors.txt")
    assert checked.returncode == 1, checked.stdout


def test_python_ends_a_call_that_does_not_end(exported: Folder, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(exported("steps"), folder)
    text = (folder / "steps.c").read_text("utf-8")
    assert "(int64_t)p0 > (int64_t)1ull" in text
    changed = text.replace("(int64_t)p0 > (int64_t)1ull", "p0 != 1ull")
    (folder / "steps.c").write_text(changed, "utf-8")
    assert run(folder, "make", "all", "CC=gcc").returncode == 0
    checked = run(folder, "env", "CHECK_SECONDS=0.5", "python3", "check.py")
    assert checked.returncode == 1, checked.stdout
    assert re.search(r"^vector \d+: does not end$", checked.stdout, re.MULTILINE), checked.stdout
