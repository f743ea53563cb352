# SPDX-License-Identifier: Apache-2.0
"""The benchmark harness: its statistics, the loader's program, interruption, the command line."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from benchmarks import interrupt, loading
from benchmarks.__main__ import main
from benchmarks.benchmark import BenchmarkError
from benchmarks.measure import geometric_mean, interleave, median
from click.testing import CliRunner

from ferryvm.verify import verify


def test_median_of_an_even_number_is_the_mean_of_the_middle_two() -> None:
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.5


def test_geometric_mean_of_a_ratio_and_its_inverse_is_one() -> None:
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)


def test_geometric_mean_of_nothing_is_none() -> None:
    assert geometric_mean([]) is None


def test_rounds_are_interleaved_and_a_slow_task_sits_out() -> None:
    tasks: dict[str, Callable[[], int]] = {"a": lambda: 1, "b": lambda: 2, "slow": lambda: 3}
    order = [key for key, _ in interleave(tasks, 3, {"slow": 1})]
    assert order == ["a", "b", "slow", "a", "b", "a", "b"]


@pytest.mark.parametrize("instructions", [300, 2_000])
def test_generated_program_is_valid_and_exactly_as_long_as_asked(instructions: int) -> None:
    program = loading.generate(instructions)
    assert len(program.code) == instructions
    verified = verify(program)
    assert all(verified.is_reachable(pc) for pc in range(instructions))


def test_generated_program_is_the_same_every_time() -> None:
    assert loading.generate(600).code.tobytes() == loading.generate(600).code.tobytes()


def test_unknown_program_is_a_usage_error_that_lists_the_known_ones() -> None:
    outcome = CliRunner().invoke(main, ["interpreters", "--programs", "sheve"])
    assert outcome.exit_code == 2
    assert "'sheve' is none of loop, loopmix, fib, sieve" in " ".join(outcome.output.split())


@pytest.mark.nightly
def test_interrupt_measures_and_checks_that_states_go_on() -> None:
    found = interrupt.measure("switch", 3, 1, lambda _line: None)
    assert found["interruptions"] == 3
    assert 0 < found["median_ms"] <= found["p99_ms"] <= found["longest_ms"]


def test_interrupt_says_which_backend_it_could_not_measure() -> None:
    with pytest.raises(BenchmarkError, match=r"nosuch, loop: .*nosuch"):
        interrupt.measure("nosuch", 3, 1, lambda _line: None)
