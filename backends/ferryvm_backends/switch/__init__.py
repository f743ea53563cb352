# SPDX-License-Identifier: Apache-2.0
"""The switch backend: one native function, a loop around a switch over opcodes."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Callable

import ferryvm
from ferryvm.backend import Artifact, Capabilities, Interpreter
from ferryvm.verify import Verified
from ferryvm_backends._llvm.form import CellOperations, Form, FormArtifact, launch_tests
from ferryvm_backends._llvm.native import load_or_build, processor_problem
from ferryvm_backends.switch import symbol

_CELLS = CellOperations(symbol.COUNT_OPCODE, symbol.ENTER_OPCODE, symbol.LAUNCH_OPCODE)


class SwitchInterpreter:
    """Both loops, loaded."""

    def __init__(self) -> None:
        self._code, _ = load_or_build(__package__, merge_tails=False)
        self.plain = self._code.function(symbol.PLAIN)
        self.counting = self._code.function(symbol.COUNTING)
        self.call = self._code.call(symbol.CALL)
        self.counting_call = self._code.call(symbol.COUNTING_CALL)
        self.resumption = self._code.address(symbol.RESUME)
        self.counting_resumption = self._code.address(symbol.COUNTING_RESUME)
        self.slot_runner = self._code.address(symbol.SLOT)
        self.publish = self._code.publisher()


class SwitchArtifact(FormArtifact):
    """Copies of the program's own code array, with opcodes for the cells."""

    def __init__(self, interpreter: SwitchInterpreter, verified: Verified) -> None:
        super().__init__()
        self._interpreter = interpreter
        self._code = verified.program.code
        self._launches = launch_tests(verified.program)

    def _make(self, counting: bool) -> Form:
        words = array("Q", self._code.tobytes())
        publish = self._interpreter.publish
        return Form(words, _CELLS, self._launches, publish)

    def _run(self, address: int, counting: bool) -> None:
        (self._interpreter.counting if counting else self._interpreter.plain)(address)

    def _resumption(self, counting: bool) -> int:
        loaded = self._interpreter
        return loaded.counting_resumption if counting else loaded.resumption

    def _slot_runner(self) -> int:
        return self._interpreter.slot_runner

    def _call(self, counting: bool) -> Callable[[int], int]:
        return self._interpreter.counting_call if counting else self._interpreter.call


class SwitchBackend(Interpreter):
    """Native code around one switch."""

    name = "switch"
    version = ferryvm.__version__
    capabilities = Capabilities(cells=True)

    def probe(self) -> str | None:
        return processor_problem()

    def prepare(self, program: Verified) -> Artifact:
        return SwitchArtifact(self._interpreter, program)

    @functools.cached_property
    def _interpreter(self) -> SwitchInterpreter:
        return SwitchInterpreter()


BACKEND = SwitchBackend()
