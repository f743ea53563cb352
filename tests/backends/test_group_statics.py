# SPDX-License-Identifier: Apache-2.0
"""A static that an item of a group writes is what others read behind the next barrier."""

from __future__ import annotations

import pytest

import ferryvm

from ..tier import nightly

TEXT = """
(define s 5)
(define u 1.5)
(define (member l g tile out)
  (array-set! tile l (+ l s))
  (barrier)
  (if (= l 3) (set! s (+ (array-ref tile 2) g)))
  (barrier)
  (array-set! out l (+ (array-ref tile (- 7 l)) s))
  (if (= l 3) (set! u (+ u (f64 l))))
  (barrier)
  (if (> u 3.0) (array-set! out l (+ 1 (array-ref out l)))))
(define (group g out) (for-each-item 8 (member g (make-array i64 8) out)))
(define out (make-array i64 8))
(define i 0)
(while (< i 5) (for-each-item 1 (group out)) (set! i (+ i 1)))
(print! s u (array-ref out 0) (array-ref out 7))
"""


@pytest.mark.parametrize("backend", ["llvm", nightly("cc"), nightly("opencl"), nightly("vliw")])
def test_statics_that_items_write_are_seen_behind_a_barrier(backend: str) -> None:
    if backend == "cc":
        pytest.importorskip("ferryvm_cc")
    printed: list[bytes] = []
    engine = ferryvm.Engine(backend, output=printed.append)
    engine.start(ferryvm.compile(TEXT, "p.skiff")).run()
    assert b"".join(printed).split() == [b"15", b"16.5", b"36", b"29"]
