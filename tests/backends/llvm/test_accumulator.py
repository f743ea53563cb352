# SPDX-License-Identifier: Apache-2.0
"""Sums in several accumulators run in vectors as wide as the processor's."""

from __future__ import annotations

import re

import pytest

import ferryvm
from ferryvm.backend import Options
from ferryvm.isa.type import F64
from ferryvm.region.region import Region, RegionKind, regions
from ferryvm.verify import verify
from ferryvm_backends.llvm import LlvmBackend
from ferryvm_backends.llvm.accumulator import left_accumulators
from ferryvm_backends.llvm.build import improved
from ferryvm_backends.llvm.lane_count import vector_bits

OPTIONS = Options(optimize=2, cache=False)


def launch(operation: str, element: str) -> Region:
    """The launch of the blocks of a reduction."""
    text = f"(define (fold (x (array {element}))) (reduce {operation} x))"
    text += f"(print! (fold (make-array {element} 100)))"
    found = regions(verify(ferryvm.compile(text)))
    return next(one for one in found if one.kind is RegionKind.LAUNCH)


@pytest.mark.skipif(vector_bits() <= 128, reason="a vector has two elements on this processor")
def test_accumulators_of_a_sum_are_not_in_pairs() -> None:
    text = LlvmBackend().show(launch("+", "f64"), OPTIONS, "optimized")
    lanes = [int(found) for found in re.findall(r"fadd <(\d+) x double>", text)]
    assert lanes
    assert min(lanes) >= 4


@pytest.mark.parametrize(("element", "count"), [("f64", 16), ("i64", 0), ("f32", 0)])
def test_only_accumulators_that_could_be_pairs_are_fenced(element: str, count: int) -> None:
    module, _ = improved(launch("+", element), OPTIONS)
    found = [one for body in module.bodies for one in left_accumulators(body)]
    assert [one.type for one in found] == [F64] * count
