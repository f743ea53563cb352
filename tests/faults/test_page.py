# SPDX-License-Identifier: Apache-2.0
"""The page of planted faults says what the table and the last results say."""

from __future__ import annotations

from .campaign import SHARE
from .native import NATIVE
from .page import MISSED, NATIVE_RESULTS, PAGE, RESULTS, load, markdown
from .table import FAULTS


def test_page_is_generated_from_the_table_and_the_results() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown()


def test_results_are_of_all_faults_in_the_table() -> None:
    results = load(RESULTS)
    names = [entry["fault"] for entry in results["results"]]
    assert sorted(names) == sorted(fault.name for fault in FAULTS)
    assert results["programs"] == 10_000
    native = [entry["fault"] for entry in load(NATIVE_RESULTS)["results"]]
    assert sorted(native) == sorted(NATIVE)


def test_enough_are_found_and_the_rest_has_reasons() -> None:
    entries = load(RESULTS)["results"]
    missed = {entry["fault"] for entry in entries if "number" not in entry}
    assert len(missed) <= (1 - SHARE) * len(entries)
    assert missed == MISSED.keys()
