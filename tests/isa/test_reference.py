# SPDX-License-Identifier: Apache-2.0
"""Meanings as text say what the meanings do, read line by line."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferryvm.isa import BY_MNEMONIC, F32, F64, INSTRUCTIONS, Instruction, Type
from ferryvm.isa.binding import Lines
from ferryvm.isa.manual import markdown
from ferryvm.isa.reference import TextEmitter, meaning
from ferryvm.isa.type import CANONICAL_NAN, from_float, to_float

from ..tier import together

by_mnemonic = together("row", INSTRUCTIONS, label=lambda row: row.mnemonic)

CHANGE = re.compile(r"(hp|fp|sp)(?= = )|(stack|heap|static|local)\d*(?=\[.* = )")
READ = re.compile(r"\b(?:(hp|fp|sp)\b|(stack|heap|static|local)\d*\[)")


def _changed_and_read(line: str) -> tuple[str, set[str]]:
    """The place that a line changes ("" if none), and those that it reads."""
    change = CHANGE.match(line)
    place = (change[1] or change[2]) if change else "stack" if line.startswith("clear") else ""
    rest = line[change.end() :] if change else line
    return place, {register or segment for register, segment in READ.findall(rest)}


@by_mnemonic
def test_no_line_reads_what_a_line_above_it_has_changed(row: Instruction) -> None:
    changed: set[str] = set()
    for line in meaning(row):
        place, read = _changed_and_read(line)
        if "stack" in changed:
            changed.add("local")
        assert not changed & read, line
        changed.add(place)


def test_allocation_returns_the_heap_pointer_from_before() -> None:
    lines = meaning(BY_MNEMONIC["heap.alloc"])
    assert "old_hp = hp" in lines
    assert lines[-2:] == ["hp = (old_hp + ((a + 7) & -8))", "push old_hp"]


def test_return_goes_to_the_pc_that_results_may_replace() -> None:
    assert meaning(BY_MNEMONIC["return"]) == [
        "word = stack[fp]",
        "word2 = stack[(fp + 8)]",
        "move (immediate & 0xffffffff) words of stack below sp to (fp - ((immediate >>u 32) << 3))",
        "sp = ((fp - ((immediate >>u 32) << 3)) + ((immediate & 0xffffffff) << 3))",
        "fp = (fp - (word2 << 3))",
        "go to word",
    ]


def test_value_that_is_used_before_the_change_has_no_name() -> None:
    lines = Lines()
    lines.add(f"hp = ({lines.read('hp', 'hp')} + 8)", changes="hp")
    assert lines.render() == ["hp = (hp + 8)"]


def test_value_of_another_place_has_no_name() -> None:
    lines = Lines()
    pointer = lines.read("hp", "hp")
    lines.add("stack[0] = 1", changes="stack")
    lines.add(f"push {pointer}")
    assert lines.render() == ["stack[0] = 1", "push hp"]


def test_value_read_by_way_of_a_named_one_keeps_the_name() -> None:
    lines = Lines()
    frame = lines.read("fp", "fp")
    lines.add("fp = 0", changes="fp")
    header = lines.read("stack", f"stack[{frame}]")
    lines.add("stack[0] = 1", changes="stack")
    lines.add(f"push {header}")
    assert lines.render() == [
        "old_fp = fp",
        "fp = 0",
        "word = stack[old_fp]",
        "stack[0] = 1",
        "push word",
    ]


@pytest.mark.parametrize(
    ("t", "number", "text"),
    [
        (F32, -(2.0**31), "-2147483648.0"),
        (F32, 2.0**64, "18446744073709551616.0"),
        (F64, 2.0**63, "9223372036854775808.0"),
        (F32, 0.5, "0.5"),
        (F64, -0.0, "-0.0"),
        (F64, 0.1, "0x1.999999999999ap-4"),
        (F32, math.inf, "inf"),
        (F64, math.nan, "nan"),
    ],
)
def test_float_is_written_exactly(t: Type, number: float, text: str) -> None:
    assert TextEmitter().constant(t, from_float(t, number)) == text


@given(st.sampled_from([F32, F64]), st.floats())
def test_float_of_either_type_reads_back_as_a_double(t: Type, number: float) -> None:
    bits = from_float(t, number)
    text = TextEmitter().constant(t, bits)
    again = float.fromhex(text) if "0x" in text else float(text)
    assert from_float(F64, again) == from_float(F64, to_float(t, bits))


def test_nan_with_a_payload_is_told_from_the_canonical_one() -> None:
    assert TextEmitter().constant(F32, CANONICAL_NAN[F32] + 1) == "bits_as_f32(0x7fc00001)"


def test_units_of_stack_addresses_stand_where_they_are_used() -> None:
    entries = markdown().split("\n### ")
    noted = {
        entry.split("`")[1] for entry in entries if "are bytes from the stack's start" in entry
    }
    assert noted == {"call", "call_indirect", "return", "struct.new", "launch.item"}
