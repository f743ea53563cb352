# SPDX-License-Identifier: Apache-2.0
"""The sample of random Python functions that every run of the tests compares with CPython."""

from __future__ import annotations

import hashlib

import pytest

from ferryvm.testing.fuzz import Campaign, CampaignPlan, TrialOutcome
from ferryvm.testing.generate import ProgramKind, python_program
from ferryvm.testing.reduction.python_cut import reduced

from ..tier import sample


@pytest.mark.parametrize("functions", sample([6, 3000], 1))
def test_random_functions_are_those_of_cpython(functions: int) -> None:
    plan = CampaignPlan(20261126, ("threaded",), kinds=(ProgramKind.PYTHON,))
    report = Campaign(plan, 1, functions).run()
    assert not report.findings, [str(group[0]) for group in report.groups]
    refused = report.outcomes[ProgramKind.PYTHON, TrialOutcome.REFUSED]
    assert refused <= 0.3 * functions
    assert report.outcomes[ProgramKind.PYTHON, TrialOutcome.HALTED] >= 0.2 * functions


@pytest.mark.nightly
def test_random_functions_are_those_of_cpython_on_llvm() -> None:
    plan = CampaignPlan(20261127, ("llvm",), kinds=(ProgramKind.PYTHON,))
    report = Campaign(plan, 1, 300).run()
    assert not report.findings, [str(group[0]) for group in report.groups]


def test_texts_of_functions_depend_on_seed_and_number_alone() -> None:
    texts = [python_program(1, number).source() for number in range(20)]
    assert len(set(texts)) == 20
    digest = hashlib.blake2b("".join(texts).encode(), digest_size=8).hexdigest()
    assert digest == "30435d501af718e2"


def test_reduced_function_keeps_what_is_of_interest() -> None:
    text = (
        "def f(a, b):\n    x = a + 1\n    for i in range(3):\n        x += a // b\n    return x\n"
    )

    def has_division(text: str, call: str) -> bool:
        return "//" in text and call.startswith("(")

    text, call = reduced(text, "(1, 0)", has_division, lambda: None)
    assert (text, call) == ("def f():\n    x += 0 // 0", "()")


def test_formatted_texts_are_reduced_to_texts_that_can_be_written() -> None:
    text = "def f(a):\n    raise ValueError(f'at {a + 1:>{a}} of {len(str(a))}')\n"

    def has_text(text: str, call: str) -> bool:
        return "raise ValueError(f" in text and call.startswith("(")

    found, call = reduced(text, "(1,)", has_text, lambda: None)
    assert (found, call) == ("def f():\n    raise ValueError(f'')", "()")
