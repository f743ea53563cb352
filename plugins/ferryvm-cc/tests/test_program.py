# SPDX-License-Identifier: Apache-2.0
"""Whole programs through the engine: the same results as the interpreter's."""

from __future__ import annotations

import re
from pathlib import Path

import ferryvm
import pytest
from ferryvm.engine import runnable
from ferryvm.registry import Registry
from ferryvm.testing.conformance.suite import Item, ItemVerdict, checks

PROGRAMS = sorted((Path(__file__).parents[3] / "benchmarks" / "programs").glob("*.skiff"))
PROGRAM_ITEMS = [item for item in checks() if item.group != "instruction"]
SOME = [
    item
    for number, item in enumerate(PROGRAM_ITEMS)
    if number % 31 == 0 or "-nan" in item.label or "nans-" in item.label
]
"""A part of the conformance suite; `ferry conformance --backend cc` runs all of it."""


def test_the_plugin_is_found() -> None:
    (line,) = [line for line in Registry().listings() if line.name == "cc"]
    assert line.source == "ferryvm-cc:cc"
    assert line.reason is None


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.stem)
def test_a_benchmark_program_gives_the_interpreters_result(file: Path) -> None:
    smaller = re.sub(
        r"\(define (\w+) (\d{3,})\)",
        lambda found: f"(define {found[1]} {max(int(found[2]) // 100, 5)})",
        file.read_text(),
    )
    program = ferryvm.compile(smaller)
    assert ferryvm.run(program, "cc").value == ferryvm.run(program, "threaded").value


@pytest.mark.parametrize("item", SOME, ids=lambda item: item.label)
def test_a_case_of_the_conformance_suite_passes(item: Item) -> None:
    outcome = item.run(runnable(Registry(), "cc"))
    assert outcome.verdict is ItemVerdict.PASSED, outcome.message
