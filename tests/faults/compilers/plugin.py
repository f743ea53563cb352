# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that plants a fault in a compiler while tests run, until one of them fails.

    python -m pytest -p tests.faults.compilers.plugin --plant NAME ...

The fault is in the process of the tests, and in its workers, not in commands that tests start. It
is planted after collection and after the fixture that runs every backend, where an error would say
nothing about what tests find: each test would have it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from .planting import planted
from .search import CC
from .table import by_name


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--plant", metavar="NAME", help="A fault of tests/faults/compilers.")


@pytest.fixture(scope="session", autouse=True)
def _planted(request: pytest.FixtureRequest, _usable_backends: None) -> Iterator[None]:
    """The fault, for all tests."""
    name = request.config.getoption("--plant")
    if name is None:
        yield
        return
    sys.path.append(str(CC))
    (fault,) = by_name([name])
    with planted(fault):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Stop at the first test that fails; an error in a fixture is no failure of a test."""
    report = yield
    if report.when == "call" and report.failed and item.config.getoption("--plant"):
        item.session.shouldfail = f"{item.nodeid} finds the fault"
    return report
