# SPDX-License-Identifier: Apache-2.0
"""The threaded backend: native handlers that tail-call each other, with fused instructions."""

from __future__ import annotations

import ctypes
import functools
from array import array
from collections.abc import Callable

import ferryvm
from ferryvm.backend import Artifact, Capabilities, Interpreter
from ferryvm.isa import INSTRUCTIONS, Immediate
from ferryvm.isa.emitter import FunctionField
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import DESCRIPTOR_WORDS
from ferryvm.machine.state import descriptors
from ferryvm.program import RECORD_BYTES
from ferryvm.verify import Verified
from ferryvm_backends._llvm.form import CellOperations, Form, FormArtifact, launch_tests
from ferryvm_backends._llvm.native import load_or_build, processor_problem
from ferryvm_backends.threaded import fusion, symbol
from ferryvm_backends.threaded.form import FusedForm

_TARGETS = frozenset(row.opcode for row in INSTRUCTIONS if row.immediate is Immediate.TARGET)
_CALLS = frozenset(row.opcode for row in INSTRUCTIONS if row.immediate is Immediate.FUNCTION)


class ThreadedInterpreter:
    """The handlers, loaded."""

    def __init__(self) -> None:
        self._code, notes = load_or_build(__package__)
        single = len(INSTRUCTIONS)
        self.run = self._code.function(symbol.RUN)
        self.call = self._code.call(symbol.CALL)
        self.publish = self._code.publisher()
        self.fusion = fusion.Fusion(notes, single)
        self.plain = self._table(symbol.PLAIN, single + self.fusion.count)
        self.counting = self._table(symbol.COUNTING, single)
        self.resumption = self._code.address(symbol.RESUME)
        count = len(CellOperations._fields)
        cells = self._table(symbol.CELLS, 2 * count)
        self.plain_cells = CellOperations(*cells[:count])
        """Handlers of cells."""
        self.counting_cells = CellOperations(*cells[count:])

    def _table(self, symbol: str, count: int) -> list[int]:
        return list((ctypes.c_uint64 * count).from_address(self._code.address(symbol)))


class ThreadedArtifact(FormArtifact):
    """Cells: handler and immediate of each instruction, with targets and functions as addresses."""

    def __init__(self, interpreter: ThreadedInterpreter, verified: Verified) -> None:
        super().__init__()
        self._interpreter = interpreter
        code = verified.program.code
        self._opcodes = code.opcodes.tolist()
        self._immediates = code.immediates.tolist()
        self._targets = [pc for pc, opcode in enumerate(self._opcodes) if opcode in _TARGETS]
        self._calls = [pc for pc, opcode in enumerate(self._opcodes) if opcode in _CALLS]
        self._verified = verified
        self._launches = launch_tests(verified.program)
        self._of_forms: list[array[int]] = []
        """The descriptors of each form, which its cells point to."""

    def _make(self, counting: bool) -> Form:
        loaded = self._interpreter
        if counting:
            words = self._words([loaded.counting[opcode] for opcode in self._opcodes])
            return Form(words, loaded.counting_cells, self._launches, loaded.publish)
        return FusedForm(
            loaded.fusion,
            loaded.plain,
            self._opcodes,
            self._words,
            loaded.plain_cells,
            self._launches,
            loaded.publish,
        )

    def _words(self, handlers: list[int]) -> array[int]:
        """The cells, with a handler's address each."""
        words = array("Q", bytes(RECORD_BYTES * len(handlers)))
        words[0::2] = array("Q", handlers)
        words[1::2] = array("Q", self._immediates)
        base, _ = words.buffer_info()
        for pc in self._targets:
            words[2 * pc + 1] = base + RECORD_BYTES * self._immediates[pc]
        first = self._own_descriptors(base)
        for pc in self._calls:
            words[2 * pc + 1] = first + WORD_BYTES * DESCRIPTOR_WORDS * self._immediates[pc]
        return words

    def _own_descriptors(self, base: int) -> int:
        """The address of descriptors whose entries are cells of the form at `base`."""
        words = array("Q", [word for row in descriptors(self._verified) for word in row])
        entries = slice(FunctionField.ENTRY, None, DESCRIPTOR_WORDS)
        words[entries] = array("Q", [base + RECORD_BYTES * pc for pc in words[entries]])
        self._of_forms.append(words)
        return words.buffer_info()[0]

    def _run(self, address: int, counting: bool) -> None:
        self._interpreter.run(address)

    def _resumption(self, counting: bool) -> int:
        return self._interpreter.resumption

    def _call(self, counting: bool) -> Callable[[int], int]:
        return self._interpreter.call


class ThreadedBackend(Interpreter):
    """Native code by tail calls."""

    name = "threaded"
    version = ferryvm.__version__
    capabilities = Capabilities(cells=True)

    def probe(self) -> str | None:
        return processor_problem()

    def prepare(self, program: Verified) -> Artifact:
        return ThreadedArtifact(self._interpreter, program)

    @functools.cached_property
    def _interpreter(self) -> ThreadedInterpreter:
        return ThreadedInterpreter()


BACKEND = ThreadedBackend()
