# SPDX-License-Identifier: Apache-2.0
"""Metrics that backends define themselves: of a processor, a device, or anything else.

    Code.metrics() ──┐
    Code.metrics() ──┼──> Compiler.report ──> plain data, by the backend's name
    Code.metrics() ──┘

They are collected on demand. The journal has all codes that were compiled for a program, including
lost, abandoned and replaced ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ferryvm.backend import BackendError, Compiler
from ferryvm.engine.attempt import Find
from ferryvm.engine.journal import Placement
from ferryvm.failure import described, kind_of

FAULT = "fault"
"""The only metric of a backend that failed to report any."""

Metrics = Mapping[str, Mapping[str, object]]
"""Data that JSON can represent, by the name of the backend."""


def metrics(placements: Iterable[Placement], find: Find) -> Metrics:
    """The metrics of the code that was compiled for a program; backends without metrics are
    omitted."""
    all_metrics: dict[str, list[object]] = {}
    faults: dict[str, str] = {}
    for attempt in [one for placement in placements for one in placement.attempts]:
        if attempt.code is None:
            continue
        try:
            metrics = attempt.code.metrics()
        except Exception as error:  # noqa: BLE001 - third-party code
            faults[attempt.backend] = f"its metrics raised {described(error)}"
            continue
        if metrics is not None:
            all_metrics.setdefault(attempt.backend, []).append(metrics)
    found = {name: _report(find, name, given) for name, given in all_metrics.items()}
    return found | {name: {FAULT: what} for name, what in faults.items()}


def _report(find: Find, name: str, all_metrics: list[object]) -> Mapping[str, object]:
    try:
        compiler = find(name)
        assert isinstance(compiler, Compiler)
        return _checked(compiler.report(all_metrics))
    except BackendError as error:
        return {FAULT: str(error)}
    except Exception as error:  # noqa: BLE001 - third-party code
        return {FAULT: f"its report raised {described(error)}"}


def _checked(given: object) -> Mapping[str, object]:
    """The report of a backend, checked. Raises BackendError for data that JSON cannot represent."""
    if not isinstance(given, Mapping):
        raise BackendError(f"its report returned {kind_of(given)}, not a mapping")
    try:
        json.dumps(given, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BackendError(f"its report is nothing that JSON can hold: {error}") from None
    return given
