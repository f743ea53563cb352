# SPDX-License-Identifier: Apache-2.0
"""Every loop of lowered code counts down to a look at the interrupt flag, or is a bounded strip."""

from __future__ import annotations

import re

from tests.ir.control_flow import any_graph

import ferryvm
from ferryvm.backend import Options
from ferryvm.flowgraph.component import cycle_without
from ferryvm.region.region import regions
from ferryvm.testing.generate import ProgramKind, generate
from ferryvm.verify import Verified, verify
from ferryvm_backends.llvm.build import improved
from ferryvm_backends.llvm.lower import lower

_BUDGET = re.compile(r"(%\S+) = alloca i32$", re.MULTILINE)
_LABEL = re.compile(r"^([-\w.$]+):", re.MULTILINE)
_TARGET = re.compile(r"label %([-\w.$]+)")

SHORT = """
(define (f v w n) (define i 0)
  (while (< i n) (array-set! v i (* 2 (array-ref w i))) (set! i (+ i 1))))
(f (make-array i64 9) (make-array i64 9) 9)
"""


def cycles(verified: Verified) -> tuple[list[str], int]:
    """Blocks in cycles of lowered code that neither count down nor go round a strip; how many heads
    of strips there are."""
    found, strips = [], 0
    for number, each in enumerate(regions(verified)):
        options = Options(optimize=2, counting=bool(number % 2))
        for function in str(lower(improved(each, options)[0], options)).split("\ndefine ")[1:]:
            labels, texts = _LABEL.split(function)[1::2], _LABEL.split(function)[2::2]
            onward = [[labels.index(to) for to in _TARGET.findall(text)] for text in texts]
            bounded = {n for n, text in enumerate(texts) if f"label %{labels[n]}.done\n" in text}
            budget = _BUDGET.search(function)
            # One instruction fills elements in a loop, which ends by itself.
            bounded |= {n for n, label in enumerate(labels) if re.fullmatch(r"fill[.\d]*", label)}
            counts = {n for n, text in enumerate(texts) if budget and f"ptr {budget[1]}\n" in text}
            strips += len(bounded)
            found += [labels[n] for n in cycle_without(onward, counts | bounded)]
    return found, strips


def test_every_loop_of_lowered_code_polls_or_is_a_strip() -> None:
    found, strips = cycles(verify(ferryvm.compile(SHORT)))
    assert found == []
    assert strips
    for seed in range(4):
        assert cycles(any_graph(seed))[0] == []
        assert cycles(verify(generate(20261123, seed, ProgramKind.BYTECODE)))[0] == []
