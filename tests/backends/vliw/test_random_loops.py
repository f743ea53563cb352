# SPDX-License-Identifier: Apache-2.0
"""Random loops with short loops in them, over windows of arrays, end as those of the reference
do."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.machine.memory import Limits
from ferryvm.policy import Policy
from ferryvm.policy.model import build_ours
from ferryvm.program import Program
from ferryvm_backends.vliw.machine.read import shipped

from ...tier import sample
from ..ending import ended

SEED = int(os.environ.get("FERRYVM_FUZZ_SEED", "20261123"))  # campaigns take others
PROGRAMS = int(os.environ.get("FERRYVM_FUZZ_PROGRAMS", "5"))
FEW = 1
"""Of them, in the default tier."""

LIMITS = Limits(stack=8 << 10, heap=64 << 10, first_heap=1 << 14)

TYPES = ("i64", "i64", "f64", "f32")


class Windows:
    """The text of a program whose loop goes over windows of two arrays, which may be one."""

    def __init__(self, number: int) -> None:
        self.chance = random.Random(f"{SEED} {number}")
        self.type = self.pick(TYPES)
        self.zero = {"i64": "0", "f64": "0.0", "f32": "0f32"}[self.type]

    def program(self) -> Program:
        """The program; its function is called twice."""
        n, outer = int(self.pick("0123579")), self.pick((1, 1, 2, 3))
        n = self.pick((n, n + 8, n + 20))
        room = self.pick((90, 90, 90, n + 4, 8))
        loops = " ".join(self.loop() for _ in range(self.pick((1, 1, 2))))
        return ferryvm.compile(f"""
(define (work a b c n m)
  (define i 0) (define j 0) (define s {self.zero})
  (while (< j m) {loops} (set! j (+ j 1)))
  s)
(define a (make-array {self.type} {room}))
(define b (make-array {self.type} 90))
(define c (make-array {self.type} {self.pick((90, 90, 12))}))
(define k 0)
(while (< k {room}) (array-set! a k ({self.type} (- (* k 7) 30))) (set! k (+ k 1)))
(set! k 0)
(while (< k 90) (array-set! b k ({self.type} (+ (* k k) 1))) (set! k (+ k 1)))
(work a b {self.pick(("c", "c", "c", "a", "b"))} {n} {outer})
(work a {self.pick("ab")} c {n} {outer})""")

    def pick(self, choices: Sequence[str | int]) -> str | int:
        """One of them."""
        return self.chance.choice(choices)

    def loop(self) -> str:
        """A loop around a short one that sums, or around two."""
        start, step = self.pick((0, 0, 0, 1, 3)), self.pick((1, 1, 1, 2))
        sums = " ".join(self.sum() for _ in range(self.pick((1, 1, 2))))
        return f"(set! i {start}) (while (< i n) {sums} (set! i (+ i {step})))"

    def sum(self) -> str:
        """A sum of products of elements, and what becomes of it."""
        taps, by = self.pick((2, 3, 4, 7, 8, 12)), self.pick((1, 1, 1, 2, 3))
        start = self.pick((0, 0, 0, 1))
        terms = f"(* {self.element()} {self.element()})" if self.pick((0, 1)) else self.element()
        store = f"(array-set! c {self.pick(('i', 'i', '(+ i 1)', '(* i 2)'))} t)"
        rest = self.pick((store, store, "(set! s (+ s t))", f"{store} (set! s (- s t))"))
        return (
            f"(let ((t {self.zero}) (k {start})) (while (< k {taps})"
            f" (set! t (+ t {terms})) (set! k (+ k {by}))) {rest})"
        )

    def element(self) -> str:
        """An element of an array."""
        index = self.pick(
            (
                "k",
                "(+ i k)",
                "(+ i k)",
                "(+ i (* k 2))",
                "(+ (* i 2) k)",
                "(+ j k)",
                "(- (+ i 8) k)",
            )
        )
        return f"(array-ref {self.pick('aabc')} {index})"


def policy(machine: str) -> Policy:
    """The whole program as one region of a machine."""
    backend = {"name": "vliw", "device": machine, "optimize": 3}
    backend |= {"background": False, "required": True}
    rule = {"name": "all", "backends": [backend]}
    return build_ours({"whole_program": True, "profile": {"enabled": False}, "rule": [rule]})


@pytest.mark.nightly
@pytest.mark.parametrize("programs", sample([FEW, PROGRAMS], 1))
@pytest.mark.parametrize("machine", sample(sorted(shipped()), 1))
def test_random_windows_end_alike(machine: str, programs: int) -> None:
    paths = set()
    for number in range(programs):
        program = Windows(number).program()
        expected = ended(Engine("reference", limits=LIMITS), program)
        found = ended(Engine(policy=policy(machine), limits=LIMITS), program)
        assert found == expected, (SEED, number)
        paths.add(isinstance(expected[0], str))
    assert False in paths
