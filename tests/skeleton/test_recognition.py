# SPDX-License-Identifier: Apache-2.0
"""Item functions of reductions and scans are known by their code."""

from __future__ import annotations

import dataclasses

import pytest

import ferryvm
from ferryvm.isa import BY_MNEMONIC
from ferryvm.program import Code, Program
from ferryvm.skeleton.recognition import PatternKind, pattern_of

TEXT = """
(define (larger a b) (if (> b a) b a))
(define (go (xs (array f64)) (bytes (array u8)))
  (+ (reduce + xs) (reduce larger 0 xs) (f64 (reduce min bytes)) (array-ref (scan max xs) 0)))
"""
NAMES = {
    "reduce add f64[]: block": PatternKind.REDUCED_BLOCK,
    "reduce min u8[]: block": PatternKind.REDUCED_BLOCK,
    "reduce min i64[]: block": PatternKind.REDUCED_BLOCK,
    "scan max f64[]: blocks": PatternKind.SCANNED_BLOCKS,
    "scan max f64[]: combinations": PatternKind.COMBINED_BLOCKS,
}


def known(program: Program) -> dict[str, PatternKind]:
    found = {f.name: pattern_of(program, number) for number, f in enumerate(program.functions)}
    return {name: pattern.kind for name, pattern in found.items() if pattern is not None}


@pytest.mark.parametrize("optimize", [True, False])
def test_items_with_an_operation_of_the_table_are_recognised(optimize: bool) -> None:
    assert known(ferryvm.compile(TEXT, optimize=optimize)) == NAMES


def test_a_function_with_the_name_but_other_code_is_not_recognised() -> None:
    program = ferryvm.compile(TEXT)
    (function,) = (f for f in program.functions if f.name == "reduce add f64[]: block")
    opcodes = [*program.code.opcodes]
    at = opcodes.index(BY_MNEMONIC["f64.add"].opcode, function.entry)
    opcodes[at] = BY_MNEMONIC["f64.sub"].opcode
    changed = dataclasses.replace(program, code=Code.of(opcodes, [*program.code.immediates]))
    assert known(changed).keys() == NAMES.keys() - {function.name}
