# SPDX-License-Identifier: Apache-2.0
"""Random maps, reductions and scans against CPython item by item, and faults that they find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

from ferryvm.engine import array_map
from ferryvm.machine.host_array import HostArrays
from ferryvm.python.map.map_plan import MapPlan
from ferryvm.python.map.taken import Taken
from ferryvm.testing.fuzz import Campaign, CampaignPlan, TrialOutcome
from ferryvm.testing.fuzz.python_trial import PythonJudge
from ferryvm.testing.generate import ProgramKind, python_program

from ..tier import sample


def _plan(backend: str, seed: int = 20261127, patience: float = 10) -> CampaignPlan:
    return CampaignPlan(seed, (backend,), kinds=(ProgramKind.MAP,), patience=patience)


@pytest.mark.parametrize("programs", sample([6, 1000], 1))
def test_random_maps_are_those_of_cpython(programs: int) -> None:
    report = Campaign(_plan("threaded"), 1, programs).run()
    assert not report.findings, [str(group[0]) for group in report.groups]
    assert report.outcomes[ProgramKind.MAP, TrialOutcome.REFUSED] <= 0.5 * programs
    assert report.outcomes[ProgramKind.MAP, TrialOutcome.HALTED] >= 0.3 * programs


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["llvm", "opencl"])
def test_random_maps_are_those_of_cpython_in_compiled_code(backend: str) -> None:
    report = Campaign(_plan(backend, 20261128), 1, 200).run()
    assert not report.findings, [str(group[0]) for group in report.groups]


def test_programs_have_arguments_of_every_form() -> None:
    made = [python_program(1, number, None, ProgramKind.MAP) for number in range(300)]
    calls = "\n".join(call for program in made for call in program.calls)
    assert made[7] == python_program(1, 7, None, ProgramKind.MAP)
    for form in (
        *("Each(range(", "Each([", "Each((", "dtype=object", "np.ma.array(", ".reshape(-1, 2)"),
        *('Folded("reduce", ', 'Folded("scan", ', 'Folded("scan into", ', "np.float32", "np.uint8"),
    ):
        assert form in calls, form


def _left_out(self: MapPlan, error: Any, items: Any, start: int, *rest: Any) -> None:
    """The items behind one that CPython finishes are not run."""
    _GO_ON(self, error, items, start, start + error.item + 1, rest[1])


def _no_mask(self: Taken, result: Any, out: Any) -> Any:
    """Results are masked arrays of which nothing is masked."""
    return np.ma.MaskedArray(result)


def _first_mask(self: Taken, name: str, value: Any) -> Any:
    """The mask of the first masked argument alone counts."""
    before = None if self._mask is None else self._mask.copy()
    found = _VALUE(self, name, value)
    self._mask = self._mask if before is None else before
    return found


def _last_mask(self: Taken, name: str, value: Any) -> Any:
    """The mask of the last masked argument alone counts."""
    before, self._mask = self._mask, None
    found = _VALUE(self, name, value)
    self._mask = before if self._mask is None else self._mask
    return found


def _own_mask(self: Taken, result: Any, out: Any) -> Any:
    """A masked array for the results retains its mask."""
    return out if isinstance(out, np.ma.MaskedArray) else _WITH_MASK(self, result, out)


def _same_object(self: HostArrays, one: Any) -> int | None:
    """Two fresh arrays get one object."""
    found = _TAKE(self, one)
    if found is not None:
        self._vacant[one.type].append(found)
    return found


def _next_step(f: Any, name: str, numbers: range) -> tuple[int, int]:
    """All ranges have a step of 1."""
    return _START_AND_STEP(f, name, numbers)[0], 1


_GO_ON, _TAKE = MapPlan._go_on, HostArrays.take
_VALUE, _WITH_MASK = Taken._value, Taken._with_mask
_START_AND_STEP = array_map._start_and_step

FAULTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "items behind one that CPython finishes": (MapPlan, "_go_on", _left_out),
    "masks of results": (Taken, "_with_mask", _no_mask),
    "masks but the first": (Taken, "_value", _first_mask),
    "masks but the last": (Taken, "_value", _last_mask),
    "mask of an array for results": (Taken, "_with_mask", _own_mask),
    "one object for two results": (HostArrays, "take", _same_object),
    "step of a range": (array_map, "_start_and_step", _next_step),
}


FINDERS = {
    "items behind one that CPython finishes": 8,
    "masks of results": 7,
    "masks but the first": 7,
    "masks but the last": 7,
    "mask of an array for results": 7,
    "one object for two results": 53,
    "step of a range": 27,
}
"""The number of a program that finds each."""


def _found(number: int, patience: float) -> list[str]:
    """The texts of the findings of a program, reduced within the patience."""
    judge = PythonJudge(_plan("threaded", patience=patience), mock.Mock(names=("threaded",)))
    _, found = judge.judge(number, ProgramKind.MAP, None)
    return [content.decode() for _, content in found]


_SLOW = "items behind one that CPython finishes"
"""Its program takes CPython many seconds."""


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.nightly] * (each == _SLOW)) for each in FAULTS]
)
def test_planted_fault_is_found(name: str) -> None:
    place, attribute, fault = FAULTS[name]
    assert not _found(FINDERS[name], 0.01)
    with mock.patch.object(place, attribute, fault):
        assert _found(FINDERS[name], 0.01)


@pytest.mark.nightly
def test_a_finding_is_reduced_to_the_call_that_shows_it() -> None:
    name = "step of a range"
    with mock.patch.object(array_map, "_start_and_step", _next_step):
        (found,) = _found(FINDERS[name], 20)
    assert "def random_20261127_27(a, b):\n    return b\n" in found
    assert "@case((Folded('scan', range(" in found
