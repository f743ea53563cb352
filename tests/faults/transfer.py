# SPDX-License-Identifier: Apache-2.0
"""Faults in giving control back and taking it over: fuel, registers, stores not written yet."""

from __future__ import annotations

from typing import Any

from ferryvm.float_environment import callers
from ferryvm.isa.emitter import FunctionField
from ferryvm.isa.frame import HEADER_WORDS, return_counts
from ferryvm.isa.type import I64, signed
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.testing import Schedule

from .control import owner
from .fault import TRANSFER, Body, Enter, Fault, add, entering, operation
from .integer import DIVISIONS

_MOVED = Schedule.EVERY_BOUNDARY

# --- fuel ---------------------------------------------------------------------------------------


@entering("halt", witness="nop")
def fuel_paid_twice_at_halt(enter: Enter, machine: Machine, counting: bool) -> Status:
    """halt is paid inside the backend, and by the engine once more."""
    status = enter(machine, counting)
    machine.control.fuel -= status is Status.HALT and counting
    return status


@entering(
    "host", witness=".host print_i64 (i64) / .function main / i64.const 1 / host print_i64 / halt"
)
def fuel_paid_twice_at_host(enter: Enter, machine: Machine, counting: bool) -> Status:
    """A host call is paid inside the backend, and by the engine once more."""
    status = enter(machine, counting)
    machine.control.fuel -= status is Status.HOST and counting
    return status


@entering(TRANSFER, witness="nop / trap")
def fuel_paid_for_a_trap(enter: Enter, machine: Machine, counting: bool) -> Status:
    """The instruction that traps is paid."""
    status = enter(machine, counting)
    machine.control.fuel -= status is Status.TRAP and counting
    return status


@entering("heap.alloc", witness="i64.const 5000 / heap.alloc")
def fuel_paid_for_growth(enter: Enter, machine: Machine, counting: bool) -> Status:
    """An allocation that waits for the heap to grow is paid, and again when it is done."""
    status = enter(machine, counting)
    machine.control.fuel -= status is Status.GROW and counting
    return status


def _free(right: Body, m: Any, p: Any, target: Any) -> Any:
    if p and m.counting:
        m.control.fuel += 1
    return right(m, p, target)


add(
    Fault(
        "fuel-not-paid-at-jumps-taken",
        "jump_if and jump_unless that jump are not paid.",
        ("jump_if", "jump_unless"),
        "i32.const 1 / jump_if end / nop / :end / nop",
        operations={"jump_if": _free},
    )
)


@entering(TRANSFER, witness="nop / nop / nop", schedule=_MOVED)
def fuel_overdrawn(enter: Enter, machine: Machine, counting: bool) -> Status:
    """It leaves one instruction later than the fuel allows, which it has then overdrawn."""
    status = enter(machine, counting)
    if status is Status.FUEL:
        machine.control.fuel += 1
        status = enter(machine, counting)
        machine.control.fuel -= 1
    return status


@entering(TRANSFER, witness=" / ".join(["nop"] * 999), schedule=Schedule.RANDOM)
def fuel_not_used_up(enter: Enter, machine: Machine, counting: bool) -> Status:
    """It leaves for want of fuel while there is still one unit, if it was given more."""
    if not counting or machine.control.fuel < 2:
        return enter(machine, counting)
    machine.control.fuel -= 1
    status = enter(machine, counting)
    machine.control.fuel += 1
    return status


@entering(TRANSFER, witness="nop / nop / nop / nop / nop", schedule=_MOVED)
def fuel_rounded_up(enter: Enter, machine: Machine, counting: bool) -> Status:
    """It runs one instruction more than the fuel allows and pays nothing for it."""
    status = enter(machine, counting)
    if status is Status.FUEL:
        machine.control.fuel = 1
        status = enter(machine, counting)
        machine.control.fuel = 0
    return status


# --- stores not written yet ---------------------------------------------------------------------


