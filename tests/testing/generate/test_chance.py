# SPDX-License-Identifier: Apache-2.0
"""Random choices: the same everywhere, and within their bounds."""

from __future__ import annotations

from collections import Counter

from ferryvm.testing.generate.chance import Chance, Weighted


def test_choices_follow_from_the_origin_alone() -> None:
    chance = Chance(1, 2, "bytecode")
    drawn = [chance.below(1000) for _ in range(5)] + [chance.bits(64), chance.between(-3, 3)]
    assert drawn == [325, 46, 555, 694, 953, 12295010206021560270, 3]
    assert drawn[:5] != [Chance(1, 3, "bytecode").below(1000) for _ in range(5)]


def test_numbers_lie_within_their_bounds_and_reach_them() -> None:
    chance = Chance("bounds")
    assert {chance.below(5) for _ in range(200)} == set(range(5))
    assert {chance.between(-1, 2) for _ in range(200)} == {-1, 0, 1, 2}
    assert {chance.bits(2) for _ in range(200)} == {0, 1, 2, 3}
    assert max(chance.bits(64) for _ in range(200)) >> 60
    assert max(chance.bits(52) for _ in range(200)) < 1 << 52


def test_weights_say_how_often_an_item_is_drawn() -> None:
    chance, table = Chance("weights"), Weighted([("a", 3.0), ("never", 0.0), ("b", 1.0)])
    found = Counter(chance.weighted(table) for _ in range(4000))
    assert set(found) == {"a", "b"}
    assert 2800 < found["a"] < 3200


def test_product_that_rounds_up_to_the_total_still_draws() -> None:
    chance, table = Chance("end"), Weighted([("a", 1.0), ("b", 1.0)])
    chance.random = lambda: 1.0
    assert chance.weighted(table) == "b"
