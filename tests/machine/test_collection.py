# SPDX-License-Identifier: Apache-2.0
"""Collections: the definition in Python and the native collector, against a model."""

from __future__ import annotations

import random

import pytest

from ferryvm.machine.collection import collect
from ferryvm.machine.object_memory import native_collector
from ferryvm.machine.object_space import Collector
from ferryvm_backends._llvm import collector

from ..tier import together
from .object_graph import NODES, PAIR, Graph, Node

COLLECTORS = {"python": collect, "native": native_collector(collector.address())}


@pytest.fixture(params=COLLECTORS)
def each(request: pytest.FixtureRequest) -> Collector:
    return COLLECTORS[request.param]


@together("seed", range(40))
def test_a_collection_keeps_what_is_reachable_in_breadth_first_order(
    each: Collector, seed: int
) -> None:
    graph = Graph(seed, [0, 1, 3, 20, 100][seed % 5])
    expected = graph.expected()
    graph._write()  # expected() has moved the offsets of the model
    graph.collect(each)
    assert graph.content() == graph.expected() == expected


@pytest.mark.parametrize("seed", range(10))
def test_a_second_collection_changes_nothing(each: Collector, seed: int) -> None:
    graph = Graph(seed, 60)
    graph.collect(each)
    first = graph.content()
    graph.collect(each)
    assert graph.content() == first


def test_memory_past_the_objects_is_zero_after_a_collection(each: Collector) -> None:
    graph = Graph(3, 100)
    for _ in range(3):
        top = graph.collect(each)
        assert not any(graph.space.words[top // 8 : 10_000])


def test_elements_of_dead_arrays_are_given_back(each: Collector) -> None:
    graph = Graph(5, 100)
    live = sum(node.element_bytes for node in graph.live() if node.is_outside)
    assert graph.space.outside_bytes > live
    graph.collect(each)
    assert graph.space.outside_bytes == live


def test_references_of_a_deep_stack_are_forwarded_outermost_first(each: Collector) -> None:
    graph = Graph(1, 50, frames=3000)
    graph.collect(each)
    assert graph.content() == graph.expected()


@together("seed", range(60))
def test_damaged_words_raise_or_are_collected_alike(seed: int) -> None:
    outcomes = []
    for each in COLLECTORS.values():
        graph = Graph(seed, 30)
        chance = random.Random(seed)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(1, graph.top // 8)
            graph.space.words[at] = chance.choice(
                [0, 8, chance.getrandbits(64), graph.top, 8 * chance.randrange(graph.top // 8)]
            )
        try:
            graph.collect(each)
        except ValueError as error:
            outcomes.append(str(error))
        else:
            outcomes.append(str(graph.content()))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("index", [0, 2])
def test_a_reference_past_the_objects_is_refused(each: Collector, index: int) -> None:
    graph = Graph(0, 0)
    node = Node(PAIR, [None, 1, None])
    node.content[index] = 1 << 40  # a word that is no offset
    graph.nodes, graph.statics = [node], [node]
    graph._write()
    with pytest.raises(ValueError, match="damaged: reference"):
        graph.collect(each)


def test_elements_in_memory_of_nobody_are_refused(each: Collector) -> None:
    graph = Graph(0, 0)
    node = Node(NODES, [None, None], is_outside=True)
    graph.nodes, graph.statics = [node], [node]
    graph._write()
    graph.space.words[node.offset // 8 + 2] += 8
    with pytest.raises(ValueError, match="damaged: elements"):
        graph.collect(each)
