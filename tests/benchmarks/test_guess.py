# SPDX-License-Identifier: Apache-2.0
"""The programs that show what guesses gain have the same results with guesses and without."""

import pytest
from benchmarks import guess


@pytest.mark.nightly  # each program is compiled four times
def test_programs_have_the_same_results_with_guesses() -> None:
    found = guess.measure(1, lambda _line: None, scale=20)  # raises where they have not
    assert len(found) == 3 * 2 * len(guess.PROGRAMS)
