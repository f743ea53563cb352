# SPDX-License-Identifier: Apache-2.0
"""Planted faults of the collector are found: by the model of graphs, and by programs that move."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import pytest

from ferryvm.backend import Artifact, Interpreter
from ferryvm.machine.collection import Collection, Request
from ferryvm.machine.memory import Limits
from ferryvm.registry import Registry
from ferryvm.testing import Schedule, Verdict
from ferryvm.testing.differential import Differ
from ferryvm.verify import Verified
from ferryvm.wrapper import ArtifactWrapper, InterpreterWrapper

from ..double.registry import registry
from ..engine.object_program import GARBAGE, MIXED, program
from ..machine.object_graph import Graph
from .collector import FAULTS, faulty

GRAPHS = 12
"""Random graphs."""

LEAST, LEAST_BY_PROGRAMS = 0.95, 0.7
"""Of the faults, the parts that graphs and that two programs find: no host holds an object of these,
and no frame of theirs has references at the end."""

_FUNCTION = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.POINTER(Request))


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


class _Backend(InterpreterWrapper):
    """The reference, collected by a faulty collector."""

    def __init__(self, inner: Interpreter, fault: type[Collection] | None) -> None:
        super().__init__(inner)
        self.name = "faulty"
        self._function = _FUNCTION(lambda request: faulty(fault, request.contents))

    def wrapped(self, program: Verified, artifact: Artifact) -> Artifact:
        address = ctypes.cast(self._function, ctypes.c_void_p).value
        return _Artifact(artifact, lambda: address)


class _Artifact(ArtifactWrapper):
    def __init__(self, inner: Artifact, collector: Callable[[], int | None]) -> None:
        super().__init__(inner)
        self.collector = collector  # type: ignore[method-assign]  # it is one a fault


def found_by_programs(fault: type[Collection] | None) -> bool:
    sound = Registry().get("switch")
    assert isinstance(sound, Interpreter)
    backends: Registry = registry(_Backend(sound, fault))
    differ = Differ(["faulty"], registry=backends, limits=Limits(stack=1 << 16, objects=1 << 19))
    for text in (MIXED, GARBAGE.format(rounds=12)):
        for schedule in (Schedule.NONE, Schedule.COLLECT):
            if schedule is Schedule.COLLECT and text is not MIXED:
                continue
            try:
                found = differ.compare(program(text), schedule)
            except ValueError:  # a copy of a state whose objects are damaged
                return True
            if any(one.verdict is not Verdict.AGREE for one in found):
                return True
    return False


def test_nothing_is_found_without_a_fault() -> None:
    assert not found_by_graphs(None)
    assert not found_by_programs(None)


def test_there_are_faults_of_all_kinds() -> None:
    assert len(FAULTS) >= 25
    assert all((fault.__doc__ or "").endswith(".") for fault in FAULTS)


def test_random_graphs_find_faults() -> None:
    missed = [fault.__name__ for fault in FAULTS if not found_by_graphs(fault)]
    assert len(missed) <= (1 - LEAST) * len(FAULTS), missed


@pytest.mark.nightly
def test_programs_find_most_faults() -> None:
    missed = [fault.__name__ for fault in FAULTS if not found_by_programs(fault)]
    assert len(missed) <= (1 - LEAST_BY_PROGRAMS) * len(FAULTS), missed
