# SPDX-License-Identifier: Apache-2.0
"""Programs with loops that are pipelined, and the plain simulator as the one that runs them."""

from __future__ import annotations

import pytest

from ferryvm.machine.control import ControlBlock
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.machine.read import shipped
from ferryvm_backends.vliw.simulate.interpret import interpret
from ferryvm_backends.vliw.simulate.memory import Memory
from ferryvm_backends.vliw.simulate.metric import RunMetrics

DOT = """
    (define (dot a b)
      (define s 0.0) (define i 0)
      (while (< i (vector-length a))
        (set! s (+ s (* (vector-ref a i) (vector-ref b i))))
        (set! i (+ i 1)))
      s)
    (define a (make-vector f64 16))
    (dot a (make-vector f64 16))
"""
FIR = """
    (define (fir x y n)
      (define i 0)
      (while (< i n)
        (vector-set! y i (+ (* (vector-ref x i) 3) (* (vector-ref x (+ i 1)) 5)))
        (set! i (+ i 1))))
    (define x (make-vector i64 20)) (define y (make-vector i64 20))
    (fir x y 12)
    (vector-ref y 3)
"""
FILTER = """
    (define (filter x y taps n)
      (define i 0)
      (while (< i n)
        (let ((s 0.0) (k 0))
          (while (< k 16)
            (set! s (+ s (* (vector-ref x (+ i k)) (vector-ref taps k))))
            (set! k (+ k 1)))
          (vector-set! y i s))
        (set! i (+ i 1))))
    (define x (make-vector f64 60)) (define y (make-vector f64 40)) (define t (make-vector f64 16))
    (define i 0)
    (while (< i 16) (vector-set! t i (/ 1.0 (f64 (+ i 3)))) (set! i (+ i 1)))
    (set! i 0)
    (while (< i 60) (vector-set! x i (f64 (* i i))) (set! i (+ i 1)))
    (filter x y t 40)
    (vector-ref y 33)
"""
COUNTS = """
    (define v (make-vector i64 24)) (define w (make-vector i64 24)) (define total 0)
    (define (fill n)
      (define i 0) (while (< i n) (vector-set! v i (+ (* i n) 1)) (set! i (+ i 1))))
    (define (sum n)
      (define i 0) (define s 0)
      (while (< i n) (set! s (+ s (vector-ref v i))) (set! i (+ i 1)))
      s)
    (define (shift n)
      (define i 0)
      (while (< i n) (vector-set! v (+ i 2) (+ (vector-ref v i) i)) (set! i (+ i 1))))
    (define (swap n)
      (define a 1) (define b 2) (define i 0)
      (while (< i n) (define c a) (set! a b) (set! b (+ c i)) (set! i (+ i 1)))
      (- a (* b 3)))
    (define (find n)
      (define i 0) (while (!= (vector-ref w i) n) (set! i (+ i 1))) i)
    (define i 0) (while (< i 24) (vector-set! w i i) (set! i (+ i 1)))
    (define n 0)
    (while (< n 21)
      (fill n) (shift n)
      (set! total (+ (* total 31) (+ (sum n) (+ (swap n) (find n)))))
      (set! n (+ n 1)))
    total
"""
TRAP = """
    (define v (make-vector i64 9)) (define s 0) (define i 0)
    (while (< i 50) (set! s (+ s (* i 7))) (vector-set! v i s) (set! i (+ i 1)))
"""
MACHINES = pytest.mark.parametrize("machine", sorted(shipped()))
TEXTS = {"dot": DOT, "fir": FIR, "counts": COUNTS}


class Interpreted:
    """What runs a program, by the plain simulator."""

    def __init__(self, program: Program, is_quick: bool = False) -> None:
        self.program = program

    def run(self, memory: Memory, budget: int, control: ControlBlock | None = None) -> RunMetrics:
        return interpret(self.program, memory, budget)
