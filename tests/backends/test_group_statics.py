# SPDX-License-Identifier: Apache-2.0
"""Statics that items write: others of a group read them behind the next barrier, and items that do not
write them do not store them."""

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


def printed(backend: str, text: str) -> list[bytes]:
    """The words that a program prints on a backend."""
    if backend == "cc":
        pytest.importorskip("ferryvm_cc")
    found: list[bytes] = []
    engine = ferryvm.Engine(backend, output=found.append)
    engine.start(ferryvm.compile(text, "p.skiff")).run()
    return b"".join(found).split()


@pytest.mark.parametrize("backend", ["llvm", nightly("cc"), nightly("opencl"), nightly("vliw")])
def test_statics_that_items_write_are_seen_behind_a_barrier(backend: str) -> None:
    assert printed(backend, TEXT) == [b"15", b"16.5", b"36", b"29"]


SEARCH = """
(define found 7)
(define (mark i (to (array i64)))
  (define k 0) (define n (+ i 27))
  (while (> n 1) (if (= (% n 2) 0) (set! n (/ n 2)) (set! n (+ 1 (* 3 n)))) (set! k (+ k 1)))
  (if (= i 777) (set! found k))
  (array-set! to i k))
(define a (make-array i64 20000))
(define t 0)
(while (< t 8)
  (set! found t)
  (for-each-item 20000 (mark a))
  (if (!= found 20) (print! found))
  (set! t (+ t 1)))
(print! found)
"""


@pytest.mark.parametrize("backend", ["llvm", nightly("cc"), nightly("opencl"), nightly("vliw")])
def test_a_static_that_one_item_writes_has_its_value_behind_the_launch(backend: str) -> None:
    assert printed(backend, SEARCH) == [b"20"]
