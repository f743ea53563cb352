# SPDX-License-Identifier: Apache-2.0
"""Programs written by hand: iterations that overlap, exits in delay slots of jumps, orders of
stores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from ferryvm.isa.emitter import Condition
from ferryvm.isa.type import I64
from ferryvm_backends.vliw.code.operation import (
    MachineBlock,
    MachineCode,
    MachineOperation,
    MemoryOperand,
    Operand,
    Register,
    Segment,
)
from ferryvm_backends.vliw.code.program import (
    Bundle,
    Immediate,
    LoopSummary,
    Program,
    Read,
    Slot,
    Source,
)
from ferryvm_backends.vliw.machine.model import FileKind, Machine
from ferryvm_backends.vliw.machine.read import read_text
from ferryvm_backends.vliw.prove.claim import Claim, ScheduleError
from ferryvm_backends.vliw.prove.proof import prove

MACHINE = read_text(
    """
name = "hand"
clock = 50
slots = 6
immediates = 4
delay_slots = 1
predication = false
bypass = false
instructions = 100
memory = 1024
transfer = { bytes_per_cycle = 1, setup = 1 }
file = [
  { name = "r", kind = "integer", registers = 8, read_ports = 8, write_ports = 4 },
  { name = "p", kind = "boolean", registers = 4, read_ports = 4, write_ports = 2 },
]
unit = [
  { name = "alu", count = 2, work = { move = 1, add = 1, compare = 1 } },
  { name = "memory", count = 2, work = { load = 2, store = 1 } },
  { name = "control", work = { branch = 1 } },
]
""",
    "hand.toml",
)
ALU, OTHER, LOADS, STORES, CONTROL = range(5)
LESS = (I64, Condition.LT_S)
HEAP, STACK = MemoryOperand(Segment.HEAP), MemoryOperand(Segment.STACK)
TOP, NEXT = MemoryOperand(Segment.CONTROL), MemoryOperand(Segment.CONTROL, 8)


def r(number: int) -> Read:
    return Read(0, number)


BOOLEAN = Read(1, 0)


def do(unit: int, name: str, *sources: Source, to: Read | None = None) -> Slot:
    static = LESS if name == "compare" else () if name == "move" else (I64,)
    return Slot(unit, name, static, sources, to, True, name == "compare")


def load(place: MemoryOperand, address: Source, to: Read) -> Slot:
    return Slot(LOADS, "load", (), (address,), to, True, place=place)


def store(place: MemoryOperand, address: Source, value: Source) -> Slot:
    return Slot(STORES, "store", (), (address, value), place=place)


def go(name: str, target: int | None, *sources: Source) -> Slot:
    return Slot(CONTROL, name, (), sources, target=target)


NIL, EIGHT = Immediate(0), Immediate(8)


class Hand:
    """Machine code and what it is claimed to be."""

    def __init__(self) -> None:
        self.code = MachineCode("hand", [])
        self.numbers: dict[Register, Read] = {}

    def register(self, kind: FileKind, to: Read) -> Register:
        found = self.code.register(kind)
        self.numbers[found] = to
        return found

    def block(self, label: str) -> MachineBlock:
        self.code.blocks.append(MachineBlock(label))
        return self.code.blocks[-1]

    def prove(
        self,
        bundles: list[Bundle],
        places: dict[MachineBlock, int],
        loop: LoopSummary,
        machine: Machine = MACHINE,
    ) -> None:
        labels = {place: block.label for block, place in places.items()}
        program = Program("hand", machine, tuple(bundles), labels, (), (), 0, 0, 0, (loop,))
        prove(self.code, program, Claim(places, self.numbers))


def op(
    name: str,
    *operands: Operand,
    to: Register | None = None,
    place: MemoryOperand | None = None,
    target: MachineBlock | None = None,
) -> MachineOperation:
    static = {"compare": LESS, "add": (I64,)}.get(name, ())
    return MachineOperation(name, static, operands, to, place, target)


NO_LOOP = LoopSummary("", -1, 1, 0, 0, 1, 1, 1, "", 1)

# Of two iterations that overlap: A and B are v0 of each other iteration, S the sum, V what was
# loaded.
A, END, V, S, B = (r(number) for number in range(5))
BEGIN, ROUND, AGAIN, LAST, DRAIN, MOVE, DONE, OVER, SIZE = 0, 4, 8, 16, 16, 20, 23, 25, 27


def pipelined() -> list[Bundle]:
    """Stores of one iteration are in the next; the loop's own bundles are those from AGAIN on."""
    ask = lambda of: do(ALU, "compare", of, END, to=BOOLEAN)
    step = lambda of, to: do(ALU, "add", of, EIGHT, to=to)
    double = do(OTHER, "add", V, V, to=S)
    return [
        (load(TOP, NIL, A),),
        (load(NEXT, NIL, END), go("jump", ROUND)),
        (),
        (),
        (ask(A), load(HEAP, A, V)),
        (go("exit_unless", DONE, BOOLEAN),),
        (),
        (step(A, B), double),
        (ask(B), load(HEAP, B, V), store(STACK, A, S)),
        (go("exit_unless", MOVE, BOOLEAN),),
        (),
        (step(B, A), double),
        (ask(A), load(HEAP, A, V), store(STACK, B, S)),
        (go("exit_unless", DONE, BOOLEAN),),
        (dataclasses.replace(go("repeat", DRAIN), again=AGAIN),),
        (step(A, B), double),
        (store(STACK, A, S),),
        (do(ALU, "move", B, to=A),),
        (go("jump", OVER),),
        (),
        (do(ALU, "move", B, to=A),),
        (go("jump", DONE),),
        (),
        (store(TOP, NIL, A), go("stop", None)),
        (),
        (store(NEXT, NIL, A), go("stop", None)),
        (),
    ]


