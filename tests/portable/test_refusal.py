# SPDX-License-Identifier: Apache-2.0
"""Code that cannot be exported is refused, with the line that does it and what to write instead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ferryvm.errors import FerryError, UnknownNameError
from ferryvm.portable import ExportError, ExportOptions, export_region
from ferryvm.verify import Verified

from ..command import ferry
from .conftest import KERNELS

REFUSED = [
    ("fib", "'fib' calls itself; write the recursion as a loop"),
    ("fresh", "it returns a reference; let the caller pass the array that is to be filled"),
    ("allocates", "it allocates; pass the array as a parameter and fill it"),
    ("shouts", "it calls the host function 'print_f64'; call it before or after"),
    ("rows", "'m' is a reference of type f64[][]; pass numbers and arrays of numbers"),
    ("checked", "it throws an exception; return a number that tells the caller"),
    ("forever", "'forever' never returns; let it end"),
    ("main/launch.4", "its items change static 'calls', each after the other; let each item store"),
    ("main", "'main' is the start function, which halts"),
]


@pytest.mark.parametrize(("name", "reason"), REFUSED)
def test_what_needs_the_machine_is_refused_with_its_line(
    kernels: Verified, tmp_path: Path, name: str, reason: str
) -> None:
    with pytest.raises(ExportError) as caught:
        export_region(kernels, name, tmp_path / "folder")
    message = str(caught.value)
    assert f"cannot be exported: {reason}" in message
    assert "\n" not in message
    position = caught.value.position
    assert position is not None
    if not name.startswith("main"):
        line = KERNELS.read_text("utf-8").splitlines()[position.line - 1]
        assert {"fib": "fib", "shouts": "print!", "rows": "rows"}.get(name, "") in line
    assert not (tmp_path / "folder").exists()


def test_an_unknown_target_is_refused_with_those_that_exist(
    kernels: Verified, tmp_path: Path
) -> None:
    with pytest.raises(UnknownNameError, match="no target 'cc'"):
        export_region(kernels, "axpy", tmp_path / "folder", ExportOptions(target="cc"))


def test_a_folder_that_is_not_empty_is_not_written(kernels: Verified, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FerryError, match="is not empty"):
        export_region(kernels, "axpy", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_is_no_folder(kernels: Verified, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FerryError, match="is a file"):
        export_region(kernels, "axpy", tmp_path / "file")


@pytest.mark.parametrize("name", ["float", "kernel", "class", "hypot", "7up", "a b", ""])
def test_a_name_that_no_function_can_have_is_refused(
    kernels: Verified, tmp_path: Path, name: str
) -> None:
    with pytest.raises(FerryError, match=r"^name '"):
        export_region(kernels, "axpy", tmp_path / "folder", ExportOptions(name=name))


def test_parameters_named_like_keywords_get_other_names(kernels: Verified, tmp_path: Path) -> None:
    made = export_region(kernels, "divide", tmp_path / "folder")
    assert [each.name for each in made.interface.arguments] == ["int_", "b"]


def test_the_command_writes_a_folder_and_says_how_to_prove_it(tmp_path: Path) -> None:
    done = ferry("export", KERNELS, "--region", "steps", "-o", tmp_path / "steps")
    assert done.code == 0, done.err
    assert re.search(r"steps: steps, 60 vectors, \d+ kB; prove it: make check\n$", done.out)
    assert (tmp_path / "steps" / "Makefile").exists()


def test_a_refusal_is_one_line_of_the_command(tmp_path: Path) -> None:
    done = ferry("export", KERNELS, "--region", "fib", "-o", tmp_path / "fib")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "kernels.skiff:85:30: cannot be exported: 'fib' calls itself" in done.err
