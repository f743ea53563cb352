# SPDX-License-Identifier: Apache-2.0
"""Launches: items in order, and items suspended and resumed by any backend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import ferryvm
from ferryvm import Engine
from ferryvm.engine.execution import Execution
from ferryvm.engine.result import ProgramInterrupted
from ferryvm.image import ImageError
from ferryvm.isa import Trap
from ferryvm.machine.active_item import innermost, running_item
from ferryvm.machine.control import Status
from ferryvm.machine.launch import suspend
from ferryvm.machine.memory import AddressSpaceError, Limits
from ferryvm.machine.piece import elements, pieces, read
from ferryvm.testing.differential import Differ, Verdict
from ferryvm.testing.schedule import Schedule
from ferryvm.verify import verify

from ..launching import launch

INTERPRETERS = ("reference", "switch", "threaded")

SQUARES = f"""
.host print_i64 (i64)
.host print_f64 (f64)
.struct pair left i64[] right f64

.function main
    i64.const 6
    array.new_default_i64
    f64.const 0.5
    struct.new pair
    i64.const 7
    i64.const 6
{launch("put", drops=4)}
    struct.get pair.left
    call total
    host print_i64
    halt

.function put (item i64, to pair, factor i64)
.local mine i64[]
    i64.const 1
    array.new_default_i64
    local.set mine
    local.get mine
    i64.const 0
    local.get item
    call square
    local.get factor
    i64.mul
    array.set_i64
    local.get to
    struct.get pair.left
    local.get item
    local.get mine
    i64.const 0
    array.get_i64
    array.set_i64
    return

.function square (of i64) -> i64
    local.get of
    local.get of
    i64.mul
    return

.function total (of i64[]) -> i64
.local at i64 sum i64
:again
    local.get at
    local.get of
    array.length
    i64.lt_s
    jump_unless over
    local.get sum
    local.get of
    local.get at
    array.get_i64
    i64.add
    local.set sum
    local.get at
    i64.const 1
    i64.add
    local.set at
    jump again
:over
    local.get sum
    return
"""
TOTAL = 7 * sum(item * item for item in range(6))

RECURSIVE = f"""
.host print_i64 (i64)
.function main
    i64.const 3
{launch("deep", drops=3)}
    halt
.function deep (depth i64)
.local one anyref two i64
    local.get depth
    host print_i64
    local.get depth
    i64.const 0
    i64.gt_s
    jump_unless over
    local.get depth
    i64.const 1
    i64.sub
    call deep
:over
    return
"""


def _started(text: str, backend: str = "reference", limits: Limits | None = None) -> Execution:
    return Engine(backend, limits=limits or Limits()).start(ferryvm.assemble(text))


def _step(execution: Execution, backend: str) -> bool:
    """Run one instruction; True if the program can go on."""
    return execution.run(1, backend=backend).status is Status.FUEL


def _into_item(execution: Execution, steps: int = 30) -> int:
    """Run so far that an item is in the middle; the word of the launch's frame."""
    execution.run(steps)
    frame = innermost(execution.machine)
    assert frame is not None
    return frame


@pytest.mark.rotate("backend", most=2)
@pytest.mark.parametrize("backend", ["switch", "threaded", "llvm", "opencl", "vliw"])
def test_items_run_in_order_on_every_backend(backend: str) -> None:
    program = ferryvm.assemble(SQUARES)
    assert Engine(backend).start(program).run().output == f"{TOTAL}\n"


def test_a_launch_completes_as_many_instructions_whether_disturbed_or_not() -> None:
    undisturbed = _started(SQUARES)
    while _step(undisturbed, "reference"):
        pass
    disturbed, suspended, number = _started(SQUARES), 0, 0
    while _step(disturbed, INTERPRETERS[number % 3]):
        number += 1
        frame = innermost(disturbed.machine)
        if frame is not None:
            suspend(disturbed.machine, frame)
            suspended += 1
    assert suspended > 100
    assert disturbed.instructions == undisturbed.instructions
    assert disturbed.machine.snapshot() == undisturbed.machine.snapshot()


@pytest.mark.parametrize("text", [SQUARES, RECURSIVE], ids=["squares", "recursive"])
def test_the_schedule_suspends_items_at_every_boundary(text: str) -> None:
    differ = Differ(["switch", "threaded"])
    (found,) = differ.compare(verify(ferryvm.assemble(text)), Schedule.SUSPEND)
    assert found.verdict is Verdict.AGREE, found.difference


def test_a_suspended_item_and_the_rest_of_its_range_are_in_the_record() -> None:
    execution = _started(SQUARES)
    frame = _into_item(execution, steps=45)
    machine = execution.machine
    pc, sp = machine.control.pc, machine.control.sp
    suspend(machine, frame)
    stack = machine.memory.stack
    limit, next_, record = stack[machine.control.sp - 3 : machine.control.sp]
    assert limit == next_
    assert machine.objects is not None
    item, rest = pieces(machine.objects, record)
    assert (item.first, item.end, item.pc) == (limit - 1, limit, pc)
    assert (rest.first, rest.end, rest.words, rest.next) == (limit, 6, 0, 0)
    assert execution.run(1).status is Status.FUEL
    assert machine.control.sp >= sp - 2


