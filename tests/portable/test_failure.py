# SPDX-License-Identifier: Apache-2.0
"""Code behind checks that always fail is not exported: compilers warn of what it would do."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import ferryvm
from ferryvm.portable import ExportOptions, export_region
from ferryvm.verify import verify

from ..tier import sample
from .conftest import run
from .proof import prove

FAILING = {
    "division": "(array-set! x 0 (/ k 0)) (array-ref x 1)",
    "remainder": "(if (> k 1) (% 7 (- k k)) (array-ref x 0))",
    "overflow": "(if (> k 1) (/ -9223372036854775808 -1) k)",
    "conversion": "(if (> k 1) (i64 1e300) k)",
    "index": "(if (> k 1) (array-ref x 1152921504606846976) (array-ref x 0))",
    "negative": "(array-set! x -1 k) (array-ref x 0)",
    "store": "(if (> k 1) (array-set! x 4611686018427387904 k) (set! k 3)) k",
    "loop": "(while (> k 0) (set! k (- k (/ k 0)))) k",
    "copy": "(if (> k 1) (array-copy! x 0 x 9223372036854775807) (set! k 3)) k",
    "copy past the end": "(if (> k 1) (array-copy! x 9223372036854775807 x 0) (set! k 3)) k",
}


def folder(directory: Path, body: str, target: str, level: int = 2) -> Path:
    text = f"(define (g (x (array i64)) (k i64)) {body})\n(print! (g (make-array i64 1) 1))"
    program = verify(ferryvm.compile(text))
    export_region(program, "g", directory, ExportOptions(target, vectors=12, optimize=level))
    return directory


@pytest.mark.parametrize("name", sample(FAILING, 2))
def test_c_behind_a_check_that_always_fails_gives_no_warning(name: str, tmp_path: Path) -> None:
    for level in (0, 2):
        made = folder(tmp_path / f"{level}", FAILING[name], "c", level)
        words = "-std=c11 -Wall -Wextra -Wconversion -Werror -O1 -o check-program check.c g.c -lm"
        for compiler in ("gcc", "clang"):
            built = run(made, compiler, *words.split())
            assert built.returncode == 0, built.stdout
            checked = run(made, "./check-program")
            assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("target", sample(("opencl", "llvm", "wasm"), 1))
def test_code_that_always_fails_is_proved(target: str, tmp_path: Path) -> None:
    prove(folder(tmp_path / "folder", FAILING["division"], target), target)


def test_a_check_of_the_longest_array_is_made(tmp_path: Path) -> None:
    at = (1 << 60) - 2  # the index of the last element of the largest array of i64
    texts = [
        (folder(tmp_path / f"{index}", f"(array-ref x {index})", "c") / "g.c").read_text("utf-8")
        for index in (at, at + 1, at + 2)
    ]
    assert [len(re.findall(r"x\[", text)) for text in texts] == [1, 0, 0]


def test_an_error_that_always_comes_is_in_the_manifest(tmp_path: Path) -> None:
    made = folder(tmp_path / "folder", FAILING["division"], "c")
    errors = json.loads((made / "manifest.json").read_text("utf-8"))["errors"]
    assert {"number", "name", "message", "lines"} == errors[0].keys()
    assert "INTEGER_DIVIDE_BY_ZERO" in {each["name"] for each in errors}
