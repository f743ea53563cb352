# SPDX-License-Identifier: Apache-2.0
"""Edge classes hold exactly where they say, and every instruction's are met by what meets them."""

from __future__ import annotations

import math

import pytest

import ferryvm
from ferryvm.isa import BY_MNEMONIC, F32, F64, I32, I64, INSTRUCTIONS, Trap, Type
from ferryvm.isa.reference import meaning
from ferryvm.isa.type import from_float
from ferryvm.machine.memory import Limits
from ferryvm.testing import Differ
from ferryvm.testing.report import Coverage, observe
from ferryvm.testing.report.edge import EDGE_COUNT, EDGES
from ferryvm.testing.report.value import VALUES, classes_of
from ferryvm.verify import verify


def names_of(t: Type, bits: int) -> set[str]:
    of_type = [value for value in VALUES if value.is_float is t.is_float]
    return {of_type[number].name for number in classes_of(t, bits)}


@pytest.mark.parametrize("t", [I32, I64])
def test_integers_have_their_classes_and_no_others(t: Type) -> None:
    sign = 1 << (t.bits - 1)
    expected = {
        0: "zero",
        1: "one",
        t.mask: "minus one",
        sign: "smallest",
        sign - 1: "largest",
    }
    for bits, name in expected.items():
        assert names_of(t, bits) == {name}
    for bits in (2, 17, sign + 1, sign - 2, t.mask - 1):
        assert names_of(t, bits) == set()


@pytest.mark.parametrize(("t", "fraction"), [(F32, 23), (F64, 52)])
def test_floats_have_their_classes_and_no_others(t: Type, fraction: int) -> None:
    sign, infinity = 1 << (t.bits - 1), from_float(t, math.inf)
    expected = {
        0: {"zero"},
        sign: {"negative zero"},
        from_float(t, 1.0): {"one"},
        from_float(t, -1.0): {"minus one"},
        from_float(t, 2.5): {"integral and a half"},
        from_float(t, -0.5): {"integral and a half"},
        1: {"subnormal"},
        sign | ((1 << fraction) - 1): {"subnormal"},
        1 << fraction: set(),
        infinity - 1: {"largest finite"},
        sign | (infinity - 1): {"largest finite"},
        infinity: {"infinity"},
        sign | infinity: {"negative infinity"},
        from_float(t, math.nan): {"canonical NaN"},
        infinity + 1: {"another NaN"},
        sign | from_float(t, math.nan): {"another NaN"},
        from_float(t, 2.25): set(),
        from_float(t, -3.0): set(),
    }
    for bits, names in expected.items():
        assert names_of(t, bits) == names, hex(bits)


def test_traps_of_an_instruction_are_those_of_its_meaning() -> None:
    messages = {kind.name: kind.message for kind in Trap}
    for row in INSTRUCTIONS:
        named = {line.split()[1] for line in meaning(row) if line.startswith("trap ")}
        edges = {edge.name for edge in EDGES[row.opcode].all if edge.group == "trap"}
        assert edges == {messages[name] for name in named}, row.mnemonic


def test_edges_of_an_instruction_are_told_apart() -> None:
    for row in INSTRUCTIONS:
        found = EDGES[row.opcode].all
        assert len(set(found)) == len(found), row.mnemonic
    assert sum(len(edges.all) for edges in EDGES) == EDGE_COUNT


def test_instructions_without_edges_are_those_that_do_nothing_that_could_go_wrong() -> None:
    without = {row.mnemonic for row in INSTRUCTIONS if not EDGES[row.opcode].all}
    assert without == {"heap.size", "nop", "enter_jit", "leave_jit"}


def observed(text: str, limits: Limits | None = None) -> Coverage:
    program = verify(ferryvm.assemble(text))
    return observe(Differ(["switch"], limits=limits).start(program), "reference")


