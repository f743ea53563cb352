# SPDX-License-Identifier: Apache-2.0
"""Values that are used once stand in the expressions of exported C where nothing changes thereby."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

import ferryvm
from ferryvm.portable import ExportOptions, export_region
from ferryvm.portable.c.inlining import operand, tidy
from ferryvm.portable.c.processor import CLONED
from ferryvm.verify import verify

PROGRAM = """
(define (fused (a f64) (x (array f64)) (y (array f64)))
  (define i 0)
  (while (< i (array-length y))
    (array-set! y i (+ (array-ref y i) (* a (array-ref x i))))
    (set! i (+ i 1))))
(define (exchanged (x (array i64)) (i i64) (j i64))
  (let ((first (array-ref x i)))
    (array-set! x i (array-ref x j))
    (array-set! x j first)))
(define (turns (n i64) (a i64) (b i64))
  (while (> n 0)
    (let ((old a))
      (set! a (+ b 1))
      (set! b (* old 3))
      (set! n (- n 1))))
  (- a b))
(define (widened (x (array i8)) (y (array i64)))
  (array-set! y 0 (* 300 (+ (array-ref x 0) 7))))
(define (product (a (array f64)) (b (array f64)) (c (array f64)) (n i64))
  (define i 0)
  (while (< i n)
    (define j 0)
    (while (< j n)
      (define sum 0.0)
      (define k 0)
      (while (< k n)
        (set! sum (+ sum (* (array-ref a (+ (* i n) k)) (array-ref b (+ (* k n) j)))))
        (set! k (+ k 1)))
      (array-set! c (+ (* i n) j) sum)
      (set! j (+ j 1)))
    (set! i (+ i 1))))
(define (collatz (n i64))
  (define k 0)
  (while (> n 1)
    (if (= (% n 2) 0) (set! n (/ n 2)) (set! n (+ 1 (* 3 n))))
    (set! k (+ k 1)))
  k)
(define one (make-array f64 1))
(define two (make-array i64 2))
(fused 1.0 one one)
(exchanged two 0 1)
(print! (turns 3 1 2))
(widened (make-array i8 1) two)
(product one one one 1)
(print! (collatz 7))
"""


def _exported(tmp_path: Path, name: str) -> tuple[Path, str]:
    folder = tmp_path / name
    export_region(verify(ferryvm.compile(PROGRAM)), name, folder, ExportOptions(vectors=20))
    return folder, (folder / f"{name}.c").read_text("utf-8")


def _proved(folder: Path, *words: str) -> None:
    done = subprocess.run(
        ["make", "check", "CC=gcc", *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_product_that_is_added_has_a_name(tmp_path: Path) -> None:
    folder, text = _exported(tmp_path, "fused")
    assert "y[p1] = canonical_f64(y[p1] + v" in text
    assert " = a * x[p1];" in text
    # The second version for newer processors fuses nothing either, without the manifest's flags.
    _proved(folder, "FLAGS=", "CFLAGS=-O2")
    assert CLONED in text


def test_a_load_stays_in_front_of_a_store(tmp_path: Path) -> None:
    folder, text = _exported(tmp_path, "exchanged")
    assert "x[i_] = (int64_t)(uint64_t)x[j_];" in text
    assert " = (uint64_t)x[i_];" in text
    _proved(folder, "CFLAGS=-O1")


@pytest.mark.parametrize("name", ["turns", "widened"])
def test_variables_of_loops_and_signed_elements_have_their_values(
    tmp_path: Path, name: str
) -> None:
    folder, _ = _exported(tmp_path, name)
    _proved(folder, "CFLAGS=-O1")


@pytest.mark.parametrize("level", ["-O2", "-O3"])
def test_gcc_selects_where_a_branch_would_depend_on_data(tmp_path: Path, level: str) -> None:
    folder, text = _exported(tmp_path, "collatz")
    assert text.count("else") == text.count("#else")
    words = f"gcc -std=c11 {level} -S -o - collatz.c"
    done = subprocess.run(words.split(), cwd=folder, capture_output=True, text=True, check=True)
    if platform.machine() == "x86_64":
        assert "cmov" in done.stdout
    _proved(folder, f"CFLAGS={level}")


def test_interleaved_iterations_check_once(tmp_path: Path) -> None:
    _, text = _exported(tmp_path, "product")
    assert text.count("> (int64_t)0x80000000ull") == 1
    assert CLONED not in text
    assert "-fno-tree-vectorize" in text


def test_parentheses_enclose_operands_only() -> None:
    assert operand("a + b") == "(a + b)"
    assert operand("f(a, b)") == "f(a, b)"
    assert operand("(int64_t)a") == "(int64_t)a"
    assert tidy("y[(i + 1)] = (f((a + b), (c * d)));") == "y[i + 1] = f(a + b, c * d);"
    assert tidy("p = (a + b) * (c + d);") == "p = (a + b) * (c + d);"
    assert tidy("if (!((int64_t)a < b)) {") == "if (!((int64_t)a < b)) {"
