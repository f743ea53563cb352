# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: `--ferry-backend`, the `ferry_backend` fixture, the conformance suite's tests.

Every pytest run where ferryvm is installed loads this module, so it imports nothing of ferryvm
until a test asks for one of its fixtures.
"""

from __future__ import annotations

import dataclasses
import functools
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ferryvm.backend import Interpreter
    from ferryvm.testing.conformance.expected import Expected, Table
    from ferryvm.testing.conformance.suite import Golden, Item, ItemOutcome

_CASE, _BACKEND = "ferry_case", "ferry_backend"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("ferryvm").addoption(
        "--ferry-backend",
        action="append",
        default=[],
        metavar="NAME",
        help="Backend for tests that use ferry_backend, and for the conformance suite; repeatable. "
        "It goes before what a module names as its BACKEND.",
    )


@pytest.fixture(scope="session")
def ferry_backend(request: pytest.FixtureRequest) -> str:
    """Name of a ferryvm backend: each of --ferry-backend, or of the module's BACKEND."""
    return str(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test its backends, and the suite's test its cases."""
    if _CASE in metafunc.fixturenames:
        # Case by case, so that expectations for all backends are computed once.
        checks = [check for backend in _backends(metafunc) for check in _checks(metafunc, backend)]
        places = {str(check): place for place, check in enumerate(checks)}
        checks.sort(key=lambda check: places[str(check)])
        several = len({check.backend.name for check in checks}) > 1
        ids = [f"{check.backend.name}:{check}" if several else str(check) for check in checks]
        metafunc.parametrize(_CASE, checks, ids=ids)
    elif _BACKEND in metafunc.fixturenames:
        names = [backend.name for backend in _backends(metafunc)]
        metafunc.parametrize(_BACKEND, names, indirect=True)


def _backends(metafunc: pytest.Metafunc) -> list[Interpreter]:
    """The backends that a module is tested on; a collection error if one cannot be had."""
    from ferryvm.backend import Interpreter
    from ferryvm.errors import FerryError

    given = metafunc.config.getoption("--ferry-backend")
    if not given:
        stated = getattr(metafunc.module, "BACKEND", None)
        given = stated if isinstance(stated, list | tuple) else [stated] if stated else []
    if not given:
        raise _refusal(
            "no backend is named: set BACKEND in the module, or pass --ferry-backend NAME"
        )
    try:
        return [one if isinstance(one, Interpreter) else _usable(one) for one in given]
    except FerryError as error:
        raise _refusal(str(error)) from None


@functools.cache
def _usable(name: str) -> Interpreter:
    from ferryvm.engine import runnable
    from ferryvm.registry import Registry

    return runnable(Registry(), name)


def _refusal(message: str) -> BaseException:
    """An error that fails the collection of a module with one line."""
    return pytest.fail.Exception(message, pytrace=False)


@dataclasses.dataclass(frozen=True)
class Check:
    """One case on one backend, as a test."""

    backend: Interpreter
    item: Item
    expected: Expected | None
    """The failures that its author expects."""

    def __str__(self) -> str:
        return self.item.label

    def __call__(self) -> None:
        """Run it, and report the outcome to pytest."""
        from ferryvm.testing.conformance.expected import expect
        from ferryvm.testing.conformance.suite import ItemVerdict

        if self.expected is None:
            outcome = self.item.run(self.backend)
        else:
            outcome = expect(_run(self.backend, self.item), self.expected)
            if outcome.verdict is ItemVerdict.PASSED:
                # Other tests may run in other processes, so their items are run here again.
                stale = self.expected.stale(lambda item: _run(self.backend, item).verdict)
                outcome = self.expected.complaint if stale == self.item else outcome
        if outcome.verdict is ItemVerdict.FAILED:
            pytest.fail(f"backend {self.backend.name!r}: {outcome.message}", pytrace=False)
        if outcome.verdict is ItemVerdict.XFAILED:
            pytest.xfail(outcome.reason)
        if outcome.verdict is not ItemVerdict.PASSED:
            text = f"backend {self.backend.name!r}: {outcome.verdict.value}: {outcome.reason}"
            pytest.skip(text)


_outcomes: weakref.WeakKeyDictionary[Interpreter, dict[str, ItemOutcome]] = (
    weakref.WeakKeyDictionary()
)


def _run(backend: Interpreter, item: Item) -> ItemOutcome:
    """The outcome of an item in a table of expected failures; it is run once."""
    known = _outcomes.setdefault(backend, {})
    if item.label not in known:
        known[item.label] = item.run(backend)
    return known[item.label]


def _checks(metafunc: pytest.Metafunc, backend: Interpreter) -> list[Check]:
    from ferryvm.errors import FerryError
    from ferryvm.testing.conformance.suite import checks_of

    try:
        table = _table(metafunc)
        # An expected failure is one case's, so it is run by itself.
        items = checks_of(_golden(metafunc, backend), frozenset(table))
        return [Check(backend, item, table.get(item.label)) for item in items]
    except FerryError as error:
        raise _refusal(str(error)) from None


def _golden(metafunc: pytest.Metafunc, backend: Interpreter) -> Golden:
    """The mode in which a module runs golden cases on a backend."""
    from ferryvm.errors import FerryError
    from ferryvm.testing.conformance.suite import Golden

    stated = getattr(metafunc.module, "GOLDEN", Golden.EACH.value)
    if isinstance(stated, Mapping):
        stated = stated.get(backend.name, Golden.EACH.value)
    known = [golden.value for golden in Golden]
    if stated not in known:
        raise FerryError(f"GOLDEN is {stated!r} (allowed: {', '.join(known)})")
    return Golden(stated)


def _table(metafunc: pytest.Metafunc) -> Table:
    """The failures that a module expects: its XFAIL, and the file that its XFAIL_FILE names."""
    from ferryvm.errors import FerryError
    from ferryvm.testing.conformance.expected import check_expected, read_expected

    module = metafunc.module
    stated = getattr(module, "XFAIL", {})
    if not isinstance(stated, Mapping):
        raise FerryError("XFAIL is not a dictionary from cases to reasons")
    table = check_expected(stated, "XFAIL")
    file = getattr(module, "XFAIL_FILE", None)
    if file is not None:
        table |= read_expected(Path(str(module.__file__)).parent / file)
    return table
