# SPDX-License-Identifier: Apache-2.0
"""What the tests of the shadow run share: programs, policies, compilers that are wrong."""

from __future__ import annotations

from collections.abc import Callable

import ferryvm
from ferryvm.backend import Code
from ferryvm.backend import Options as CompileOptions
from ferryvm.engine import Engine, Execution
from ferryvm.engine.observer import Observer
from ferryvm.machine.control import ControlBlock
from ferryvm.policy import Choice, Options, Policy, Profile, Rule, Shadow
from ferryvm.region.region import Region
from ferryvm.registry import Registry
from ferryvm.wrapper import CodeWrapper

from ..double.code import NativeFunction, enter
from ..double.compiler import compile_by_llvm, with_compiler

LOOP = """
(define total 0) (define i 0) (define v (heap.alloc 64))
(while (< i 200)
  (i64.store 0 (+ v (* 8 (% i 8))) i)
  (set! total (+ total (i64.load 0 (+ v (* 8 (% i 8))))))
  (set! i (+ i 1)))
(print! total)
total"""
RECURSION = """
(define (down n) (if (= n 0) 0 (+ n (down (- n 1)))))
(define i 0) (define total 0)
(while (< i 60) (set! total (+ total (down i))) (set! i (+ i 1)))
(print! total)
total"""
SIZE = (1 << 64) - 1

Tamper = Callable[[ControlBlock, int], int]
"""What a wrong compiler's code does to the state after the right code has left, and its status."""


class TamperedCode(CodeWrapper):
    """Right code, with something done to the state afterwards."""

    def __init__(self, code: Code, tamper: Tamper) -> None:
        super().__init__(code)
        self._native = NativeFunction(lambda control: tamper(control, enter(code, control)))
        self.address = self._native.address


def with_wrong(tamper: Tamper) -> Registry:
    """Ours, and a compiler `wrong`."""

    def compile_(region: Region, options: CompileOptions) -> Code:
        return TamperedCode(compile_by_llvm(region, options), tamper)

    return with_compiler(compile_, "wrong")


def policy(
    backend: str = "llvm", against: str = "reference", threshold: int = 5, speculate: bool = False
) -> Policy:
    """Whatever is hot is compiled at once, with a shadow beside."""
    options = Options(background=False, cache=True, speculate=speculate, guard_limit=2)
    rule = Rule("hot", backends=(Choice(backend, options),))
    profile = Profile(True, threshold, threshold, 1)
    return Policy(profile=profile, rules=(rule,), shadow=Shadow(against))


def started(
    text: str, chosen: Policy | None = None, found: Registry | None = None
) -> tuple[Execution, Observer]:
    """A program at its start, observed."""
    engine = Engine(policy=chosen or policy(), registry=found)
    observer = Observer()
    observer.watch(engine)
    return engine.start(ferryvm.compile(text, "text.skiff")), observer


def compared(observer: Observer) -> int:
    """Stays in compiled code that were compared."""
    return sum(placement.compared for placement in observer.placements)


def entered(observer: Observer) -> int:
    """Stays in compiled code."""
    return sum(did.entries for place in observer.placements for _, did in place.activity())
