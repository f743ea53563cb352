# SPDX-License-Identifier: Apache-2.0
"""Each planted fault is one: a small program shows it, and shows nothing without it."""

from __future__ import annotations

from pathlib import Path

import pytest

import ferryvm
from ferryvm.errors import FerryError
from ferryvm.testing import Comparison, Differ, Schedule, Verdict
from ferryvm.testing.generate import LIMITS
from ferryvm.verify import verify

from ..tier import together
from .backend import FaultyBackend, registry_of, registry_with
from .fault import TRANSFER, Fault
from .native import NATIVE, NativeFaultyBackend
from .search import MOST, program_of
from .table import FAULTS, by_name

each_fault = together("fault", FAULTS, label=lambda fault: fault.name)


def witness(fault: Fault, plant: Fault | None) -> Comparison:
    """The comparison on a fault's witness of a backend with some fault or none."""
    registry = registry_of([FaultyBackend("planted", plant)])
    differ = Differ(["planted"], registry=registry, limits=LIMITS, most=MOST)
    (comparison,) = differ.compare(verify(ferryvm.assemble(fault.text)), fault.schedule)
    return comparison


@each_fault
def test_fault_shows_on_its_witness(fault: Fault) -> None:
    comparison = witness(fault, fault)
    assert comparison.verdict is Verdict.DISAGREE
    assert comparison.difference is not None


@pytest.mark.nightly
@each_fault
def test_witness_agrees_without_the_fault(fault: Fault) -> None:
    assert witness(fault, None).verdict is Verdict.AGREE


@each_fault
def test_witness_has_what_the_search_looks_for(fault: Fault) -> None:
    used = {row.opcode: row.mnemonic for row in ferryvm.isa.INSTRUCTIONS}
    code = ferryvm.assemble(fault.text).code.opcodes.tolist()
    assert not {TRANSFER, *(used[opcode] for opcode in code)}.isdisjoint(fault.where)


@pytest.mark.parametrize("schedule", list(Schedule))
def test_backend_without_a_fault_agrees(schedule: Schedule) -> None:
    differ = Differ(
        ["sound"], registry=registry_of([FaultyBackend("sound", None)]), limits=LIMITS, most=MOST
    )
    for number in range(2 if schedule in (Schedule.EVERY_BOUNDARY, Schedule.COLLECT) else 4):
        (comparison,) = differ.compare(program_of(5, number), schedule, number)
        assert comparison.verdict is Verdict.AGREE, (number, comparison)


def test_there_are_faults_of_all_kinds() -> None:
    assert len(FAULTS) >= 100
    assert all(fault.what.endswith(".") for fault in FAULTS)
    assert sum(fault.schedule is not Schedule.NONE for fault in FAULTS) >= 10
    assert sum(fault.fused is not None for fault in FAULTS) >= 5
    assert sum(bool(fault.operations) for fault in FAULTS) >= 10


def test_faults_are_registered_under_their_names() -> None:
    faults = FAULTS[:2]
    assert {fault.name for fault in faults} <= set(registry_with(faults).names)


def test_fault_woven_into_native_code_shows_and_others_are_refused(tmp_path: Path) -> None:
    (fault,) = by_name(["index-at-the-length"])
    assert fault.name in NATIVE
    registry = registry_of([NativeFaultyBackend(fault, tmp_path, quickly=True)])
    differ = Differ([fault.name], "switch", registry, LIMITS, MOST)
    (comparison,) = differ.compare(verify(ferryvm.assemble(fault.text)))
    assert str(comparison.difference) == "status: TRAP here, HALT there"
    (other,) = by_name(["wrong-once-hot"])
    with pytest.raises(FerryError, match="cannot be planted in native code"):
        NativeFaultyBackend(other, tmp_path)
    assert all(fault.native for fault in by_name(list(NATIVE)))
