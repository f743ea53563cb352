# SPDX-License-Identifier: Apache-2.0
"""Maps, reductions and scans in random bytecode: all of them occur, in main and in items, in
several blocks, and their items are independent."""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path

import pytest

from ferryvm.isa import BY_MNEMONIC
from ferryvm.program import Program
from ferryvm.skeleton.scan import BLOCK
from ferryvm.testing import Differ, Schedule, Verdict
from ferryvm.testing.generate import LIMITS, MOST_INSTRUCTIONS, Corner, Weights, generate
from ferryvm.verify import verify

from .test_launch import bodies, launched

WEIGHTS = Path(__file__).parent.parent.parent / "fuzz" / "skeletons.toml"
COUNT = 40
_CALL = BY_MNEMONIC["call"].opcode


@functools.cache
def programs() -> tuple[Program, ...]:
    weights = Weights.load(WEIGHTS)
    return tuple(generate(3, number, weights=weights) for number in range(COUNT))


def calls(program: Program) -> list[tuple[int, str]]:
    """Caller and name of each function of a skeleton that the program calls by itself."""
    names = [function.name for function in program.functions]
    found = []
    for number, body in enumerate(bodies(program)):
        if " " not in names[number]:
            called = [immediate for opcode, immediate in body if opcode == _CALL]
            found += [(number, names[one]) for one in called if " " in names[one]]
    return found


@pytest.mark.nightly
def test_all_forms_occur_in_main_and_in_items() -> None:
    forms: Counter[str] = Counter()
    places: Counter[bool] = Counter()
    for program in programs():
        items = launched(program)
        for caller, name in calls(program):
            form, operation, *_ = name.split()
            is_own = form == "map" or form == "map!" or operation.startswith("f")
            forms[f"{form} {'function' if is_own else 'operation'}"] += 1
            places[caller in items] += 1
    wanted = {f"{form} {what}" for form in ("reduce", "scan") for what in ("function", "operation")}
    assert wanted | {"map function", "map! function"} == forms.keys()
    assert min(places.values()) >= 3


def test_functions_for_elements_write_nothing_that_items_share() -> None:
    occurred: Counter[Corner] = Counter()
    weights = Weights.load(WEIGHTS)
    for number in range(3):
        generate(3, number, weights=weights, occurred=occurred)
    assert occurred[Corner.SKELETON]
    differ = Differ(["switch"], limits=LIMITS, most=MOST_INSTRUCTIONS)
    found = [
        one
        for program in programs()[:3]
        for one in differ.compare(verify(program), Schedule.INDEPENDENCE)
    ]
    assert all(one.verdict is not Verdict.DISAGREE for one in found)


@pytest.mark.nightly
def test_some_scans_have_several_blocks() -> None:
    made = [
        immediate
        for program in programs()
        for opcode, immediate in bodies(program)[0]
        if BLOCK < immediate <= BLOCK + 40
    ]
    assert made