def prove_pipelined(bundles: list[Bundle], loop: LoopSummary | None = None) -> None:
    hand = Hand()
    integer = FileKind.INTEGER
    entry, body, done, over = map(hand.block, ("entry", "loop", "done", "over"))
    v0, v1 = hand.register(integer, A), hand.register(integer, END)
    v2, v3, v4 = (hand.code.register(integer) for _ in range(3))
    p = hand.code.register(FileKind.BOOLEAN)
    entry.operations = [
        op("load", 0, to=v0, place=TOP),
        op("load", 0, to=v1, place=NEXT),
        op("jump", target=body),
    ]
    body.operations = [
        op("compare", v0, v1, to=p),
        op("exit_unless", p, target=done),
        op("load", v0, to=v2, place=HEAP),
        op("add", v2, v2, to=v3),
        op("store", v0, v3, place=STACK),
        op("add", v0, 8, to=v4),
        op("move", v4, to=v0),
        op("exit_expired", target=over),
        op("jump", target=body),
    ]
    done.operations = [op("store", 0, v0, place=TOP), op("stop")]
    over.operations = [op("store", 0, v0, place=NEXT), op("stop")]
    places = {entry: BEGIN, body: ROUND, done: DONE, over: OVER}
    loop = loop or LoopSummary("loop", -1, 1, AGAIN, LAST, 2, 2, 1, "", 1)
    hand.prove(bundles, places, loop)


def test_rounds_that_overlap_are_followed() -> None:
    assert len(pipelined()) == SIZE
    prove_pipelined(pipelined())


def test_a_loop_that_the_program_does_not_tell_of_is_an_error() -> None:
    with pytest.raises(
        ScheduleError, match=r"^hand: bundle 14, cycle \d+ of block loop: control goes"
    ):
        prove_pipelined(pipelined(), NO_LOOP)


def _with(number: int, unit: int, **fields: object) -> Callable[[], list[Bundle]]:
    def change() -> list[Bundle]:
        bundles = pipelined()
        bundles[number] = tuple(
            dataclasses.replace(slot, **fields) if slot.unit == unit else slot  # type: ignore[arg-type]  # tests
            for slot in bundles[number]
        )
        return bundles

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_with(8, STORES, sources=(B, S)), r"store stack.* should be done, and "),
        (_with(12, STORES, sources=(A, S)), r"store stack.* should be done, and "),
        (_with(12, ALU, sources=(B, END)), r"v0 in r\.0, which block over needs"),
        (_with(9, CONTROL, target=DONE), r"v0 in r\.0, which block done needs, should be add"),
        (_with(13, CONTROL, target=MOVE), r"v0 in r\.0, which block done needs, should be"),
        (_with(15, ALU, written=None), r"v0 in r\.0|store stack"),
        (_with(15, OTHER, sources=(V, S)), r"what is stored to stack\[.* should be add"),
        (_with(14, CONTROL, again=AGAIN + 1), r"without a check of compare"),
        (_with(16, STORES, sources=(B, S)), r"store stack.* should be done, and "),
        (_with(17, ALU, sources=(A,)), r"v0 in r\.0, which block over needs"),
        (_with(14, CONTROL, target=None), r"the time is over is never looked at in a loop"),
        (_with(18, CONTROL, target=DONE), r"control goes to block done"),
    ],
)
def test_a_fault_of_rounds_that_overlap_is_found(
    change: Callable[[], list[Bundle]], said: str
) -> None:
    with pytest.raises(ScheduleError, match=said):
        prove_pipelined(change())


