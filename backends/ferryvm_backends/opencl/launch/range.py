# SPDX-License-Identifier: Apache-2.0
"""The native code of a range that runs again as before, with all that it accesses compared first.

    as expected? ─> changes ─> kernel ─> head of the slots, results ─> one wait ─> to the machine
       └─ no: UNLIKE                                                 └─ LEFT, FAILED: no copies

All that it does is in a plan, which Python makes: pairs of addresses that must have the same bytes,
arguments of OpenCL's functions, pairs of addresses for copies. So it is one call, between whose
parts no signal handler runs. What is not compared has not changed since the plan's epoch, see
`ferryvm_backends.opencl.launch.gate`.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

from ferryvm.isa.type import WORD_BYTES
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import stack_register
from ferryvm_backends.opencl.launch import (
    STACK,
    GateWords,
    PartWords,
    RangePlan,
    RangeStatus,
)
from ferryvm_backends.opencl.launch.items import LaunchItems
from ferryvm_backends.opencl.launch.plan_function import PlanFunction
from ferryvm_backends.opencl.launch.trampoline import (
    BYTE,
    INT,
    MONOTONIC,
    NULL,
    POINTER,
    WORD,
    offset,
    word,
)

_ENQUEUE = [WORD, WORD, INT, POINTER, WORD, WORD, INT, POINTER, POINTER]
_READ = [WORD, WORD, INT, WORD, WORD, WORD, INT, POINTER, POINTER]
_SET_ARGUMENT = [WORD, INT, WORD, WORD]
_PAIR = [WORD, WORD, WORD]
_READ_WORDS, _SEND_WORDS = 4, 7
_COUNT_WORD = 5
"""The word of an entry of `sends` that counts."""
_ENVIRONMENT_BYTES = 64


def add_range_functions(module: ir.Module) -> None:
    """Add `run_range` and `run_range_apart`, from a `RangePlan` to a `RangeStatus`, `launch_items`,
    from an `ItemRecord` and a control block to a status, and `shut_gate`, for a `GateWords`."""
    inside = _Inside(module).function
    run = _Run(module, inside).function
    _RunApart(module, run)
    LaunchItems(module, inside)
    _ShutGate(module)


class _Inside(PlanFunction):
    """Run a range, with the gate."""

    name, structure = "run_range_inside", RangePlan

    def __init__(self, module: ir.Module) -> None:
        super().__init__(module)
        self.function.linkage = "internal"
        b = self.b
        self._place, time = b.alloca(WORD), b.alloca(ir.ArrayType(WORD, 2))
        unlike = self.ending(RangeStatus.UNLIKE)
        self._failed, self._lost = map(self._failing, (RangeStatus.FAILED, RangeStatus.LOST))
        began = self._now(time)
        limit = b.load(b.inttoptr(self.get("host_stack"), POINTER), align=8, typ=WORD)
        lowest = b.add(limit, word(STACK))
        self.unless(b.icmp_unsigned("<", stack_register(b), lowest), unlike)
        with self._each("checks", len(_PAIR)) as pair:
            self.unless_zero(self.call("compare", INT, _PAIR, *pair), unlike)
        self._mark_unknown(1)
        self._send()
        self._start()
        with self._each("reads", _READ_WORDS) as (buffer, place, size, to):
            given = self.get("queue"), buffer, ir.Constant(INT, 0), place, size, to
            self.unless_zero(self.call("read", INT, _READ, *given, *_no_events()), self._lost)
        with b.if_then(b.icmp_signed("!=", self.get("is_awaited"), word(0))):
            self.unless_zero(self.call("finish", INT, [WORD], self.get("queue")), self._lost)
        head = self.all("head", "zeros", "head_bytes")
        left = self.ending(RangeStatus.LEFT)
        self.unless_zero(self.call("compare", INT, _PAIR, *head), left)
        with self._each("copies", len(_PAIR)) as pair:
            self.call("move", POINTER, _PAIR, *pair)
        self._mark_unknown(0)
        self.add("done", word(1))
        b.store(b.sub(self._now(time), began), self.at("nanoseconds"), align=8)
        b.ret(ir.Constant(INT, RangeStatus.DONE))

    def _failing(self, value: RangeStatus) -> ir.Block:
        """A block that returns a number once nothing is under way."""
        block, before = self.function.append_basic_block(), self.b
        self.b = ir.IRBuilder(block)
        self.call("finish", INT, [WORD], self.get("queue"))
        self.b.ret(ir.Constant(INT, value))
        self.b = before
        return block

    def _now(self, at: ir.Value) -> ir.Value:
        b = self.b
        self.call("clock", INT, [INT, POINTER], ir.Constant(INT, MONOTONIC), at)
        rest = b.gep(at, [word(WORD_BYTES)], source_etype=BYTE)
        seconds, rest = (b.load(place, align=8, typ=WORD) for place in (at, rest))
        return b.add(b.mul(seconds, word(10**9)), rest)

    def _mark_unknown(self, value: int) -> None:
        with self._each("unknown", 1) as (address,):
            self.b.store(word(value), self.b.inttoptr(address, POINTER), align=8)

    def _send(self) -> None:
        """Send what differs."""
        b, attempt = self.b, self.add("attempts", word(1))
        with self._each("sends", _SEND_WORDS) as (buffer, place, size, host, mirror, times, part):
            differs = self.call("compare", INT, _PAIR, host, mirror, size)
            with b.if_then(b.icmp_signed("!=", differs, ir.Constant(INT, 0))):
                self.call("move", POINTER, _PAIR, mirror, host, size)
                entry = b.inttoptr(b.load(self._place, align=8, typ=WORD), POINTER)
                count = b.gep(entry, [word(_COUNT_WORD)], source_etype=WORD)
                b.store(b.add(times, word(1)), count, align=8)
                self._count_part(b.inttoptr(part, POINTER), attempt)
                b.store(word(1), self.at("is_awaited"), align=8)
                given = self.get("queue"), buffer, ir.Constant(INT, 0), place, size, mirror
                sent = self.call("write", INT, _READ, *given, *_no_events())
                self.unless_zero(sent, self._failed)

    def _count_part(self, part: ir.Value, attempt: ir.Value) -> None:
        b = self.b
        last, attempts = (
            b.gep(part, [word(offset(PartWords, name))], source_etype=BYTE)
            for name in ("last", "attempts")
        )
        with b.if_then(b.icmp_unsigned("!=", b.load(last, align=8, typ=WORD), attempt)):
            b.store(attempt, last, align=8)
            b.store(b.add(b.load(attempts, align=8, typ=WORD), word(1)), attempts, align=8)

    def _start(self) -> None:
        """Start the kernel."""
        b = self.b
        number = b.trunc(self.get("argument"), INT)
        launch = self.get("kernel"), number, *self.all("launch_bytes", "launch")
        self.unless_zero(self.call("set_argument", INT, _SET_ARGUMENT, *launch), self._failed)
        handles, sizes = self.all("queue", "kernel"), self.all("sizes", "group")
        dimensions = b.trunc(self.get("dimensions"), INT)
        given = *handles, dimensions, NULL, *sizes
        started = self.call("enqueue", INT, _ENQUEUE, *given, *_no_events())
        self.unless_zero(started, self._failed)

    @contextlib.contextmanager
    def _each(self, name: str, words: int) -> Iterator[list[ir.Value]]:
        """For each entry of a table, which has so many words."""
        b = self.b
        b.store(self.get(name), self._place, align=8)
        size = ctypes.sizeof(ctypes.c_uint64) * words
        end = b.add(self.get(name), b.mul(self.get(f"{name}_count"), word(size)))
        again, inside, behind = (self.function.append_basic_block() for _ in range(3))
        b.branch(again)
        b.position_at_end(again)
        place = b.load(self._place, align=8, typ=WORD)
        b.cbranch(b.icmp_unsigned("<", place, end), inside, behind)
        b.position_at_end(inside)
        base = b.inttoptr(place, POINTER)
        entry = [b.gep(base, [word(n)], source_etype=WORD) for n in range(words)]
        yield [b.load(at, align=8, typ=WORD) for at in entry]
        b.store(b.add(place, word(size)), self._place, align=8)
        b.branch(again)
        b.position_at_end(behind)


class _Run(PlanFunction):
    """Run a range from Python."""

    name, structure = "run_range", RangePlan

    def __init__(self, module: ir.Module, inside: ir.Function) -> None:
        super().__init__(module)
        b = self.b
        self.enter(self.ending(RangeStatus.UNLIKE))
        late, onward = (self.function.append_basic_block() for _ in range(2))
        b.cbranch(self.is_late(), late, onward)
        b.position_at_end(late)
        self.leave()
        b.ret(ir.Constant(INT, RangeStatus.UNLIKE))
        b.position_at_end(onward)
        found = b.call(inside, [self.base])
        self.leave()
        b.ret(found)


class _RunApart(PlanFunction):
    """The same for a thread with another floating-point environment."""

    name, structure = "run_range_apart", RangePlan

    def __init__(self, module: ir.Module, run: ir.Function) -> None:
        super().__init__(module)
        b = self.b
        before = b.alloca(ir.ArrayType(BYTE, _ENVIRONMENT_BYTES), align=16)
        self.call("get_environment", INT, [POINTER], before)
        self.call("set_environment", INT, [WORD], self.get("environment"))
        found = b.call(run, [self.base])
        self.call("set_environment", INT, [POINTER], before)
        b.ret(found)


class _ShutGate(PlanFunction):
    """Begin another epoch, and wait for what runs in this one."""

    name, structure, result = "shut_gate", GateWords, ir.VoidType()

    def __init__(self, module: ir.Module) -> None:
        super().__init__(module)
        b = self.b
        b.atomic_rmw("add", self.at("epoch"), word(1), "seq_cst", 8)
        again, done = (self.function.append_basic_block() for _ in range(2))
        b.branch(again)
        b.position_at_end(again)
        busy = b.load_atomic(self.at("busy"), "seq_cst", 8, WORD)
        b.cbranch(b.icmp_unsigned("==", busy, word(0)), done, again)
        b.position_at_end(done)
        b.ret_void()


def _no_events() -> list[ir.Value]:
    return [ir.Constant(INT, 0), NULL, NULL]
