# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin that plants a fault in a compiler for a whole run of tests.

    python -m pytest -p tests.faults.compilers.plugin --plant NAME ...

The fault is in the process of the tests, and in its workers, not in commands that tests start.
"""

from __future__ import annotations

import contextlib
import sys

import pytest

from .planting import planted
from .search import CC
from .table import by_name

_stack = contextlib.ExitStack()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--plant", metavar="NAME", help="A fault of tests/faults/compilers.")


def pytest_configure(config: pytest.Config) -> None:
    """Plant the fault."""
    name = config.getoption("--plant")
    if name is not None:
        sys.path.append(str(CC))
        (fault,) = by_name([name])
        _stack.enter_context(planted(fault))


def pytest_unconfigure() -> None:
    """Take it away."""
    _stack.close()