# --- an exit in the delay slots of a jump ---------------------------------------------------


def _leaving(*first: Slot) -> None:
    """Prove code that leaves in the delay slot of a jump; the slots are in the jump's target."""
    hand = Hand()
    entry, onward, other = map(hand.block, ("entry", "onward", "other"))
    v0, v1 = (hand.register(FileKind.INTEGER, r(number)) for number in range(2))
    p = hand.code.register(FileKind.BOOLEAN)
    entry.operations = [
        op("load", 0, to=v0, place=TOP),
        op("compare", v0, 8, to=p),
        op("exit", p, target=other),
        op("jump", target=onward),
    ]
    onward.operations = [
        op("add", v0, 8, to=v1),
        op("store", 0, v1, place=TOP),
        op("stop"),
    ]
    other.operations = [op("store", 0, v0, place=NEXT), op("stop")]
    bundles = [
        (load(TOP, NIL, r(0)),),
        (),
        (do(ALU, "compare", r(0), EIGHT, to=BOOLEAN), go("jump", 4)),
        (go("exit", 7, BOOLEAN),),
        first,
        (store(TOP, NIL, r(1)), go("stop", None)),
        (),
        (store(NEXT, NIL, r(0)), go("stop", None)),
        (),
    ]
    hand.prove(bundles, {entry: 0, onward: 4, other: 7}, NO_LOOP)


ADD = do(ALU, "add", r(0), EIGHT, to=r(1))


def test_an_exit_in_the_delay_slots_of_a_jump_takes_effect_in_its_turn() -> None:
    _leaving(ADD)


def test_what_the_target_of_the_jump_does_until_then_is_done() -> None:
    with pytest.raises(ScheduleError, match=r"v0 in r\.0, which block other needs, should be load"):
        _leaving(dataclasses.replace(ADD, written=r(0)))
    with pytest.raises(ScheduleError, match=r"the store heap\[.* should not be done, by the exit"):
        _leaving(ADD, store(HEAP, NIL, r(0)))


def test_branches_do_nothing_while_an_exit_is_on_its_way() -> None:
    # The jump would lead elsewhere, and does where there is no exit: when the block is entered.
    with pytest.raises(ScheduleError, match=r"of block onward: .* should not be done"):
        _leaving(ADD, go("jump", 7))


# --- orders of stores -----------------------------------------------------------------------

AT, BESIDE, FAR = r(0), r(1), r(2)


def _storing(far: int, *stores: tuple[Slot, ...]) -> None:
    """Prove code that stores 1 at v0, 2 at v1, which is anywhere, 3 at v2, which is `far` behind
    v0, and loads from there."""
    hand = Hand()
    (entry,) = (hand.block("entry"),)
    v0, v1, v2, v3 = (hand.code.register(FileKind.INTEGER) for _ in range(4))
    entry.operations = [
        op("load", 0, to=v0, place=TOP),
        op("load", 0, to=v1, place=NEXT),
        op("add", v0, far, to=v2),
        op("store", v0, 1, place=HEAP),
        op("store", v1, 2, place=HEAP),
        op("store", v2, 3, place=HEAP),
        op("load", v2, to=v3, place=HEAP),
        op("store", 0, v3, place=TOP),
        op("stop"),
    ]
    bundles = [
        (load(TOP, NIL, AT),),
        (load(NEXT, NIL, BESIDE),),
        (do(ALU, "add", AT, Immediate(far), to=FAR),),
        *stores,
        (),
        (store(TOP, NIL, V),),
        (go("stop", None),),
        (),
    ]
    hand.prove(bundles, {entry: 0}, NO_LOOP)


