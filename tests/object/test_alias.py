# SPDX-License-Identifier: Apache-2.0
"""Accesses through references that may name the same object are done in the order of the
program, and each object has elements of its own."""

from __future__ import annotations

import pytest

import ferryvm
from ferryvm.engine.result import TrapError
from ferryvm.isa import Trap
from ferryvm.isa.object import LARGEST_INLINE
from ferryvm.machine.memory import Limits
from ferryvm.testing.differential import Verdict
from ferryvm.verify import verify

from ..faults.compilers.search import differ_of
from .compiled import engine

CALLS = 20
"""More than code needs to be compiled."""

LENGTH = LARGEST_INLINE // 8 + 1
"""Of an array whose elements are outside of the object space."""

FIELDS = f"""
.struct node value i64
.struct wide extends node weight i64
.static out i64 = 1
.static nodes node[]
.static wides wide[]
.static calls i64
.function main
.local both wide
    i64.const 7
    i64.const 8
    struct.new wide
    local.set both
    local.get both
    i64.const 1
    array.new_ref node[]
    static.set nodes
    local.get both
    i64.const 1
    array.new_ref wide[]
    static.set wides
:next
    call work
    static.get calls
    i64.const 1
    i64.add
    static.set calls
    static.get calls
    i64.const {CALLS}
    i64.lt_s
    jump_if next
    halt
.function work
.local p node
.local q wide
    static.get nodes
    i64.const 0
    array.get_ref node[]
    local.set p
    static.get wides
    i64.const 0
    array.get_ref wide[]
    local.set q
    local.get q
    local.get p
    struct.get node.value
    i64.const 5
    i64.add
    struct.set wide.value
    static.get out
    i64.const 3
    i64.mul
    local.get p
    struct.get node.value
    i64.add
    static.set out
    return
"""

PAIRS = f"""
.static out i64
.static calls i64
.function main
.local a i64[]
.local b i64[]
    i64.const {LENGTH}
:top
    array.new_default_i64
    local.set a
    i64.const {LENGTH}
    array.new_default_i64
    local.set b
    local.get a
    i64.const 0
    static.get calls
    array.set_i64
    local.get b
    i64.const 0
    i64.const 9
    array.set_i64
    static.get out
    i64.const 3
    i64.mul
    local.get a
    i64.const 0
    array.get_i64
    i64.add
    static.set out
    static.get calls
    i64.const 1
    i64.add
    static.set calls
    i64.const {LENGTH}
    static.get calls
    i64.const {CALLS}
    i64.lt_s
    jump_if top
    drop
    halt
"""
"""The first allocation stands where code of the loop is entered: it leaves, and code that is
entered anew takes the elements that were prepared when it left."""

PAST = """
(define (nest (v (array f64)) (u (array f64)) n m)
  (define i 0)
  (while (< i n)
    (let ((j 0))
      (while (< j m)
        (array-set! v j (+ (array-ref v j) (array-ref u i)))
        (set! j (+ j 1))))
    (set! i (+ i 1))))
(define v (make-array f64 9))
(define u (make-array f64 8))
(nest v u 8 9)
(nest v u 8 10)
"""


def _sum(values: list[int]) -> int:
    """What the program of fields comes to: values are added to three times the sum so far."""
    total = 1
    for value in values:
        total = 3 * total + value
    return (total + (1 << 63)) % (1 << 64) - (1 << 63)


def test_a_field_is_what_was_stored_through_a_reference_of_another_type() -> None:
    execution = engine("llvm", Limits()).start(ferryvm.assemble(FIELDS))
    execution.run()
    assert execution.machine.memory.statics[0] == _sum([12 + 5 * i for i in range(CALLS)])


@pytest.mark.all_backends
@pytest.mark.parametrize("backend", ["llvm", "opencl"])
def test_large_arrays_made_one_after_another_have_their_own_elements(backend: str) -> None:
    (comparison,) = differ_of(backend, in_loops=True).compare(verify(ferryvm.assemble(PAIRS)))
    assert comparison.verdict is Verdict.AGREE, comparison


def test_the_element_behind_the_last_one_traps() -> None:
    execution = engine("llvm", Limits()).start(ferryvm.compile(PAST))
    with pytest.raises(TrapError) as caught:
        execution.run()
    assert caught.value.kind is Trap.INDEX_OUT_OF_BOUNDS
