# SPDX-License-Identifier: Apache-2.0
"""Planted faults of the collector are found: by the model of graphs, and by random programs."""

from __future__ import annotations

import functools
import json

import pytest

from ferryvm.machine.collection import Collection

from ..machine.object_graph import Graph
from .collector import FAULTS, faulty
from .collector_search import LEAST, PROGRAMS, CollectorSearch, faults
from .page import COLLECTOR_MISSED, COLLECTOR_RESULTS

GRAPHS = 12
"""Random graphs."""

SAMPLE = ("handles-forgotten", "top-not-lowered", "native-forward-at-1")
"""In Python, in the policy of the space, in native code; each shows in one of the first
programs."""


def found_by_graphs(fault: type[Collection] | None) -> bool:
    for seed in range(GRAPHS):
        graph = Graph(seed, 40)
        for _ in range(2):
            expected = graph.expected()
            graph.place_again()
            try:
                graph.collect(functools.partial(faulty, fault))
                if graph.content() != expected or graph.leaks():
                    return True
            except (ValueError, KeyError):
                return True
    return False


def test_nothing_is_found_without_a_fault() -> None:
    assert not found_by_graphs(None)
    assert CollectorSearch(range(3)).search(None) is None


def test_there_are_faults_of_all_kinds() -> None:
    assert len(FAULTS) >= 25
    assert all((fault.__doc__ or "").endswith(".") for fault in FAULTS)


def test_random_graphs_find_faults() -> None:
    missed = [fault.__name__ for fault in FAULTS if not found_by_graphs(fault)]
    assert len(missed) <= (1 - LEAST) * len(FAULTS), missed


@pytest.mark.parametrize("name", SAMPLE)
def test_random_programs_find_a_fault_of_each_kind(name: str) -> None:
    (fault,) = (one for one in faults() if one.name == name)
    assert CollectorSearch(range(6)).search(fault) is not None


def test_the_results_are_of_the_faults_in_the_tables_and_enough_are_found() -> None:
    results = json.loads(COLLECTOR_RESULTS.read_text(encoding="utf-8"))
    assert [*results] == [fault.name for fault in faults()]
    missed = {name for name, entry in results.items() if entry["find"] is None}
    assert missed == COLLECTOR_MISSED.keys()
    assert len(missed) <= (1 - LEAST) * len(results)


@pytest.mark.nightly
def test_random_programs_find_faults() -> None:
    search = CollectorSearch(range(PROGRAMS))
    missed = [fault.name for fault in faults() if search.search(fault) is None]
    assert len(missed) <= (1 - LEAST) * len(faults()), missed