ONE, TWO, THREE = (store(HEAP, at, Immediate(n)) for n, at in enumerate((AT, BESIDE, FAR), 1))
SEEN = load(HEAP, FAR, V)


def test_stores_that_are_apart_may_change_places() -> None:
    _storing(8, (ONE,), (TWO,), (THREE,), (SEEN,))
    _storing(8, (ONE,), (TWO,), (THREE,), (), (SEEN,))
    _storing(8, (dataclasses.replace(ONE, unit=LOADS),), (TWO,), (THREE,), (SEEN,))
    with pytest.raises(ScheduleError, match="stores that may overlap are done in another order"):
        _storing(8, (TWO,), (ONE,), (THREE,), (SEEN,))


def test_whether_stores_are_apart_is_found_from_sums() -> None:
    both = (ONE, dataclasses.replace(THREE, unit=LOADS))
    message = r"(?s)load heap\[.*\+8\]:8 sees stores that may overlap in another order"
    with pytest.raises(ScheduleError, match=message):
        _storing(8, both, (TWO,), (SEEN,))
    with pytest.raises(ScheduleError, match="two stores that may overlap in one cycle"):
        _storing(7, both, (TWO,), (SEEN,))


def test_a_load_sees_the_stores_before_it_and_no_other() -> None:
    with pytest.raises(ScheduleError, match=r"load heap.* does not see the store heap.* = #3"):
        _storing(8, (ONE,), (TWO,), (SEEN, THREE))
    with pytest.raises(ScheduleError, match=r"does not see the store heap\[load control"):
        _storing(8, (ONE,), (), (THREE,), (SEEN,))


def test_a_block_has_an_end() -> None:
    hand = Hand()
    entry = hand.block("entry")
    entry.operations = [op("store", 0, 1, place=TOP)]
    with pytest.raises(ScheduleError, match="block entry does not end with a jump or stop"):
        hand.prove([(store(TOP, NIL, Immediate(1)),)], {entry: 0}, NO_LOOP)


# --- predicates -----------------------------------------------------------------------------


def _depending(predicate: bool = True, may: bool = True) -> None:
    """Prove code with a sum that is either of two, and a store that is done in one case;
    `predicate`: of the slot of one sum."""
    hand = Hand()
    (entry,) = (hand.block("entry"),)
    v0, v1 = (hand.code.register(FileKind.INTEGER) for _ in range(2))
    p = hand.code.register(FileKind.BOOLEAN)

    def on(holds: bool, operation: MachineOperation) -> MachineOperation:
        return dataclasses.replace(operation, operands=(*operation.operands, p), holds=holds)

    def if_(holds: bool, slot: Slot) -> Slot:
        return dataclasses.replace(slot, predicate=(BOOLEAN, holds))

    entry.operations = [
        op("load", 0, to=v0, place=TOP),
        op("compare", v0, 8, to=p),
        on(True, op("add", v0, 1, to=v1)),
        on(False, op("add", v0, 2, to=v1)),
        on(False, op("store", v0, v1, place=HEAP)),
        op("store", 0, v1, place=TOP),
        op("stop"),
    ]
    bundles = [
        (load(TOP, NIL, r(0)),),
        (),
        (do(ALU, "compare", r(0), EIGHT, to=BOOLEAN),),
        (if_(False, do(ALU, "add", r(0), Immediate(2), to=r(1))),),
        (if_(predicate, do(ALU, "add", r(0), Immediate(1), to=r(1))),),
        (if_(False, store(HEAP, r(0), r(1))),),
        (store(TOP, NIL, r(1)), go("stop", None)),
        (),
    ]
    hand.prove(bundles, {entry: 0}, NO_LOOP, dataclasses.replace(MACHINE, predication=may))


def test_what_depends_on_a_truth_is_done_if_that_holds() -> None:
    _depending()
    with pytest.raises(
        ScheduleError, match=r"what is stored to heap\[.* should be .*#1 instead of #2"
    ):
        _depending(predicate=False)


def test_predicates_are_for_machines_that_have_them() -> None:
    with pytest.raises(ScheduleError, match="has a predicate, and the machine has no predication"):
        _depending(may=False)
