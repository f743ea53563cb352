# SPDX-License-Identifier: Apache-2.0
"""Literals: the edges that a fault is most often at are among them."""

from __future__ import annotations

import math

import pytest

from ferryvm.isa.type import Type, from_float, signed, to_float
from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.literal import (
    EDGES,
    NUMBER,
    TYPES,
    any_bits,
    bounds,
    edge,
    fits,
    halfway,
    near,
    ordinary,
    small,
)

FLOATS = [t for t in Type if t.is_float]
INTEGERS = [t for t in Type if not t.is_float]


@pytest.mark.parametrize("t", INTEGERS)
def test_integer_edges_hold_the_ends_and_the_counts_of_shifts(t: Type) -> None:
    values = {signed(t, bits) for bits in EDGES[NUMBER[t]]}
    half = 1 << (t.bits - 1)
    assert {0, 1, -1, half - 1, -half, -half + 1, 31, 32, 33, 63, 64} <= values


@pytest.mark.parametrize("t", FLOATS)
def test_float_edges_hold_zeros_infinities_nans_subnormals_and_halves(t: Type) -> None:
    edges = EDGES[NUMBER[t]]
    quiet = 1 << (51 if t is Type.F64 else 22)
    nans = [bits for bits in edges if math.isnan(to_float(t, bits))]
    assert {bool(bits & quiet) for bits in nans} == {True, False}
    for value in (0.0, -0.0, math.inf, -math.inf, 0.5, 2.5, -1.5, 2.0**31, 2.0**63, -(2.0**63)):
        assert from_float(t, value) in edges
    assert {1, quiet * 2 - 1, quiet * 2} <= set(edges)


@pytest.mark.parametrize("t", list(Type))
@pytest.mark.parametrize("draw", [edge, small, ordinary, any_bits])
def test_literals_are_bits_of_their_type(t: Type, draw: object) -> None:
    chance = Chance("literal", t)
    assert callable(draw)
    for _ in range(300):
        bits = draw(chance, NUMBER[t])
        assert 0 <= bits <= t.mask
        assert 0 <= near(chance, NUMBER[t], bits) <= t.mask


@pytest.mark.parametrize("t", FLOATS)
def test_ordinary_floats_are_neither_huge_nor_round(t: Type) -> None:
    chance = Chance("ordinary", t)
    values = [to_float(t, ordinary(chance, NUMBER[t])) for _ in range(200)]
    assert all(2.0**-5 < abs(value) < 2.0**9 for value in values)
    assert sum(value * 1024 % 1 != 0 for value in values) > 150


def test_rounding_twice_shows_on_a_halfway_integer() -> None:
    def once(value: int) -> int:  # to 24 bits at once, ties to even
        shift = value.bit_length() - 24
        floor, rest = value >> shift, value & ((1 << shift) - 1)
        half = 1 << (shift - 1)
        return (floor + (rest > half or (rest == half and floor & 1))) << shift

    values = list(halfway(64, 24))
    twice = [int(to_float(Type.F32, from_float(Type.F32, float(value)))) for value in values]
    assert [once(value) for value in values] != twice


@pytest.mark.parametrize("to", INTEGERS)
@pytest.mark.parametrize("t", FLOATS)
@pytest.mark.parametrize("is_signed", [True, False])
def test_bounds_of_a_truncation_lie_on_both_sides(to: Type, t: Type, is_signed: bool) -> None:
    found = {fits(to, is_signed, t, bits) for bits in bounds(to, is_signed, t)}
    assert found == {True, False}


def test_type_numbers_are_indexes_of_types() -> None:
    assert [NUMBER[t] for t in TYPES] == list(range(4))
