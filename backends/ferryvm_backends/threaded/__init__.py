# SPDX-License-Identifier: Apache-2.0
"""The threaded backend: native handlers that tail-call each other, with fused instructions."""

from __future__ import annotations

import ctypes
import functools
import json

import numpy as np
import numpy.typing as npt

import ferryvm
from ferryvm.backend import Artifact, Backend
from ferryvm.isa import INSTRUCTIONS, Immediate
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.program import CODE_DTYPE
from ferryvm.verify import Verified
from ferryvm_backends._llvm.native import load_or_build, probe
from ferryvm_backends.threaded import symbol
from ferryvm_backends.threaded.fusion import Fusion

Cells = npt.NDArray[np.uint64]

_TARGETS = [row.opcode for row in INSTRUCTIONS if row.immediate is Immediate.TARGET]


class ThreadedInterpreter:
    """The handlers, loaded."""

    def __init__(self) -> None:
        self._code, notes = load_or_build(__package__)
        fused: list[list[int]] = json.loads(notes)
        single = len(INSTRUCTIONS)
        self.run = self._code.function(symbol.RUN)
        self.plain = self._table(symbol.PLAIN, single + len(fused))
        self.counting = self._table(symbol.COUNTING, single)
        self.fusion = Fusion(fused, single)

    def _table(self, symbol: str, count: int) -> Cells:
        table = (ctypes.c_uint64 * count).from_address(self._code.address(symbol))
        return np.array(table, np.uint64)


class ThreadedArtifact(Artifact):
    """Cells: handler and immediate of each instruction, with targets as addresses."""

    def __init__(self, interpreter: ThreadedInterpreter, verified: Verified) -> None:
        self._interpreter = interpreter
        code = verified.program.code
        self._opcodes = code["opcode"].astype(np.int64)
        self._immediates = code["immediate"]
        self._targets = np.flatnonzero(np.isin(self._opcodes, _TARGETS))

    @functools.cached_property
    def _plain(self) -> Cells:
        handlers = self._interpreter.fusion.handlers(self._opcodes.tolist())
        return self._cells(self._interpreter.plain[handlers])

    @functools.cached_property
    def _counting(self) -> Cells:
        return self._cells(self._interpreter.counting[self._opcodes])

    def _cells(self, handlers: Cells) -> Cells:
        cells = np.ascontiguousarray(np.stack([handlers, self._immediates], axis=1))
        base, size = np.uint64(cells.ctypes.data), np.uint64(CODE_DTYPE.itemsize)
        cells[self._targets, 1] = base + size * cells[self._targets, 1]
        return cells

    def enter(self, machine: Machine, counting: bool) -> Status:
        machine.control.code = (self._counting if counting else self._plain).ctypes.data
        self._interpreter.run(machine.address)
        return machine.status


class ThreadedBackend(Backend):
    """Native code by tail calls."""

    name = "threaded"
    version = ferryvm.__version__

    def probe(self) -> str | None:
        return probe(__package__)

    def prepare(self, program: Verified) -> Artifact:
        return ThreadedArtifact(self._interpreter, program)

    @functools.cached_property
    def _interpreter(self) -> ThreadedInterpreter:
        return ThreadedInterpreter()


BACKEND = ThreadedBackend()
