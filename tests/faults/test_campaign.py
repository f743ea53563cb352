# SPDX-License-Identifier: Apache-2.0
"""The runner finds planted faults with random programs: a sample of what the slow job does."""

from __future__ import annotations

import pytest

from ..tier import sample
from .campaign import Plan, campaign
from .page import RESULTS, load
from .search import Searcher
from .table import FAULTS, by_name

_EARLY = 60
"""Programs within which the slow job found the faults of the sample."""

_PROGRAMS = 1000
"""Programs within which they are found by now: each further instruction makes the others rarer."""

_SEEDS = (1, 2, 3)
"""Seeds of these programs; the others are tried for what one misses, which differs from instruction
table to instruction table."""

_GROUPS = 12

SAMPLE = [entry["fault"] for entry in load(RESULTS)["results"] if entry.get("number", 1e9) < _EARLY]


@pytest.mark.nightly
@pytest.mark.parametrize("group", sample(range(_GROUPS), 1))
def test_faults_that_are_easy_to_find_are_found(group: int) -> None:
    names = SAMPLE[group::_GROUPS]
    missed = sorted(names)
    for seed in _SEEDS:
        found = Searcher(by_name(missed), seed).search(range(_PROGRAMS)).finds if missed else {}
        missed = [name for name in missed if name not in found]
    assert len(missed) <= 0.05 * len(names), missed


def test_sample_is_a_good_part_of_the_table() -> None:
    assert len(SAMPLE) >= len(FAULTS) // 4


@pytest.mark.nightly
def test_finds_do_not_depend_on_the_number_of_processes() -> None:
    names = ("product-of-low-halves", "fuel-paid-twice-at-halt")
    outcomes = [
        {name: find for name, find, _ in campaign(Plan(names, programs=8, jobs=jobs, seed=2))}
        for jobs in (1, 2)
    ]
    assert outcomes[0] == outcomes[1]
    assert None not in outcomes[0].values()


def test_fault_that_is_not_found_is_told() -> None:
    (outcome,) = campaign(Plan(("wrong-once-hot",), programs=2, jobs=1))
    assert outcome[:2] == ("wrong-once-hot", None)