def test_a_state_with_a_record_is_saved_and_resumed(tmp_path: Path) -> None:
    execution = _started(SQUARES)
    suspend(execution.machine, _into_item(execution))
    execution.save(tmp_path / "state")
    again = Engine("threaded").resume(tmp_path / "state")
    assert again.run().output == f"{TOTAL}\n"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda piece, words, references: words.__setitem__(3, words[3] + 1), "do not return to a"),
        (lambda piece, words, references: words.__setitem__(1, 8), "bits that its type has not"),
        (lambda piece, words, references: references.__setitem__(0, 5), "what is not a pair"),
        (lambda piece, words, references: piece.__setitem__(2, 1), "not as large as their stack"),
        (lambda piece, words, references: piece.__setitem__(2, 999), "which follows no call"),
        (lambda piece, words, references: piece.__setitem__(3, 2), "not as large as their stack"),
        (lambda piece, words, references: piece.__setitem__(5, 0), "words or references alone"),
    ],
)
def test_a_forged_item_in_a_saved_state_is_refused(
    change: Callable[[memoryview, memoryview, memoryview], None], expected: str, tmp_path: Path
) -> None:
    execution = _started(SQUARES)
    machine = execution.machine
    suspend(machine, _into_item(execution))
    objects = machine.objects
    assert objects is not None
    objects.collect()
    reference = machine.memory.stack[machine.control.sp - 1]
    piece = read(objects, reference)
    fields = objects.space.words[reference // 8 + 1 : reference // 8 + 8]
    change(fields, elements(objects, piece.words), elements(objects, piece.references))
    execution.save(tmp_path / "state")
    with pytest.raises(ImageError, match=expected):
        Engine("reference").resume(tmp_path / "state")


def test_an_item_keeps_its_number_where_it_is_suspended_again() -> None:
    execution = _started(SQUARES)
    machine = execution.machine
    frame = _into_item(execution, steps=20)
    item = running_item(machine)
    for _ in range(3):
        suspend(machine, frame)
        assert running_item(machine) is None
        execution.run(1)
        assert running_item(machine) == item


def test_references_in_a_suspended_item_survive_a_collection() -> None:
    execution = _started(SQUARES)
    suspend(execution.machine, _into_item(execution))
    assert execution.machine.objects is not None
    execution.machine.objects.collect()
    assert execution.run().output == f"{TOTAL}\n"


def test_a_piece_of_another_launch_traps() -> None:
    execution = _started(SQUARES)
    machine = execution.machine
    frame = _into_item(execution)
    suspend(machine, frame)
    assert machine.objects is not None
    stack = machine.memory.stack
    piece = next(pieces(machine.objects, stack[machine.control.sp - 1]))
    at = piece.words // 8 + 3
    parameters = 3
    machine.objects.space.words[at + parameters] += 1  # as if it returned elsewhere
    with pytest.raises(ferryvm.TrapError, match="record of another launch") as raised:
        execution.run()
    assert raised.value.kind is Trap.INVALID_LAUNCH


def test_no_room_for_a_suspended_item_changes_nothing() -> None:
    execution = _started(SQUARES, limits=Limits(objects=400))
    frame = _into_item(execution)
    before = execution.machine.snapshot()
    with pytest.raises(AddressSpaceError, match=r"the limit is 400; raise Limits\.objects"):
        suspend(execution.machine, frame)
    assert execution.machine.snapshot() == before


def test_a_negative_number_of_items_traps() -> None:
    with pytest.raises(ferryvm.TrapError, match="negative number of items"):
        _started(SQUARES.replace("i64.const 6\n    launch", "i64.const -6\n    launch")).run()


def test_a_suspended_item_with_many_references_stays_within_the_limit() -> None:
    text, outcomes = RECURSIVE.replace("i64.const 3", "i64.const 30"), set()
    for limit in range(960, 1280, 8):
        execution = _started(text, limits=Limits(objects=limit))
        frame = _into_item(execution, steps=2080)
        control = execution.machine.control
        try:
            suspend(execution.machine, frame)
        except AddressSpaceError:
            outcomes.add("no room")
        else:
            outcomes.add("suspended")
            assert control.object_top <= control.object_end <= limit
    assert outcomes == {"no room", "suspended"}


def test_an_interrupt_in_an_item_names_it() -> None:
    text = "(define (f item) (print! item) (define i 0) (while (< i 9) (set! i (+ i 1))))"
    execution = Engine("threaded").start(ferryvm.compile(f"{text} (for-each-item 9 (f))", "p"))
    printed: list[bytes] = []

    def print_(output: bytes) -> None:
        printed.append(output)
        execution.machine.control.interrupt = b"".join(printed).startswith(b"0\n1\n2\n3")

    execution.output = print_
    with pytest.raises(
        ProgramInterrupted, match=r"^p:1:\d+: interrupted, in item 3\n    in f at p"
    ):
        execution.run()
