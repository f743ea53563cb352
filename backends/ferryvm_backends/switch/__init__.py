# SPDX-License-Identifier: Apache-2.0
"""The switch backend: one native function, a loop around a switch over opcodes."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

import ferryvm
from ferryvm.backend import Artifact, Backend
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.program import CODE_DTYPE
from ferryvm.verify import Verified
from ferryvm_backends._llvm.native import load_or_build, probe
from ferryvm_backends.switch import symbol


class SwitchInterpreter:
    """Both loops, loaded."""

    def __init__(self) -> None:
        self._code, _ = load_or_build(__package__, merge_tails=False)
        self.plain = self._code.function(symbol.PLAIN)
        self.counting = self._code.function(symbol.COUNTING)


class SwitchArtifact(Artifact):
    """The program's own code array."""

    def __init__(self, interpreter: SwitchInterpreter, verified: Verified) -> None:
        self._interpreter = interpreter
        self._code = np.ascontiguousarray(verified.program.code, CODE_DTYPE)

    def enter(self, machine: Machine, counting: bool) -> Status:
        machine.control.code = self._code.ctypes.data
        run: Callable[[int], None] = (
            self._interpreter.counting if counting else self._interpreter.plain
        )
        run(machine.address)
        return machine.status


class SwitchBackend(Backend):
    """Native code around one switch."""

    name = "switch"
    version = ferryvm.__version__

    def probe(self) -> str | None:
        return probe(__package__)

    def prepare(self, program: Verified) -> Artifact:
        return SwitchArtifact(self._interpreter, program)

    @functools.cached_property
    def _interpreter(self) -> SwitchInterpreter:
        return SwitchInterpreter()


BACKEND = SwitchBackend()
