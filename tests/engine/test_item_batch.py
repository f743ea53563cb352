# SPDX-License-Identifier: Apache-2.0
"""Batches of suspended items: made and finished by native code as by Python, item by item."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.engine.execution import Execution
from ferryvm.engine.result import ProgramInterrupted
from ferryvm.machine.control import Status
from ferryvm.machine.item_batch import SLOT_WORDS, ItemBatch, range_slot
from ferryvm.machine.item_map import WRITE
from ferryvm.machine.launch import abandon, finish, innermost, learn_next, space_for
from ferryvm.machine.launch_operands import launch_operands
from ferryvm.machine.object_memory import ObjectMemory
from ferryvm.machine.piece import reserve
from ferryvm_backends._llvm import item_writer

ITEMS = 7

TEXT = """
(define-struct box (of (array i64)))
(define (add to item) (array-set! to item (+ 1 (array-ref to item))))
(define (body item to box kind)
  (define mine (make-box to))
  (if (= (% item 3) kind) (print! item))
  (if (= item (- kind 100)) (array-set! to -1 5))
  (add (box-of mine) item)
  (add (box-of box) item))
(define to (make-array i64 {items}))
(for-each-item {items} (body to (make-box to) {kind}))
(define i 0)
(define sum 0)
(while (< i {items}) (set! sum (+ (* sum 3) (array-ref to i))) (set! i (+ i 1)))
(print! sum)
"""
SUM = 2 * sum(3**n for n in range(ITEMS))


def _suspended(kind: int = 3, ranges: Sequence[tuple[int, int]] = ()) -> Execution:
    """An execution at the launch, all of whose items are suspended in front of their first
    instruction, but for ranges, which have not begun."""
    execution = Engine("reference").start(
        ferryvm.compile(TEXT.replace("{items}", str(ITEMS)).replace("{kind}", str(kind)), "p")
    )
    machine = execution.machine
    control, objects = machine.control, machine.objects
    assert objects is not None
    while (frame := innermost(machine)) is None:
        execution.run(1)
    fp, pc, sp = control.fp, control.pc, control.sp
    abandon(machine, frame)
    start = control.sp
    words = machine.memory.stack[start:sp].tolist()
    left = {item for one, two in ranges for item in range(one, two)}
    slots = [
        array("Q", [item, pc, fp - start, len(words), 0, item, *words[1:]])
        for item in range(ITEMS)
        if item not in left
    ]
    slots += [array("Q", range_slot(*one)) for one in ranges]
    slots.sort(key=lambda slot: slot[0])
    addresses = [slot.buffer_info()[0] for slot in slots]
    runs = [array("Q", addresses[::2]), array("Q", addresses[1::2])]
    batch = ItemBatch(runs, slots, sum(len(slot) - SLOT_WORDS for slot in slots))
    assert batch.first == 0
    reserve(objects, *space_for([(0, batch)]))
    finish(objects, ITEMS, [(0, batch)])
    assert launch_operands(control).record
    return execution


@pytest.mark.parametrize("ranges", [(), ((0, 1), (3, 5)), ((2, 7),)], ids=str)
def test_native_code_makes_the_pieces_that_python_makes(
    ranges: Sequence[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = WRITE(item_writer.address())
    monkeypatch.setattr(ObjectMemory, "item_writer", lambda _: writer)
    native = _suspended(ranges=ranges).machine.snapshot()
    monkeypatch.setattr(ObjectMemory, "item_writer", lambda _: None)
    assert native == _suspended(ranges=ranges).machine.snapshot()


@pytest.mark.parametrize("backend", ["switch", "threaded"])
def test_a_budget_may_end_anywhere_in_a_batch(backend: str) -> None:
    ranges = ((2, 4),)
    ours, expected = _suspended(ranges=ranges), _suspended(ranges=ranges)
    status = Status.FUEL
    while status is Status.FUEL:
        status = ours.run(11, backend=backend).status
        assert expected.run(11, backend="reference").status is status
        assert ours.machine.snapshot() == expected.machine.snapshot()
    assert ours.collected == expected.collected == f"{SUM}\n"


@pytest.mark.parametrize("backend", ["switch", "threaded"])
def test_items_of_a_batch_print_in_their_order_and_are_finished_once(backend: str) -> None:
    assert _suspended(1).run(backend=backend).output == f"1\n4\n{SUM}\n"


@pytest.mark.parametrize("backend", ["switch", "threaded"])
def test_a_trap_within_a_batch_is_that_of_the_lowest_item(backend: str) -> None:
    execution = _suspended(103)
    with pytest.raises(ferryvm.TrapError, match="index -1, and the length is 7, in item 3"):
        execution.run(backend=backend)


def test_an_interrupted_batch_goes_on_where_it_stopped() -> None:
    execution, printed = _suspended(1), list[str]()

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
    machine = _suspended().machine
    assert machine.objects is not None
    assert learn_next(machine.objects)
    machine.control.pc += 1  # no launch.test
    assert not learn_next(machine.objects)
