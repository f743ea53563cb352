# SPDX-License-Identifier: Apache-2.0
"""The interpreter's native code, loaded: all handlers, or those of some instructions.

    cache has all handlers ───────────────────────────> all of them
    else ── handlers of one program's instructions ───> at once, without fused instructions
         └─ a thread, later ── all handlers ──────────> the cache, for programs from then on

To build all handlers takes as long as many programs run; to build the handlers of one program takes
a tenth of a second.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
import time
from collections.abc import Iterable

from ferryvm import cache
from ferryvm.isa import INSTRUCTIONS
from ferryvm.thread import ThreadError, start
from ferryvm_backends._llvm.form import CellOperations
from ferryvm_backends._llvm.loader import NativeCode
from ferryvm_backends._llvm.native import entry_of, key, load_or_build, made
from ferryvm_backends.threaded import fusion, symbol

PACKAGE = __package__

LATER = 2.0
"""Seconds after which a process that has built a part builds all handlers: many have ended by
then."""

FEW = 4
"""Programs of a process for which parts are built: the next part has all instructions."""

_ALL = frozenset(row.opcode for row in INSTRUCTIONS)


class ThreadedInterpreter:
    """Handlers, loaded."""

    def __init__(
        self, code: NativeCode, notes: bytes, opcodes: frozenset[int], counts: Iterable[bool]
    ) -> None:
        """`notes`: the fused groups; `opcodes`: the instructions that have handlers, `counts`: of
        which kinds."""
        self._code, self.opcodes, self.counts = code, opcodes, frozenset(counts)
        single = len(INSTRUCTIONS)
        self.run = self._code.function(symbol.RUN)
        self.call = self._code.call(symbol.CALL)
        self.publish = self._code.publisher()
        self.fusion = fusion.Fusion(notes, single)
        self.plain = self._table(symbol.PLAIN, single + self.fusion.count)
        """Addresses of handlers by opcode, then of groups; 0: there is none."""
        self.counting = self._table(symbol.COUNTING, single)
        self.resumption = self._code.address(symbol.RESUME)
        self.slot_runner = self._code.address(symbol.SLOT)
        count = len(CellOperations._fields)
        cells = self._table(symbol.CELLS, 2 * count)
        self.plain_cells = CellOperations(*cells[:count])
        """Handlers of cells."""
        self.counting_cells = CellOperations(*cells[count:])

    def _table(self, symbol: str, count: int) -> list[int]:
        return list((ctypes.c_uint64 * count).from_address(self._code.address(symbol)))


class Interpreters:
    """The interpreters of a process."""

    def __init__(self) -> None:
        self._parts: list[ThreadedInterpreter] = []
        self._lock = threading.Lock()
        self._is_awaited = False

    @functools.cached_property
    def whole(self) -> ThreadedInterpreter:
        """All handlers, from the cache or built."""
        code, notes = load_or_build(PACKAGE)
        return ThreadedInterpreter(code, notes, _ALL, (False, True))

    def soonest(self, opcodes: frozenset[int], counting: bool) -> ThreadedInterpreter:
        """Handlers for at least these instructions, as soon as they can be had."""
        if "whole" in vars(self) or entry_of(PACKAGE).path.exists():
            return self.whole
        with self._lock:
            self._build_later()
            for part in self._parts:
                if opcodes <= part.opcodes and counting in part.counts:
                    return part
            is_many = len(self._parts) >= FEW
            part = _part(_ALL if is_many else opcodes, counting)
            self._parts.append(part)
            return part

    def _build_later(self) -> None:
        if self._is_awaited:
            return
        self._is_awaited = True

        def build() -> None:
            time.sleep(LATER)
            load_or_build(PACKAGE, is_quiet=True)

        with contextlib.suppress(ThreadError):  # programs run with parts
            start(build)


def _part(opcodes: frozenset[int], counting: bool) -> ThreadedInterpreter:
    """Handlers for some instructions, from the cache or built in this process."""
    facts = [key(PACKAGE), str(counting), *map(str, sorted(opcodes))]

    def build() -> bytes:
        from ferryvm_backends._llvm.build import compile_module  # all of LLVM
        from ferryvm_backends.threaded.module import build_part

        return compile_module(build_part(opcodes, counting), True)

    entry = cache.Entry("threaded-part", cache.key(facts), "threaded")
    return ThreadedInterpreter(*made(entry, build), opcodes, (counting,))
