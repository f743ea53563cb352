# SPDX-License-Identifier: Apache-2.0
"""Random loops over vectors, run in strips of a few iterations, end as those of the reference
do."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.ir.lift import lift
from ferryvm.ir.passes import optimise
from ferryvm.program import Program
from ferryvm.region.region import region
from ferryvm.verify import verify
from ferryvm_backends.llvm import poll
from ferryvm_backends.llvm.strip_mining import strip_mined_loops

from ...tier import sample
from ..ending import ended
from .compiled import COMPILED

SEED = int(os.environ.get("FERRYVM_FUZZ_SEED", "20261122"))  # campaigns take others
PROGRAMS = 24

NAMES = ("i", "s", "t", "n")
INDICES = ("i", "i", "0", "1", "(- n 1)", "(+ i 1)", "(& s 7)")


class Loops:
    """The text of a program with some loops over two vectors, which may be one."""

    def __init__(self, number: int) -> None:
        self.chance = random.Random(f"{SEED} {number}")
        self.indices: tuple[str, ...] = INDICES

    def program(self) -> Program:
        """The program; its function is called for three bounds."""
        n = self.pick((0, 1, 3, 4, 5, 7, 12, 13, 40))
        loops = " ".join(self.loop() for _ in range(self.pick((1, 2))))
        return ferryvm.compile(f"""
(define g 0)
(define (poke v i x) (array-set! v i x) (+ x i))
(define (work a b n m k)
  (define i 0) (define s 1) (define t 0)
  {loops}
  (+ s (* 31 t)))
(define a (make-array i64 {self.pick((n + 2, n + 2, n + 2, max(n, 1), 8))}))
{self.pick(("", "(define between (make-array i64 3))"))}
(define b (make-array i64 {self.pick((n + 2, n + 2, 9))}))
(define j 0) (define z 0)
(while (< j {n}) (array-set! b j (- (* j 7) 9)) (set! j (+ j 1)))
(set! j 0)
(while (< j 3) (set! z (+ z (work a {self.pick("ab")} {n} (- {n} j) 1))) (set! j (+ j 1)))
(+ z g)""")

    def pick(self, choices: Sequence[str | int]) -> str | int:
        """One of them."""
        return self.chance.choice(choices)

    def loop(self) -> str:
        """A loop, mostly one that counts up by one."""
        if self.pick(range(12)) == 0:
            return self.wrapping()
        # A few indices for all accesses: most of what is loaded has been stored into, or will be.
        self.indices = ("i", *(str(self.pick(INDICES)) for _ in range(2)))
        condition = self.pick(("(< i n)",) * 6 + ("(< i m)", "(>= n i)", "(< i (+ n 2))"))
        before = " ".join(self.statement() for _ in range(self.pick((0, 0, 0, 1, 2))))
        head = f"(begin {before} {condition})" if before else condition
        body = " ".join(self.statement() for _ in range(self.pick((1, 2, 3))))
        start, step = (
            self.pick(("0", "1", "-2", "(& s 7)")),
            self.pick(("1", "1", "1", "1", "2", "k")),
        )
        return f"(set! i {start}) (while {head} {body} (set! i (+ i {step})))"

    def wrapping(self) -> str:
        """A loop whose index wraps: it is in bounds for the first and the last value of the count,
        if that is above zero, and not between them."""
        scale = self.pick((4, 8, 64))
        start = f"(<< -1 {66 - int(scale).bit_length() - 1})"
        load = f"(array-ref {self.pick('ab')} (* i {scale}))"
        return f"(set! i {start}) (while (< i 1) (set! s (+ s {load})) (set! i (+ i 1)))"

    def statement(self) -> str:
        """Something that changes a variable or a vector."""
        match self.pick(
            (
                "set",
                "set",
                "add",
                "add",
                "store",
                "store",
                "store",
                "if",
                "stored if",
                "static",
                "poke",
            )
        ):
            case "set":
                return f"(set! s {self.value()})"
            case "add":
                return f"(set! t (+ t {self.value()}))"
            case "store":
                return self.store()
            case "stored if":
                return f"(if (< {self.value(1)} {self.value(1)}) {self.store()})"
            case "poke" if self.pick((0, 0, 1)):
                return f"(poke {self.pick('ab')} {self.pick(self.indices)} {self.value(1)})"
            case "if":
                condition = f"(< {self.value(1)} {self.value(1)})"
                return f"(if {condition} (set! s {self.value(1)}) (set! t {self.value(1)}))"
            case _:
                return f"(set! g (+ g {self.value(1)}))"

    def store(self) -> str:
        """A store, mostly of what has to do with what is there."""
        place = f"{self.pick('ab')} {self.pick(self.indices)}"
        value = self.pick((f"(+ (array-ref {place}) {self.value(1)})", self.value()))
        return f"(array-set! {place} {value})"

    def value(self, depth: int = 2) -> str:
        """An expression; `depth`: of operators, at most."""
        match self.pick(("name", "load", "load", "sum", "sum", "sum", "part")) if depth else "name":
            case "name":
                return str(self.pick((*NAMES, self.chance.randrange(-3, 9))))
            case "load":
                return f"(array-ref {self.pick('ab')} {self.pick(self.indices)})"
            case "part" if self.pick((0, 1)):
                return f"(/ {self.pick(('n', 'k', 's', '7'))} {self.pick('mmk')})"
            case _:
                operator = self.pick("+-*^&|")
                return f"({operator} {self.value(depth - 1)} {self.value(depth - 1)})"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("budget", "programs"), sample([(3, PROGRAMS // 2), (3, PROGRAMS), (1, PROGRAMS)], 1)
)
def test_random_loops_end_alike(
    budget: int, programs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(poll, "POLL_BUDGET", budget)
    traps = in_strips = 0
    for number in range(budget * PROGRAMS, budget * PROGRAMS + programs):
        program = Loops(number).program()
        expected = ended(Engine("reference"), program)
        assert ended(Engine(policy=COMPILED), program) == expected, (SEED, number)
        traps += isinstance(expected[0], str)
        module = lift(region(verify(program), "program"))
        optimise(module)
        in_strips += sum(1 for body in module.bodies for _ in strip_mined_loops(body))
    assert 0 < traps < programs
    assert in_strips > programs // 4