def _writing_late(set_: str, name: str, what: str, where: str, witness: str) -> None:
    """Declare the fault that the last store of a kind is lost when it leaves for want of fuel."""

    def store(right: Body, m: Any, index: int, slot: int) -> None:
        old = (m.local if set_ == "set_local" else m.static)(index)
        m.unwritten = (m.pc, index, old)
        right(m, index, slot)

    def arrive(right: Body, m: Any) -> None:
        m.unwritten = (-1, 0, 0)
        right(m)

    def leave(right: Body, m: Any, status: Status) -> None:
        pc, index, old = m.unwritten
        if status is Status.FUEL and pc == m.last >= 0:
            if set_ == "set_local":
                m.stack[m.fp + signed(I64, index)] = old
            elif index < len(m.statics):
                m.statics[index] = old
        right(m, status)

    operations: dict[str, Body] = {set_: store, "arrive": arrive, "leave": leave}
    add(Fault(name, what, (where,), witness, schedule=_MOVED, operations=operations))


_writing_late(
    "set_local",
    "store-into-a-local-lost",
    "A store into a local is lost where fuel runs out right after it.",
    "local.set",
    ".function main / .local i64 / i64.const 1 / local.set 0 / local.get 0 / halt",
)
_writing_late(
    "set_static",
    "store-into-a-static-lost",
    "A store into a static is lost where fuel runs out right after it.",
    "static.set",
    ".static a i64 = 3 / .function main / i64.const 1 / static.set a / halt",
)


def _remember_heap(right: Body, m: Any, bytes_: int, address: int, value: int) -> None:
    m.unwritten = (m.pc, bytes_, address, m.heap_load(bytes_, address))
    right(m, bytes_, address, value)


def _forget(right: Body, m: Any) -> None:
    m.unwritten = (-1, 0, 0, 0)
    right(m)


def _undo_heap(right: Body, m: Any, status: Status) -> None:
    pc, bytes_, address, old = m.unwritten
    if status is Status.FUEL and pc == m.last >= 0:
        m.memory.heap[address : address + bytes_] = old.to_bytes(bytes_, "little")
    right(m, status)


add(
    Fault(
        "store-into-the-heap-lost",
        "A store into the heap is lost where fuel runs out right after it.",
        ("i32.store", "i64.store", "f32.store", "f64.store", "i32.store8", "i64.store8"),
        ".data 0 i64 0 / .function main / nop / i64.const 0 / i64.const 1 / i64.store / halt",
        schedule=_MOVED,
        operations={"heap_store": _remember_heap, "arrive": _forget, "leave": _undo_heap},
    )
)


@entering(
    TRANSFER,
    witness=".static a i64 = 3 / .function main / nop / i64.const 1 / static.set a / nop / nop / halt",
    schedule=_MOVED,
)
def static_kept_between_entries(enter: Enter, machine: Machine, counting: bool) -> Status:
    """It keeps the first static in a register when it leaves for want of fuel, and goes on with
    that when it is entered again."""
    control, statics = machine.control, machine.memory.statics
    kept: dict[int, int] = getattr(machine, "kept_static", {})
    if len(statics) and 0 in kept:
        statics[0] = kept[0]
    status = enter(machine, counting)
    kept.clear()
    if len(statics) and control.fuel == 0 and status is Status.FUEL:
        kept[0] = statics[0]
    machine.kept_static = kept  # type: ignore[attr-defined]
    return status


# --- registers ----------------------------------------------------------------------------------


@operation("leave", where=(TRANSFER,), witness="i64.const 1 / i64.const 2", schedule=_MOVED)
def stack_pointer_stale_at_leave(right: Body, m: Any, status: Status) -> None:
    """Where fuel runs out right after a constant, the stack pointer is as it was before it."""
    if status is Status.FUEL and m.last >= 0 and m.mnemonics[m.last].endswith(".const"):
        m.sp -= 1
    right(m, status)


@operation(
    "arrive",
    where=("call", "call_indirect"),
    witness=".function main / i64.const 5 / call f / halt / "
    ".function f (i64) -> i64 / local.get 0 / i64.const 1 / i64.add / return",
    schedule=_MOVED,
)
def frame_pointer_lost_at_entry(right: Body, m: Any) -> None:
    """Entered in a callee, it starts with the frame pointer of main."""
    m.fp = 0
    right(m)


@operation(
    "arrive",
    where=("call", "call_indirect"),
    witness=".function main / nop / i64.const 5 / call f / halt / "
    ".function f (i64) -> i64 / local.get 0 / i64.const 1 / i64.add / return",
    schedule=_MOVED,
)
def first_parameter_cleared_at_entry(right: Body, m: Any) -> None:
    """Entered in a callee, it clears the callee's first parameter."""
    if m.fp and (parameters := m.functions[owner(m)][FunctionField.PARAMETERS]):
        m.stack[m.fp - parameters] = 0
    right(m)


