# SPDX-License-Identifier: Apache-2.0
"""The native code of a range that runs again as before, with all that it accesses compared first.

    as expected? ─> changes ─> kernel ─> head of the slots, results ─> one wait ─> to the machine
       └─ no: UNLIKE                                                 └─ LEFT, FAILED: no copies

All that it does is in a plan, which Python makes: pairs of addresses that must have the same bytes,
arguments of OpenCL's functions, pairs of addresses for copies. So it is one call, between whose
parts no signal handler runs.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence

from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import stack_register
from ferryvm_backends.opencl.launch import STACK, RangePlan, RangeStatus
from ferryvm_backends.opencl.launch.trampoline import BYTE, INT, NULL, POINTER, WORD, offset, word

_ENQUEUE = [WORD, WORD, INT, POINTER, WORD, WORD, INT, POINTER, POINTER]
_READ = [WORD, WORD, INT, WORD, WORD, WORD, INT, POINTER, POINTER]
_PAIR = [WORD, WORD, WORD]
_READ_WORDS, _SEND_WORDS = 4, 6


def add_range_function(module: ir.Module) -> None:
    """Add `run_range`, from a `RangePlan` to a `RangeStatus`."""
    _RangeFunction(module)


class _RangeFunction:
    def __init__(self, module: ir.Module) -> None:
        self.function = ir.Function(module, ir.FunctionType(INT, [POINTER]), "run_range")
        (self._plan,) = self.function.args
        self.b = b = ir.IRBuilder(self.function.append_basic_block("entry"))
        self._place = b.alloca(WORD)
        self._unlike, self._failed, self._lost, self._left = (
            self._ending(each)
            for each in (
                *(RangeStatus.UNLIKE, RangeStatus.FAILED),
                *(RangeStatus.LOST, RangeStatus.LEFT),
            )
        )
        limit = b.load(b.inttoptr(self._get("host_stack"), POINTER), align=8, typ=WORD)
        lowest = b.add(limit, word(STACK))
        self._unless(b.icmp_unsigned("<", stack_register(b), lowest), self._unlike)
        with self._each("checks", len(_PAIR)) as pair:
            self._unless_zero(self._call("compare", INT, _PAIR, *pair), self._unlike)
        with self._each("sends", _SEND_WORDS) as (buffer, place, size, host, mirror, _):
            differs = self._call("compare", INT, _PAIR, host, mirror, size)
            with b.if_then(b.icmp_signed("!=", differs, ir.Constant(INT, 0))):
                self._call("move", POINTER, _PAIR, mirror, host, size)
                b.store(word(1), self._last_of(_SEND_WORDS), align=8)
                b.store(word(1), self._at("is_awaited"), align=8)
                given = self._get("queue"), buffer, ir.Constant(INT, 0), place, size, mirror
                sent = self._call("write", INT, _READ, *given, *_no_events())
                self._unless_zero(sent, self._failed)
        handles, sizes = self._all("queue", "kernel"), self._all("sizes", "group")
        dimensions = b.trunc(self._get("dimensions"), INT)
        started = self._call(
            "enqueue", INT, _ENQUEUE, *handles, dimensions, NULL, *sizes, *_no_events()
        )
        self._unless_zero(started, self._failed)
        with self._each("reads", _READ_WORDS) as (buffer, place, size, to):
            given = self._get("queue"), buffer, ir.Constant(INT, 0), place, size, to
            self._unless_zero(self._call("read", INT, _READ, *given, *_no_events()), self._lost)
        with b.if_then(b.icmp_signed("!=", self._get("is_awaited"), word(0))):
            self._unless_zero(self._call("finish", INT, [WORD], self._get("queue")), self._lost)
        head = self._all("head", "zeros", "head_bytes")
        self._unless_zero(self._call("compare", INT, _PAIR, *head), self._left)
        with self._each("copies", len(_PAIR)) as pair:
            self._call("move", POINTER, _PAIR, *pair)
        b.ret(ir.Constant(INT, RangeStatus.DONE))

    def _ending(self, status: RangeStatus) -> ir.Block:
        block = self.function.append_basic_block()
        builder = ir.IRBuilder(block)
        if status in (RangeStatus.FAILED, RangeStatus.LOST):  # copies may be under way
            self.b, before = builder, self.b
            self._call("finish", INT, [WORD], self._get("queue"))
            self.b = before
        builder.ret(ir.Constant(INT, status))
        return block

    def _at(self, name: str) -> ir.Value:
        return self.b.gep(self._plan, [word(offset(RangePlan, name))], source_etype=BYTE)

    def _get(self, name: str) -> ir.Value:
        return self.b.load(self._at(name), align=8, typ=WORD)

    def _all(self, *names: str) -> list[ir.Value]:
        return [self._get(name) for name in names]

    def _call(
        self, name: str, result: ir.Type, kinds: Sequence[ir.Type], *given: ir.Value
    ) -> ir.Value:
        address = self.b.inttoptr(self._get(name), POINTER)
        return self.b.call(ir.Callee(address, ir.FunctionType(result, kinds)), given)

    def _unless(self, condition: ir.Value, target: ir.Block) -> None:
        """Go on, or to a block if it holds."""
        further = self.function.append_basic_block()
        self.b.cbranch(condition, target, further)
        self.b.position_at_end(further)

    def _unless_zero(self, found: ir.Value, target: ir.Block) -> None:
        self._unless(self.b.icmp_signed("!=", found, ir.Constant(INT, 0)), target)

    def _last_of(self, words: int) -> ir.Value:
        """The place of the last word of the entry of a table at which `_each` is."""
        base = self.b.inttoptr(self.b.load(self._place, align=8, typ=WORD), POINTER)
        return self.b.gep(base, [word(words - 1)], source_etype=WORD)

    @contextlib.contextmanager
    def _each(self, name: str, words: int) -> Iterator[list[ir.Value]]:
        """For each entry of a table, which has so many words."""
        b = self.b
        b.store(self._get(name), self._place, align=8)
        size = ctypes.sizeof(ctypes.c_uint64) * words
        end = b.add(self._get(name), b.mul(self._get(f"{name}_count"), word(size)))
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


def _no_events() -> list[ir.Value]:
    return [ir.Constant(INT, 0), NULL, NULL]
