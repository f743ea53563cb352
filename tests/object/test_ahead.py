# SPDX-License-Identifier: Apache-2.0
"""Large arrays are made without leaving, from elements that the engine has prepared ahead."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ferryvm
from ferryvm.engine import Engine
from ferryvm.engine.result import TrapError
from ferryvm.isa import Trap
from ferryvm.machine.memory import Limits
from ferryvm.machine.object_memory import ObjectMemory

from .compiled import engine

LENGTH = 5000

DROPPED = f"""
(define (work n)
  (define ones 0.0)
  (define i 0)
  (while (< i n)
    (let ((a (make-array f64 {LENGTH})))
      (set! ones (+ ones (array-ref a 0) (array-ref a {LENGTH - 1})))
      (array-fill! a 1.0))
    (set! i (+ i 1)))
  ones)
(work 2000)
"""
"""Each array is dead when the next one is made, and full of ones; the sum is that of its first and
last elements when it was new."""

KEPT = """
.struct cell next cell array f64[]
.static kept cell
.static count i64
.function main
:again
    static.get kept
    i64.const 5000
    array.new_default_f64
    struct.new cell
    static.set kept
    static.get count
    i64.const 1
    i64.add
    static.set count
    jump again
"""

NATIVE = ["switch", "threaded"]


@pytest.mark.rotate("backend", most=1)
@pytest.mark.parametrize("backend", NATIVE)
def test_new_arrays_are_zero_and_seldom_leave(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exits = 0
    allocate = ObjectMemory.allocate

    def counted(self: ObjectMemory, stops: Callable[[], bool]) -> bool:
        nonlocal exits
        exits += 1
        return allocate(self, stops)

    monkeypatch.setattr(ObjectMemory, "allocate", counted)
    execution = engine(backend, Limits()).start(ferryvm.compile(DROPPED))
    assert execution.run().value == 0.0
    assert 4 < exits < 300
    objects = execution.machine.objects
    assert objects is not None
    assert objects.space.outside_bytes % (8 * LENGTH) == 0


@pytest.mark.parametrize("backend", ["reference", *NATIVE, "llvm"])
def test_the_limit_holds_for_arrays_that_were_not_asked_for(backend: str) -> None:
    execution = Engine(backend, limits=Limits(objects=500_000)).start(ferryvm.assemble(KEPT))
    with pytest.raises(TrapError) as caught:
        execution.run()
    assert caught.value.kind is Trap.HEAP_EXHAUSTED
    assert execution.machine.memory.statics[1] == 12  # of 40024 bytes and 24 for the cell
