# SPDX-License-Identifier: Apache-2.0
"""Functions that rise or fall everywhere do so from one f64 to the next
(`tests.mathematics.monotone`)."""

from __future__ import annotations

import numpy as np
import pytest
from tests.mathematics.agree import Place
from tests.mathematics.monotone import EVERY, violations

from ferryvm.isa.mathematics import FUNCTIONS

from ..tier import together

COUNT = 2000

FLAT = {
    "tanh": (3.5, 19.0),
    "erf": (2.5, 5.9),
    "cbrt": (2.0**-1022, 2.0**-1020),
    "sin": (1.4, 1.57079),
}
"""Where errors of some hundredths of a unit in the last place would show first."""


@together("name", FLAT)
def test_function_is_monotonic_where_it_is_flat(name: str) -> None:
    place = Place.of(FUNCTIONS[f"f64.{name}"], "threaded")
    starts = np.random.default_rng(2026).uniform(*FLAT[name], 40)
    steps = np.arange(COUNT, dtype=np.uint64)
    x = (starts.view(np.uint64)[:, None] + steps).reshape(-1)
    results = place.results([x]).view(np.float64).reshape(len(starts), COUNT)
    assert np.all(np.diff(results) >= 0)


@pytest.mark.nightly
@pytest.mark.parametrize("name", EVERY)
def test_function_is_monotonic_at_operands_of_all_kinds(name: str) -> None:
    assert violations(name, 1_000_000) == []
