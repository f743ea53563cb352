# SPDX-License-Identifier: Apache-2.0
"""Loops that LLVM replaces by a formula, and what keeps those that it does not replace from being
endless."""

from __future__ import annotations

import re

import pytest

import ferryvm
from ferryvm.backend import BackendError, Options
from ferryvm.engine import Engine, ProgramInterrupted
from ferryvm.flowgraph.component import cycle_without
from ferryvm.isa import I64
from ferryvm.machine.host import HostFunction
from ferryvm.program import Program, Signature
from ferryvm.region.region import region
from ferryvm.registry import Registry
from ferryvm.verify import verify
from ferryvm_backends.llvm import LlvmBackend

TRIPLE = ferryvm.compile("""
(define total 0) (define i 0) (define j 0) (define k 0)
(while (< i 1000)
  (set! j 0)
  (while (< j 1000)
    (set! k 0)
    (while (< k 1000) (set! total (+ total 1)) (set! k (+ k 1)))
    (set! j (+ j 1)))
  (set! i (+ i 1)))
total""")


def backend() -> LlvmBackend:
    found = Registry().get("llvm")
    assert isinstance(found, LlvmBackend)
    return found


def cycle(assembly: str) -> tuple[str, ...]:
    """The labels of a cycle of the code; none if it has none."""
    labels, onward = ["start"], [set[str]()]
    falls = True
    for line in assembly.splitlines():
        label = re.match(r"(\.?\w+):", line)
        if label:
            if falls:
                onward[-1].add(label.group(1))
            labels.append(label.group(1))
            onward.append(set())
            falls = True
        jump = re.match(r"\s+(?:j\w+|b(?:\.\w+)?|cb\w+|tb\w+)\s+.*?(\.L\w+)", line)
        if jump and falls:
            onward[-1].add(jump.group(1))
        falls = falls and re.match(r"\s+(?:jmpq?|b|br|retq?)\b", line) is None
    places = {label: place for place, label in enumerate(labels)}
    found = cycle_without([[places[to] for to in each] for each in onward], ())
    return tuple(labels[place] for place in found)


def assembly(program: Program, name: str) -> str:
    """Of the code that is made of a region."""
    return backend().show(region(verify(program), name), Options(), "asm")


def test_the_triple_loop_folds_to_no_loop_at_all() -> None:
    assert not cycle(assembly(TRIPLE, "main/nest.1"))
    execution = Engine("llvm").start(TRIPLE)
    assert execution.run().value == 1_000_000_000


def test_a_loop_that_stores_does_not_fold_and_stays_a_cycle() -> None:
    stores = ferryvm.compile("""
(define v (make-array i64 10)) (define i 0)
(while (< i 1000000) (array-set! v (% i 10) i) (set! i (+ i 1)))""")
    assert cycle(assembly(stores, "main/loop.1"))


LONG = """
.host stop () -> ()
.static total i64
.function main
.local i i64
    host stop
:again
    static.get total
    {step}
    static.set total
    local.get i
    i64.const 1
    i64.add
    local.set i
    local.get i
    i64.const 4611686018427387904
    i64.lt_s
    jump_if again
    static.get total
    halt
"""
FOLDS = LONG.format(step="i64.const 3\n i64.add")
STAYS = LONG.format(step="i64.const 3\n i64.rotl\n local.get i\n i64.xor")
NOTHING = Signature()


def test_a_loop_of_two_to_the_62_times_is_over_at_once_where_it_folds() -> None:
    hosts = {"stop": HostFunction("stop", NOTHING, lambda: None)}
    execution = Engine("llvm", hosts=hosts).start(ferryvm.assemble(FOLDS))
    assert execution.run().value == ferryvm.isa.type.to_python(I64, 3 << 62 & I64.mask)


@pytest.mark.parametrize("optimize", [0, 1, 2, 3])
def test_a_loop_of_two_to_the_62_times_that_stays_is_interrupted(optimize: int) -> None:
    def stop() -> None:
        execution.machine.control.interrupt = 1

    engine = Engine("llvm", hosts={"stop": HostFunction("stop", NOTHING, stop)})
    execution = engine.start(ferryvm.assemble(STAYS))
    with pytest.raises(ProgramInterrupted):
        execution.run()
    seen = execution.machine.memory.stack[2]
    assert 0 < seen <= 4096


def test_every_stage_can_be_shown_and_others_are_an_error() -> None:
    nest = region(verify(TRIPLE), "main/nest.1")
    texts = [backend().show(nest, Options(), stage) for stage in backend().stages]
    assert len(set(texts)) == len(texts) == 4
    with pytest.raises(BackendError, match="shows no 'bytecode'; it has: ir, llvm, optimized, asm"):
        backend().show(nest, Options(), "bytecode")
