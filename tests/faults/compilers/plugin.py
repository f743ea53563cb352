# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that plants a fault in a compiler while tests run, until one of them fails.

    python -m pytest -p tests.faults.compilers.plugin --plant NAME ...

The fault is in the process of the tests, and in its workers, not in commands that tests start. It
is planted after collection and after the fixture that runs every backend, where an error would say
nothing about what tests find: each test would have it. `--leave-out FILE` leaves out the tests that
the lines of a file name, as `--deselect` would leave out all whose names begin so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .planting import planted
from .search import CC
from .table import by_name


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption("--plant", metavar="NAME", help="A fault of tests/faults/compilers.")
    parser.addoption(
        "--leave-out", type=Path, metavar="FILE", help="Lines with tests that are not to run."
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that are named."""
    file: Path | None = config.getoption("--leave-out")
    if file is not None:
        names = set(file.read_text(encoding="utf-8").splitlines())
        items[:] = [item for item in items if item.nodeid not in names]


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
