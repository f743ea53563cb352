# SPDX-License-Identifier: Apache-2.0
"""Tests that run in forked processes are each reported once, whatever becomes of the processes."""

from __future__ import annotations

import contextlib
import copy
import os
from pathlib import Path

import pytest

from . import parallel

pytest_plugins = ("pytester",)

CONFTEST = f"""
import sys
import pytest
sys.path.append({str(Path(__file__).parents[1])!r})
from tests import parallel
from tests.conftest import pytest_runtest_protocol, pytest_runtestloop

def pytest_addoption(parser):
    parallel.add_option(parser)
    parser.addoption("--longest")
    parser.addoption("--spent")
"""
OPTIONS = ("-p", "no:cacheprovider", "-p", "no:xdist", "-n", "2")


def run(pytester: pytest.Pytester, *arguments: str, **modules: str) -> pytest.RunResult:
    """What a run with two workers says of some modules."""
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(**modules)
    return pytester.runpytest_inprocess(*OPTIONS, *arguments)


MANY = """
import os, pytest

@pytest.mark.parametrize("number", range(20))
def test_it(number, tmp_path):
    (tmp_path / "file").write_text("")
    assert os.getpid() != {parent}
    print("said by", number)
    if number == 7:
        pytest.skip("no reason")
    assert number != 13
"""


def test_each_test_is_reported_once_with_what_it_printed(pytester: pytest.Pytester) -> None:
    modules = {f"test_{name}": MANY.format(parent=os.getpid()) for name in "abc"}
    done = run(pytester, **modules)
    done.assert_outcomes(passed=54, skipped=3, failed=3)
    done.stdout.fnmatch_lines(["said by 13"])
    assert "said by 14" not in done.stdout.str()


def test_a_process_that_dies_fails_the_test_that_it_ran_and_the_others_run(
    pytester: pytest.Pytester,
) -> None:
    dies = """
import os, signal, time, pytest

@pytest.mark.parametrize("number", range(20))
def test_it(number):
    if number in (4, 11, 19):
        os.kill(os.getpid(), signal.SIGKILL)
"""
    done = run(pytester, test_a=dies, test_b="def test_b(): pass")
    done.assert_outcomes(passed=18, failed=3)
    done.stdout.fnmatch_lines(["*test_it?11? died: exit code -9*"])


def test_a_run_stops_at_the_first_failure_if_told_to(pytester: pytest.Pytester) -> None:
    fails = """
import time, pytest

@pytest.mark.parametrize("number", range(50))
def test_it(number):
    time.sleep(0.01)
    assert number
"""
    done = run(pytester, "-x", test_a=fails)
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    assert done.parseoutcomes()["failed"] == 1
    assert done.parseoutcomes().get("passed", 0) < 40


def test_fixtures_are_torn_down_in_each_process(pytester: pytest.Pytester) -> None:
    uses = """
import os, pathlib, pytest

@pytest.fixture(scope="session")
def made():
    yield
    pathlib.Path(__file__).with_name(f"{os.getpid()}.end").touch()

@pytest.mark.parametrize("number", range(6))
def test_it(number, made):
    pathlib.Path(__file__).with_name(f"{os.getpid()}.begin").touch()
"""
    run(pytester, test_a=uses).assert_outcomes(passed=6)

    def processes(suffix: str) -> set[str]:
        return {path.stem for path in pytester.path.glob(f"*.{suffix}")}

    assert processes("begin") == processes("end") != set()


def test_a_warning_of_a_worker_is_shown(pytester: pytest.Pytester) -> None:
    warns = """
import warnings

def test_it():
    warnings.warn("of some kind", UserWarning)

def test_other():
    pass
"""
    done = run(pytester, "-W", "default", test_a=warns)
    assert done.parseoutcomes()["passed"] == 2
    done.stdout.fnmatch_lines(["*UserWarning: of some kind"])


def test_a_worker_without_a_unit_helps_with_the_longest_remainder() -> None:
    units = [[0, 1, 2], [3, 4, 5, 6, 7]]
    queue = parallel.Queue(units, 3)
    with contextlib.closing(queue):
        others = copy.copy(queue), copy.copy(queue)  # as in forked processes
        assert queue.claim(is_first=True) == 0
        assert others[0].claim(is_first=True) == 3
        assert [others[1].claim(is_first=number == 0) for number in range(2)] == [4, 5]
        assert queue.claim() == 1
        assert [others[0].claim(), others[0].claim()] == [6, 7]
        assert others[1].claim() == 2
        assert queue.claim() is None
