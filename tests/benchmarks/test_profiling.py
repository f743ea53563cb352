# SPDX-License-Identifier: Apache-2.0
"""The cost of counting: who counts, and what that is held to."""

from __future__ import annotations

import pytest
from benchmarks import profiling
from benchmarks.benchmark import BY_NAME, Scale
from benchmarks.comparison import compare

from ferryvm.engine.journal import Event, Placement
from ferryvm.engine.mixed import Mixed

from ..double.peer import BOTH, FakePeer


@pytest.mark.rotate("name", most=1)
@pytest.mark.parametrize("name", ["threaded", "switch"])
def test_places_get_hot_under_the_usual_profile_only(name: str) -> None:
    hot: dict[str, list[int]] = {}
    for kind, peer in profiling.peers(name).items():
        assert isinstance(peer, profiling.ProfiledPeer)
        found = hot[kind] = []

        def note(
            event: Event, placement: Placement, _detail: object, found: list[int] = found
        ) -> None:
            assert event is Event.HOT
            found.append(placement.pc)

        assert isinstance(peer.engine.backend, Mixed)
        peer.engine.backend.listeners = (note,)
        assert peer.prepare(BY_NAME["loop"], Scale.SHORT)().result == 13_400_000
    assert (hot["alone"], hot["kept"]) == ([], [])
    assert len(hot["counted"]) == 3  # the marked scope, the middle loop, the inner one


def test_counting_is_held_to_its_worst_program() -> None:
    peers = [FakePeer("alone", 1.0), FakePeer("counted", 1.06), FakePeer("kept", 2.0)]
    found = compare(
        profiling.suite(Scale.SHORT), BOTH, {peer.name: peer for peer in peers}, 1
    ).targets()
    assert [(target.found, target.is_met) for target in found] == [(pytest.approx(1.06), False)]