def met(coverage: Coverage, mnemonic: str) -> set[str]:
    opcode = BY_MNEMONIC[mnemonic].opcode
    edges = EDGES[opcode].all
    found = (edges[number] for number in coverage.edges.get(opcode, {}))
    return {f"{edge.group}: {edge.name}" for edge in found}


def main(*lines: str) -> str:
    return "\n".join((".function main", *lines, "halt", ""))


@pytest.mark.parametrize(
    ("lines", "mnemonic", "expected"),
    [
        (
            ["i64.const 1", "i64.const 64", "i64.shl", "drop"],
            "i64.shl",
            {"operand a: one", "shift count: the width or more"},
        ),
        (["i32.const 5", "i32.const 31", "i32.shl", "drop"], "i32.shl", set()),
        (["i64.const 7", "i64.const 7", "i64.add", "drop"], "i64.add", {"operands: equal"}),
        (
            ["i32.const 8", "i32.const 0", "i32.div_s", "drop"],
            "i32.div_s",
            {"operand b: zero", "trap: integer division by zero"},
        ),
        (["f32.const 2.5", "drop"], "f32.const", {"literal: integral and a half"}),
        (["f32.const 2.25", "drop"], "drop", {"type: f32"}),
        (
            ["i64.const 24", "heap.alloc", "i64.load 16", "drop"],
            "i64.load",
            {
                "operand a: zero",
                "address: offset not zero",
                "address: last in bounds",
            },
        ),
        (
            ["i64.const 24", "heap.alloc", "i64.load 17", "drop"],
            "i64.load",
            {
                "operand a: zero",
                "address: offset not zero",
                "address: first past bounds",
                "address: unaligned",
                "trap: heap access out of bounds",
            },
        ),
        (
            ["i64.const -1", "i64.load8_u 0", "drop"],
            "i64.load8_u",
            {
                "operand a: minus one",
                "trap: heap access out of bounds",
            },
        ),
        (
            ["i64.const -1", "i64.load8_u 1", "drop"],
            "i64.load8_u",
            {
                "operand a: minus one",
                "address: offset not zero",
                "address: sum wraps",
                "trap: heap access out of bounds",
            },
        ),
        (
            ["i64.const 3", "array.new_default_i16", "i64.const 2", "array.get_i16", "drop"],
            "array.get_i16",
            {"index: last"},
        ),
        (
            ["i64.const 3", "array.new_default_i16", "i64.const 3", "array.get_i16", "drop"],
            "array.get_i16",
            {"index: at the length", "trap: index out of bounds"},
        ),
        (
            ["i64.const 0", "i64.const 0", "array.index", "drop"],
            "array.index",
            {
                "operand a: zero",
                "operand b: zero",
                "operands: equal",
                "index: at the length",
                "index: of an empty array",
                "trap: index out of bounds",
            },
        ),
        (["i32.const 2", "jump_if on", ":on"], "jump_if", {"branch: taken", "jump: forward"}),
        (["i32.const 2", "jump_unless on", ":on"], "jump_unless", {"branch: not taken"}),
        (
            ["i64.const 4", "i64.const 5", "i32.const 0", "select", "drop"],
            "select",
            {"operand c: zero", "type: i64", "choice: second"},
        ),
        (
            ["i32.const 1", "jump_table a b", ":a", ":b"],
            "jump_table",
            {"operand a: one", "label: default, at the bound"},
        ),
        (
            ["i32.const 0", "jump_table a b", ":a", ":b"],
            "jump_table",
            {"operand a: zero", "label: first", "label: last numbered"},
        ),
        (
            ["i32.const 9", "jump_table a b", ":a", ":b"],
            "jump_table",
            {"label: default, past it"},
        ),
        ([], "halt", {"end: without a result"}),
        (["i64.const 5"], "halt", {"end: with a result"}),
        (["trap"], "trap", {"trap: unreachable code was reached"}),
    ],
)
def test_one_run_meets_exactly_these_edges(
    lines: list[str], mnemonic: str, expected: set[str]
) -> None:
    assert met(observed(main(*lines)), mnemonic) == expected
