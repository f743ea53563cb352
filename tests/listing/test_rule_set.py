# SPDX-License-Identifier: Apache-2.0
"""What the rules assume of sets of instructions holds when these run, on edge operands."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pytest

import ferryvm
from ferryvm.isa import BY_MNEMONIC, Instruction, Type
from ferryvm.listing import rule

EDGES = {
    Type.I32: ["0", "1", "2", "31", "-1", "0x7fffffff", "0x80000000"],
    Type.I64: ["0", "1", "2", "63", "-1", "0x7fffffffffffffff", "0x8000000000000000"],
    Type.F32: ["0", "-0.0", "1.5", "-1e30", "inf", "-inf", "nan", "bits:0xffa00001", "1e-45"],
    Type.F64: ["0", "-0.0", "1.5", "-1e300", "inf", "-inf", "nan", "bits:0xfff4000000000001"],
}


def outputs(programs: Iterable[str]) -> list[str]:
    """What each piece of code prints, all run as one program."""
    text = "".join(f".host print_{t} ({t})\n" for t in Type) + ".function main\n"
    text += "".join(f"{code}\ni64.const 777\nhost print_i64\n" for code in programs) + "halt"
    result = ferryvm.run(ferryvm.assemble(text), backend="reference")
    return result.output.split("777\n")[:-1]


def operands(row: Instruction) -> list[str]:
    """Code that pushes operands, for each choice of edges."""
    types = [t for t in row.pops if isinstance(t, Type)]
    choices = product(*(EDGES[t] for t in types))
    return [
        "".join(f"{t}.const {v}\n" for t, v in zip(types, values, strict=True))
        for values in choices
    ]


@pytest.mark.parametrize("name", rule.INVERSE)
def test_inverse_is_the_negation(name: str) -> None:
    before = operands(BY_MNEMONIC[name])
    negated = outputs(f"{b}{name}\ni32.eqz\nhost print_i32" for b in before)
    inverse = outputs(f"{b}{rule.INVERSE[name]}\nhost print_i32" for b in before)
    assert negated == inverse


@pytest.mark.parametrize("name", sorted(rule.BOOLEANS))
def test_truth_is_0_or_1(name: str) -> None:
    found = outputs(f"{b}{name}\nhost print_i32" for b in operands(BY_MNEMONIC[name]))
    assert set(found) == {"0\n", "1\n"}


@pytest.mark.parametrize("name", rule.NEUTRAL)
def test_neutral_operand_leaves_the_other_one(name: str) -> None:
    type_ = Type(name.partition(".")[0])
    values = [f"{type_}.const {v}" for v in EDGES[type_]]
    neutral = f"{type_}.const {rule.NEUTRAL[name]}\n{name}"
    assert outputs(f"{v}\n{neutral}\nhost print_{type_}" for v in values) == outputs(
        f"{v}\nhost print_{type_}" for v in values
    )


@pytest.mark.parametrize("name", rule.EITHER_ORDER)
def test_order_of_operands_does_not_matter(name: str) -> None:
    row = BY_MNEMONIC[name]
    before = operands(row)
    show = f"host print_{row.pushes[0]}"
    assert outputs(f"{b}swap\n{name}\n{show}" for b in before) == outputs(
        f"{b}{name}\n{show}" for b in before
    )


def test_results_that_need_not_be_computed_never_trap() -> None:
    assert {len(BY_MNEMONIC[name].pops) for name in rule.RESULTS} == {1, 2, 3}
    for name in rule.RESULTS:
        outputs(f"{b}{name}\ndrop" for b in operands(BY_MNEMONIC[name])[::3])


def test_what_traps_is_no_mere_result() -> None:
    for name in ("i32.div_s", "i64.rem_u", "i32.trunc_f32_s", "i64.load", "heap.alloc"):
        assert name not in rule.RESULTS
    for name in ("f64.div", "i64.trunc_sat_f64_u", "f32.trunc", "i64.mul"):
        assert name in rule.RESULTS


def test_the_page_of_the_peephole_has_every_rule_in_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "peephole.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{row.name}` | {row.summary} |" for row in rule.RULES]
