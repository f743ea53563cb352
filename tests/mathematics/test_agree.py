# SPDX-License-Identifier: Apache-2.0
"""Bits of mathematical functions on one backend and another (`tests.mathematics.agree`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.mathematics.agree import PART, Place, disagreement
from tests.mathematics.hard import KINDS, Words, operands

from ferryvm.isa.mathematics import FUNCTIONS

from ..tier import sample

COUNT = 12_000


@pytest.mark.parametrize("name", sample(["f64.erfc", *FUNCTIONS], 1))
def test_lanes_of_llvm_have_the_bits_of_the_interpreter(name: str) -> None:
    places = [Place.of(FUNCTIONS[name], backend) for backend in ("threaded", "llvm")]
    assert disagreement(places, COUNT) is None
    assert places[0].digest.digest() == places[1].digest.digest()


@pytest.mark.nightly
@pytest.mark.parametrize("name", FUNCTIONS)
def test_work_items_of_opencl_have_the_bits_of_the_interpreter(name: str) -> None:
    places = [Place.of(FUNCTIONS[name], backend) for backend in ("threaded", "opencl")]
    assert disagreement(places, COUNT) is None


def test_first_operands_with_another_result_are_named() -> None:
    class Wrong(Place):
        """A place with one wrong bit."""

        def results(self, words: Sequence[Words]) -> NDArray[Any]:
            found = super().results(words)
            if self.done > PART:
                found[7] ^= 1
            return found

    function = FUNCTIONS["f32.fmod"]
    right, other = Place.of(function, "threaded"), Place.of(function, "switch")
    wrong = Wrong(function, "wrong", other.instance)
    number, words = PART + 7, operands(function, PART + 7, 1)
    given = " ".join(f"{int(each[0]):08x}" for each in words)
    found = disagreement([right, wrong], PART + 8)
    assert found is not None
    assert found.startswith(f"f32.fmod {given} (number {number}): ")


def test_operands_do_not_depend_on_how_many_are_asked_for() -> None:
    function = FUNCTIONS["f64.fmod"]
    whole = operands(function, 0, 5000)
    parts = [operands(function, first, 1250) for first in range(0, 5000, 1250)]
    for place in range(2):
        assert np.array_equal(whole[place], np.concatenate([part[place] for part in parts]))
    assert len(np.unique(whole[0][-KINDS * 100 :] >> np.uint64(52))) > 100
