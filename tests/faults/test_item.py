# SPDX-License-Identifier: Apache-2.0
"""Planted faults of launches are found: in lanes, on threads, in guesses, reductions and
atomic updates."""

from __future__ import annotations

import pytest

from ..tier import nightly, sample
from . import barrier, guess, item_batch, item_range, lane, skeleton, slot


@pytest.mark.rotate("fault", most=8)
@pytest.mark.parametrize("fault", lane.FAULTS, ids=lambda fault: fault.name)
def test_cases_of_lanes_find_the_fault(fault: lane.LaneFault) -> None:
    assert lane.find(fault) is not None, fault.about


@pytest.mark.nightly
def test_nothing_is_found_without_a_fault() -> None:
    assert item_range.find(None) is None
    assert skeleton.find(None) is None
    assert guess.find(None, guess.HOW[:1]) is None


@pytest.mark.parametrize("count", sample([3, len(item_batch.FAULTS)], 1))
def test_batches_find_every_fault(count: int) -> None:
    assert item_batch.is_right()
    assert [one.name for one in item_batch.FAULTS[:count] if not item_batch.is_found(one)] == []


@pytest.mark.nightly
def test_guesses_hold_without_a_fault() -> None:
    assert guess.find(None) is None


@pytest.mark.nightly
def test_updates_are_those_of_the_loop_without_a_fault() -> None:
    assert skeleton.find(None, races=True) is None


@pytest.mark.parametrize(
    "fault",
    [one if number < 1 else nightly((one,)) for number, one in enumerate(barrier.FAULTS)],
    ids=lambda fault: fault.name,
)
def test_items_that_wait_find_the_fault(fault: item_batch.StoreFault) -> None:
    assert not barrier.is_found(None)
    assert barrier.is_found(fault), fault.about


@pytest.mark.parametrize(
    "fault",
    [one if number < 4 else nightly((one,)) for number, one in enumerate(item_range.FAULTS)],
    ids=lambda fault: fault.name,
)
def test_launches_on_threads_find_the_fault(fault: item_range.RangeFault) -> None:
    assert item_range.find(fault) is not None, fault.about


def test_items_that_threads_finish_find_every_fault() -> None:
    assert slot.find(None) is None
    assert [one.name for one in slot.FAULTS if slot.find(one) is None] == []


@pytest.mark.parametrize(
    "fault",
    [nightly((one,)) if one.races else one for one in skeleton.FAULTS],
    ids=lambda fault: fault.name,
)
def test_sums_and_updates_find_the_fault(fault: skeleton.SkeletonFault) -> None:
    assert skeleton.find(fault) is not None, fault.about


@pytest.mark.parametrize(
    "fault",
    [one if number < 2 else nightly((one,)) for number, one in enumerate(guess.FAULTS)],
    ids=lambda fault: fault.name,
)
def test_launches_with_guesses_find_the_fault(fault: guess.GuessFault) -> None:
    assert guess.find(fault) is not None, fault.about
