# SPDX-License-Identifier: Apache-2.0
"""Accesses that are known to be apart do not wait for each other; all others do."""

from __future__ import annotations

import pytest

from ferryvm.backend import Options
from ferryvm.ir import footprint
from ferryvm.ir.graph import Block, Parameter, Value
from ferryvm.isa.type import I64
from ferryvm_backends.vliw.code.dependence import DependenceKind, dependences, is_apart
from ferryvm_backends.vliw.code.encode import compile_module
from ferryvm_backends.vliw.code.lower.body import lower
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineCode,
    MachineOperation,
    MemoryOperand,
    Segment,
)
from ferryvm_backends.vliw.machine.model import FileKind
from ferryvm_backends.vliw.machine.read import find
from ferryvm_backends.vliw.passes import optimised

from ...tier import sample
from .program import run, whole

NEST, OTHER = Block("b0", 0), Block("b1", 1)
V, W = Parameter(I64), Parameter(I64)

FILTER = """
(define (filter taps samples filtered n)
  (define i 0)
  (while (< i n)
    (let ((sum 0f32) (k 0))
      (while (< k 4)
        (set! sum (+ sum (* (vector-ref taps k) (vector-ref samples (+ i k)))))
        (set! k (+ k 1)))
      (vector-set! filtered i sum))
    (set! i (+ i 1)))
  (vector-ref filtered (- n 1)))
(define taps (make-vector f32 4))
(define samples (make-vector f32 40))
(define i 0)
(while (< i 40) (vector-set! samples i (f32 i)) (set! i (+ i 1)))
(set! i 0)
(while (< i 4) (vector-set! taps i (f32 (+ i 1))) (set! i (+ i 1)))
(filter {taps} {samples} {filtered} 30)
"""
USUAL = {"taps": "taps", "samples": "samples", "filtered": "(make-vector f32 30)"}


def heap(nest: Block, reference: Value, offset: int = 0) -> footprint.Footprint:
    return footprint.Footprint(nest, reference, offset, 8, 8)


@pytest.mark.parametrize("first", ["load", "store"])
@pytest.mark.parametrize(
    ("one", "two", "is_apart"),
    [
        (heap(NEST, V), heap(NEST, W), True),
        (heap(NEST, V), heap(NEST, V, 8), False),
        (heap(NEST, V), heap(OTHER, W), False),
        (heap(NEST, V), None, False),
        (None, None, False),
    ],
)
def test_what_is_apart_does_not_wait(
    first: str, one: footprint.Footprint | None, two: footprint.Footprint | None, is_apart: bool
) -> None:
    code = MachineCode("c", [])
    a, b, value, result = (code.register(FileKind.INTEGER) for _ in range(4))
    access = {
        "load": MachineOperation("load", (), (a,), result, MemoryOperand(Segment.HEAP, 0, 8, one)),
        "store": MachineOperation(
            "store", (), (a, value), None, MemoryOperand(Segment.HEAP, 0, 8, one)
        ),
    }[first]
    store = MachineOperation("store", (), (b, value), None, MemoryOperand(Segment.HEAP, 0, 8, two))
    _, mine = dependences(MachineBlock("b", [access, store]), {})
    orders = [each for each in mine if each.reason in (DependenceKind.MEMORY, DependenceKind.ORDER)]
    assert bool(orders) is not is_apart


@pytest.mark.parametrize(("offset", "is_apart"), [(-4, False), (-8, True), (4, False), (8, True)])
def test_accesses_on_one_base_are_apart_by_their_offsets(offset: int, is_apart: bool) -> None:
    code = MachineCode("c", [])
    a, value = (code.register(FileKind.INTEGER) for _ in range(2))
    stores = [
        MachineOperation("store", (), (a, value), None, MemoryOperand(Segment.HEAP, each, 8))
        for each in (0, offset)
    ]
    _, mine = dependences(MachineBlock("b", stores), {})
    assert bool(mine) is not is_apart


@pytest.mark.parametrize(("machine", "loaded"), [("single", 2), ("multi16", 4)])
def test_the_element_loop_of_a_filter_has_little_besides_its_arithmetic(
    machine: str, loaded: int
) -> None:
    code = lower(optimised(whole(FILTER.format_map(USUAL)), Options(), find(machine)), {})
    (loop,) = (
        block
        for block in code.blocks
        if block.operations[-1].target is block
        and block.label.startswith("unchecked")
        and any(operation.name == "fmul" for operation in block.operations)
    )
    names = [operation.name for operation in loop.operations]
    assert names.count("fmul") == names.count("fadd") == 4
    # Other samples are those of iterations before, where units for loads, or slots, are what is
    # scarce.
    assert names.count("load") == loaded
    assert names.count("store") == names.count("exit_expired") == names.count("exit_unless") == 1
    assert "exit" not in names
    assert sum(name in ("add", "shl", "mul", "compare") for name in names) <= 5
    places = [operation.place for operation in loop.operations if operation.place is not None]
    *loads, store = places
    assert all(is_apart(each, store) for each in loads)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "vectors", sample([{}, {"filtered": "samples"}, {"filtered": "taps"}, {"taps": "samples"}], 1)
)
@pytest.mark.parametrize("machine", sample(["multi16", "single"], 1))
def test_what_is_known_changes_cycles_and_nothing_else(
    machine: str, vectors: dict[str, str]
) -> None:
    part = whole(FILTER.format_map(USUAL | vectors))
    ended = []
    for is_known in (True, False):
        module = optimised(part, Options(), find(machine))
        if not is_known:
            module.footprints.clear()
        program = compile_module(module, find(machine))
        both = [run(program, part, is_native) for is_native in (True, False)]
        assert both[0] == both[1]
        both[0].memory.update(spill=b"", calls=b"")
        ended.append(both[0])
    assert ended[0].registers == ended[1].registers
    assert ended[0].memory == ended[1].memory
    assert vectors or machine == "single" or ended[0].counts.cycles < ended[1].counts.cycles
