# SPDX-License-Identifier: Apache-2.0
"""Batches of suspended items: made and finished by native code as by Python, item by item."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import ferryvm
from ferryvm.engine.result import ProgramInterrupted
from ferryvm.machine.control import Status
from ferryvm.machine.item_map import WRITE
from ferryvm.machine.launch import learn_next
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm_backends._llvm import item_writer

from ..suspended import SUM, suspended_items


@pytest.mark.parametrize("ranges", [(), ((0, 1), (3, 5)), ((2, 7),)], ids=str)
def test_native_code_makes_the_pieces_that_python_makes(
    ranges: Sequence[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = WRITE(item_writer.address())
    monkeypatch.setattr(ObjectMemory, "item_writer", lambda _: writer)
    native = suspended_items(ranges=ranges).machine.snapshot()
    monkeypatch.setattr(ObjectMemory, "item_writer", lambda _: None)
    assert native == suspended_items(ranges=ranges).machine.snapshot()


@pytest.mark.parametrize("backend", ["switch", "threaded"])
def test_a_budget_may_end_anywhere_in_a_batch(backend: str) -> None:
    ranges = ((2, 4),)
    ours, expected = suspended_items(ranges=ranges), suspended_items(ranges=ranges)
    status = Status.FUEL
    while status is Status.FUEL:
        status = ours.run(11, backend=backend).status
        assert expected.run(11, backend="reference").status is status
        assert ours.machine.snapshot() == expected.machine.snapshot()
    assert ours.collected == expected.collected == f"{SUM}\n"


@pytest.mark.parametrize("backend", ["switch", "threaded"])
def test_items_of_a_batch_print_in_their_order_and_are_finished_once(backend: str) -> None:
    assert suspended_items(1).run(backend=backend).output == f"1\n4\n{SUM}\n"


@pytest.mark.parametrize("backend", ["switch", "threaded"])
def test_a_trap_within_a_batch_is_that_of_the_lowest_item(backend: str) -> None:
    execution = suspended_items(103)
    with pytest.raises(ferryvm.TrapError, match="index -1, and the length is 7, in item 3"):
        execution.run(backend=backend)


def test_an_interrupted_batch_goes_on_where_it_stopped() -> None:
    execution, printed = suspended_items(1), list[str]()

    def print_(output: bytes) -> None:
        printed.append(output.decode())
        execution.machine.control.interrupt = int(output == b"1\n")

    execution.output = print_
    with pytest.raises(ProgramInterrupted, match="in item 1"):
        execution.run(backend="threaded")
    execution.machine.control.interrupt = 0
    execution.run(backend="threaded")
    assert "".join(printed) == f"1\n4\n{SUM}\n"


def test_frames_that_are_not_known_are_learned_from_the_record() -> None:
    machine = suspended_items().machine
    assert machine.objects is not None
    assert learn_next(machine)
    machine.control.pc += 1  # no launch.test
    assert not learn_next(machine)
