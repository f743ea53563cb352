# SPDX-License-Identifier: Apache-2.0
"""Inputs of launches of groups: few and small ones that still show each index at work."""

from __future__ import annotations

import math

import pytest

from ferryvm.isa.element import Element
from ferryvm.isa.type import F64, I64
from ferryvm.portable.sample import ArrayInput, element_bits
from ferryvm.portable.sample_group import GroupSampler, GroupSizes

KINDS = (I64, I64, Element.F64, I64, I64)
"""A launch with two axes, and an array of two dimensions."""


def sampler(seed: int) -> GroupSampler:
    return GroupSampler(KINDS, seed, {2: (3, 4)}, GroupSizes((4, 2), (), None), {})


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_first_launches_have_a_second_group_along_each_axis(seed: int) -> None:
    made = sampler(seed)
    first = made.next()
    assert first.made[:2] == [2, 1]
    assert first.made[3:] == [8, 2]
    turned = made.next()  # the first one has failed
    assert turned.made[:2] == [2, 1]
    assert turned.made[3:] == [2, 8]
    made.cover(0)
    assert made.next().made[:2] == [1, 2]
    made.cover(1)
    assert made.next().axis is None


@pytest.mark.parametrize("most", [1, 3])
def test_launches_have_as_many_groups_as_are_affordable(most: int) -> None:
    made = sampler(1)
    made.cover(0)
    made.cover(1)
    made.limit(most)
    launches = [made.next() for _ in range(40)]
    assert max(launch.groups for launch in launches) == most
    for launch in launches:
        array = launch.made[2]
        assert isinstance(array, ArrayInput)
        rows, columns = launch.made[3:]
        assert isinstance(rows, int)
        assert isinstance(columns, int)
        assert len(array.bits) == math.prod((rows, columns))


def test_no_array_is_shared_where_that_takes_too_long() -> None:
    sizes = GroupSizes((4,), (), None)
    made = GroupSampler((I64, Element.F64, Element.F64), 1, {}, sizes, {})
    made.may_share = False
    arguments = [each for _ in range(24) for each in made.next().made[1:]]
    assert all(isinstance(each, ArrayInput) and each.same is None for each in arguments)


def test_mixed_floats_have_to_be_rounded_mostly() -> None:
    chance = sampler(1).chance
    bits = [element_bits(Element.F64, chance, "mixed", 8) for _ in range(200)]
    assert sum(each & 0xFFFF != 0 for each in bits) > 120
    assert all(each <= F64.mask for each in bits)