@operation("leave", where=(TRANSFER,), witness="i64.const 1 / i64.const 0 / i64.div_u")
def pc_past_the_trap(right: Body, m: Any, status: Status) -> None:
    """A trap leaves pc at the next instruction."""
    if status is Status.TRAP:
        m.pc += 1
    right(m, status)


@entering(
    *DIVISIONS,
    witness="i64.const 1 / i64.const 0 / i64.div_u",
)
def trap_kind_not_written(enter: Enter, machine: Machine, counting: bool) -> Status:
    """A division by zero leaves the trap kind of before."""
    before = machine.control.trap
    status = enter(machine, counting)
    if status is Status.TRAP and machine.control.trap == 2:
        machine.control.trap = before
    return status


# --- entered in the middle ----------------------------------------------------------------------


def _at_entry(m: Any, *mnemonics: str) -> bool:
    """Whether the instruction being run is the first of this entry and one of these."""
    return m.completed == 0 and m.mnemonics[m.pc] in mnemonics


@operation(
    "host",
    where=("host",),
    witness=".host print_i64 (i64) / .function main / i64.const 1 / host print_i64 / halt",
    schedule=_MOVED,
)
def host_call_lost_at_entry(right: Body, m: Any, number: Any) -> Any:
    """A host call that is the first instruction of an entry writes nothing."""
    if m.completed:
        return right(m, number)
    m.sp -= 1  # all standard host functions take one argument
    return None


def _split(right: Body, m: Any, a: int, b: int) -> Any:
    before = m.mnemonics[m.pc - 1] if m.pc else ""
    if _at_entry(m, "i64.add", "i64.sub") and before == "i64.const":
        return a
    return right(m, a, b)


add(
    Fault(
        "fused-pair-entered-in-the-middle",
        "Entered between i64.const and i64.add or i64.sub, it leaves the constant out.",
        ("i64.add", "i64.sub"),
        "nop / i64.const 1 / i64.const 2 / i64.add",
        schedule=_MOVED,
        rows={"i64.add": _split, "i64.sub": _split},
    )
)


def _again(right: Body, m: Any, p: Any, target: Any) -> Any:
    backward = target <= m.pc
    return right(m, p and not (m.completed == 0 and backward), target)


add(
    Fault(
        "loop-left-at-entry",
        "Entered at a jump_if or jump_unless back to a loop's head, it leaves the loop.",
        ("jump_if", "jump_unless"),
        ".function main / .local i64 / :next / local.get 0 / i64.const 1 / i64.add / local.set 0 / "
        "local.get 0 / i64.const 4 / i64.lt_u / jump_if next / local.get 0 / halt",
        schedule=_MOVED,
        operations={"jump_if": _again},
    )
)


def _no_calls(right: Body, m: Any) -> None:
    m.calls = 0
    right(m)


def _count_call(right: Body, m: Any, function: int, frame: int, stack: int) -> None:
    m.calls += 1
    right(m, function, frame, stack)


def _lose(right: Body, m: Any, counts: int) -> None:
    parameters, _ = return_counts(counts)
    top, caller = m.fp - parameters - 1, m.fp - m.stack[m.fp + 1]
    if not m.calls and top >= caller + HEADER_WORDS:
        m.stack[top] = 0
    m.calls = max(m.calls - 1, 0)
    right(m, counts)


add(
    Fault(
        "operand-of-the-caller-lost",
        "A return from a function that it was entered in clears the caller's top operand.",
        ("call", "call_indirect"),
        ".function main / i64.const 9 / call f / i64.add / halt / "
        ".function f () -> i64 / i64.const 1 / return",
        schedule=_MOVED,
        rows={"return": _lose},
        operations={"arrive": _no_calls, "enter": _count_call},
    )
)

# --- the floating-point environment ---------------------------------------------------------------


@entering(
    "f64.add",
    "f64.mul",
    "f64.div",
    "f64.sqrt",
    witness="f64.const 3e300" + " / f64.sqrt" * 7,
    schedule=Schedule.ENVIRONMENT,
    native=False,
)
def callers_environment(enter: Enter, machine: Machine, counting: bool) -> Status:
    """It computes in the caller's floating-point environment, as an interpreter that nobody
    protects."""
    with callers():
        return enter(machine, counting)
