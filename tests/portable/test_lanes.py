# SPDX-License-Identifier: Apache-2.0
"""Sums side by side are vectors in exported C, with the bits of each sum."""

from __future__ import annotations

from pathlib import Path

import pytest

import ferryvm
from ferryvm.portable import export_region
from ferryvm.verify import verify

from ..tier import sample
from .conftest import run

PROGRAM = """
(define (product (a (array {t})) (b (array {t})) (c (array {t})) (n i64))
  (define i 0)
  (while (< i n)
    (define j 0)
    (while (< j n)
      (define sum {zero})
      (define k 0)
      (while (< k n)
        (set! sum {next})
        (set! k (+ k 1)))
      (array-set! c (+ (* i n) j) sum)
      (set! j (+ j 1)))
    (set! i (+ i 1))))
(define one (make-array {t} 1))
(product one one one 1)
"""
X, Y = "(array-ref a (+ (* i n) k))", "(array-ref b (+ (* k n) j))"
F64 = {"t": "f64", "zero": "0.0"}
F32 = {"t": "f32", "zero": "0.0f32"}


def _export(tmp_path: Path, **parts: str) -> tuple[Path, str]:
    folder = tmp_path / "folder"
    export_region(verify(ferryvm.compile(PROGRAM.format(**parts))), "product", folder)
    return folder, (folder / "product.c").read_text("utf-8")


SUMS = [
    (f"(- (* {X} {Y}) sum)", F64),
    (f"(+ sum (* {X} {Y}))", F32),
    (f"(- sum (* {X} (- {Y} 1.5)))", F64),
    (f"(+ sum {Y})", F64),
]
COMPILED = ["-O2", "-O0", "-O3 -march=native", "-O3 -mavx"]


@pytest.mark.parametrize(
    ("number", "flags"), sample([(n, f) for n in range(len(SUMS)) for f in COMPILED], 1)
)
def test_sums_in_vectors_have_the_bits_of_each(tmp_path: Path, number: int, flags: str) -> None:
    next_, kind = SUMS[number]
    folder, text = _export(tmp_path, next=next_, **kind)
    assert f"lanes_{kind['t']} q1[8 / WIDE_{kind['t'].upper()}]" in text
    checked = run(folder, "make", "check", "CC=gcc", f"CFLAGS={flags}")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    "next_", [f"(+ (* sum sum) (* {X} {Y}))", f"(+ sum (* {X} (array-ref b (+ (* j n) k))))"]
)
def test_sums_that_are_read_or_have_elements_apart_are_no_vectors(
    tmp_path: Path, next_: str
) -> None:
    _, text = _export(tmp_path, next=next_, **F64)
    assert "lanes_" not in text
