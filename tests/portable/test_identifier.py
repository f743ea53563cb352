# SPDX-License-Identifier: Apache-2.0
"""Names of exported arguments and functions hide no function that the printed text calls."""

from __future__ import annotations

import math
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import ferryvm
from ferryvm.errors import FerryError
from ferryvm.portable import ExportOptions, export_region
from ferryvm.portable.identifier import HELPERS, KERNEL_WORDS, entry_name, identifier, identifiers
from ferryvm.verify import verify

from ..tier import sample
from .conftest import run
from .proof import prove

HEADERS = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg
stdbool stddef stdint stdio stdlib stdnoreturn string threads time uchar wchar wctype
"""
INCLUDES = "".join(f"#include <{name}.h>\n" for name in HEADERS.split())


def roots(unlikely: Any, f64_of_bits: Any, sqrt: Any, y: Any) -> Any:
    """A function whose arguments have names of helpers, and of a function of C's library."""
    total = 0.0
    for i in range(len(y)):
        total += math.sqrt(y[i]) * unlikely + f64_of_bits // sqrt
    return total


def test_a_name_of_a_helper_is_changed() -> None:
    assert {"unlikely", "sqrt_f64", "load_8"} <= HELPERS
    assert not {identifier(name) for name in HELPERS} & HELPERS
    assert identifiers(["unlikely", "unlikely_"]) == ["unlikely_", "unlikely__2"]


def test_names_made_of_that_of_the_function_are_changed() -> None:
    names = ["f", "f_item", "F_H", "F_INDEX_OUT_OF_BOUNDS", "f_items"]
    assert identifiers(names, "f") == [*(f"{name}_2" for name in names[:4]), "f_items"]


def printed_by(*words: str) -> str:
    return subprocess.run(
        words, input=INCLUDES, capture_output=True, text=True, check=True, timeout=30
    ).stdout


@pytest.mark.parametrize("standard", ["c11", "gnu11"])
def test_a_macro_of_a_header_of_c_is_changed(standard: str) -> None:
    if standard == "c11":
        text = printed_by("gcc", "-std=c11", "-dM", "-E", "-")
    else:  # with extensions, headers of POSIX define more: those that exported text includes
        words = (
            "gcc",
            "-include",
            "stdint.h",
            "-include",
            "stdbool.h",
            "-dM",
            "-E",
            "-xc",
            "/dev/null",
        )
        text = printed_by(*words)
    macros = re.findall(r"^#define ([A-Za-z]\w*) ", text, re.MULTILINE)
    assert "INT32_MAX" in macros
    assert ("linux" in macros) == (standard == "gnu11")
    assert [name for name in macros if identifier(name) == name] == []


def test_a_function_that_a_header_declares_is_refused(tmp_path: Path) -> None:
    found = tmp_path / "functions"
    options = ("-std=c11", "-D_POSIX_C_SOURCE=200809L", "-fsyntax-only", "-include", "unistd.h")
    printed_by("gcc", *options, "-aux-info", str(found), "-x", "c", "-")
    text = found.read_text("utf-8")
    names = {name for name in re.findall(r"(\w+) \(", text) if not name.startswith("_")}
    assert {"select", "toupper", "usleep", "fork"} & names
    allowed = [name for name in names if entry_name(None, name) == name]
    assert allowed == []


@pytest.mark.parametrize(
    ("name", "target", "meaning"),
    [
        ("next", "c", "a name of check.c"),
        ("v", "llvm", "a name of check.c"),
        ("memory", "wasm", "the exported memory"),
        ("UINT8_MAX", "c", "a macro"),
        ("linux", "c", "a keyword"),
        ("exp_f64", "c", "a function that exported text calls"),
        ("native_sin", "opencl", "a built-in function"),
    ],
)
def test_a_name_of_a_function_with_another_meaning_is_refused(
    name: str, target: str, meaning: str
) -> None:
    with pytest.raises(FerryError, match=rf"^name '{name}': is {meaning}.*; choose another one$"):
        entry_name(name, "kernel", target)
    assert entry_name(None, name, target) == f"{name}_kernel"


DANGEROUS = (
    *("INT32_MAX", "UINT8_MAX", "NULL", "errno", "isnan", "M_PI", "FOR_PROCESSORS", "UNROLLED"),
    *("linux", "unix", "typeof", "i386", "asm", "wchar_t", "static_cast", "g_once", "G_H", "a_"),
    *("G_INDEX_OUT_OF_BOUNDS", "CLK_LOCAL_MEM_FENCE", "zero", "entry", "memory", "k", "failed"),
    *("fits", "I", "NAN", "uint4", "fabs", "status_", *sorted(KERNEL_WORDS - {"barrier"})),
)


@pytest.mark.parametrize("target", sample(("c", "opencl", "llvm", "wasm"), 1))
def test_arguments_may_have_names_that_mean_something_else(target: str, tmp_path: Path) -> None:
    given = " ".join(f"({name} i64)" for name in DANGEROUS)
    total = "(+ (array-ref a 0) (f64 (+ " + " ".join(DANGEROUS[:2]) + ")))"
    for name in DANGEROUS[2:]:
        total = f"(+ {total} (sqrt (f64 {name})))"
    call = "(g (make-array f64 1)" + " 1" * len(DANGEROUS) + ")"
    program = verify(
        ferryvm.compile(f"(define (g (a (array f64)) {given}) {total})(print! {call})")
    )
    folder = tmp_path / "folder"
    export_region(program, "g", folder, ExportOptions(target, vectors=5))
    prove(folder, target)
    if target == "c":
        for words in (["gcc", "-std=gnu17"], ["g++", "-x", "c++", "-include", "cmath"]):
            built = run(folder, *words, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "g.h")
            assert built.returncode == 0, built.stdout


def test_a_name_of_a_function_of_the_instruction_table_is_changed() -> None:
    assert identifier("sin_f64") == "sin_f64_"


@pytest.mark.parametrize("target", ["c", "opencl"])
def test_arguments_of_an_export_hide_no_helper(target: str, tmp_path: Path) -> None:
    made = ferryvm.export(roots, (float, float, float, "float64[:]"), tmp_path / "x", target=target)
    names = [argument.name for argument in made.interface.arguments]
    assert names == ["unlikely_", "f64_of_bits_", "sqrt", "y"]


def test_a_function_with_the_name_of_a_helper_is_refused() -> None:
    with pytest.raises(FerryError, match="is a function that exported text calls; choose another"):
        entry_name("fenced", "kernel")
