# SPDX-License-Identifier: Apache-2.0
"""Figures that backends keep of their own: of a processor, a device, whatever theirs is.

    Code.account() ──┐
    Code.account() ──┼──> Compiler.report ──> plain data, by the backend's name
    Code.account() ──┘

Codes are asked when the figures are wanted. The journal holds all that were compiled for a program,
also those that were lost, given up or compiled again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ferryvm.backend import BackendError, Compiler
from ferryvm.engine.attempt import Find
from ferryvm.engine.journal import Placement
from ferryvm.failure import described, kind_of

FAULT = "fault"
"""The one figure of a backend that failed to give any."""

Figures = Mapping[str, Mapping[str, object]]
"""What JSON can hold, by the name of the backend."""


def metrics(placements: Iterable[Placement], find: Find) -> Figures:
    """The figures of the code that was made for a program; backends that have none are left out."""
    accounts: dict[str, list[object]] = {}
    faults: dict[str, str] = {}
    for attempt in [one for placement in placements for one in placement.attempts]:
        if attempt.code is None:
            continue
        try:
            account = attempt.code.account()
        except Exception as error:  # noqa: BLE001 - third-party code
            faults[attempt.backend] = f"its account raised {described(error)}"
            continue
        if account is not None:
            accounts.setdefault(attempt.backend, []).append(account)
    found = {name: _report(find, name, given) for name, given in accounts.items()}
    return found | {name: {FAULT: what} for name, what in faults.items()}


def _report(find: Find, name: str, accounts: list[object]) -> Mapping[str, object]:
    try:
        compiler = find(name)
        assert isinstance(compiler, Compiler)
        return _checked(compiler.report(accounts))
    except BackendError as error:
        return {FAULT: str(error)}
    except Exception as error:  # noqa: BLE001 - third-party code
        return {FAULT: f"its report raised {described(error)}"}


def _checked(given: object) -> Mapping[str, object]:
    """What a backend reported. Raises BackendError for what JSON cannot hold."""
    if not isinstance(given, Mapping):
        raise BackendError(f"its report returned {kind_of(given)}, not a mapping")
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BackendError(f"its report is nothing that JSON can hold: {error}") from None
    return given
