# SPDX-License-Identifier: Apache-2.0
"""The threaded backend: native handlers that tail-call each other, with fused instructions."""

from __future__ import annotations

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
from ferryvm_backends._llvm.form import Form, FormArtifact, launch_tests
from ferryvm_backends._llvm.native import processor_problem
from ferryvm_backends.threaded.form import FusedForm
from ferryvm_backends.threaded.interpreter import Interpreters, ThreadedInterpreter

_TARGETS = frozenset(row.opcode for row in INSTRUCTIONS if row.immediate is Immediate.TARGET)
_CALLS = frozenset(row.opcode for row in INSTRUCTIONS if row.immediate is Immediate.FUNCTION)


class ThreadedArtifact(FormArtifact):
    """Cells: handler and immediate of each instruction, with targets and functions as addresses."""

    def __init__(
        self, find: Callable[[frozenset[int], bool], ThreadedInterpreter], verified: Verified
    ) -> None:
        """`find`: an interpreter with handlers for some instructions, that pay fuel or do not."""
        super().__init__()
        self._find = find
        code = verified.program.code
        self._opcodes = code.opcodes.tolist()
        self._interpreter = find(frozenset(self._opcodes), False)
        self._immediates = code.immediates.tolist()
        self._targets = [pc for pc, opcode in enumerate(self._opcodes) if opcode in _TARGETS]
        self._calls = [pc for pc, opcode in enumerate(self._opcodes) if opcode in _CALLS]
        self._verified = verified
        self._launches = launch_tests(verified.program)
        self._of_forms: list[array[int]] = []
        """The descriptors of each form, which its cells point to."""

    def _make(self, counting: bool) -> Form:
        if counting:
            loaded = self._find(frozenset(self._opcodes), True)
            words = self._words([loaded.counting[opcode] for opcode in self._opcodes])
            return Form(words, loaded.counting_cells, self._launches, loaded.publish)
        loaded = self._interpreter
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

    def _slot_runner(self) -> int:
        return self._interpreter.slot_runner

    def _call(self, counting: bool) -> Callable[[int], int]:
        return self._interpreter.call


class ThreadedBackend(Interpreter):
    """Native code by tail calls."""

    name = "threaded"
    version = ferryvm.__version__
    capabilities = Capabilities(cells=True)

    def probe(self) -> str | None:
        return processor_problem()

    def __init__(self) -> None:
        self._interpreters = Interpreters()

    def prepare(self, program: Verified) -> Artifact:
        return ThreadedArtifact(lambda *_: self._interpreters.whole, program)

    def prepare_soon(self, program: Verified) -> Artifact:
        return ThreadedArtifact(self._interpreters.soonest, program)


BACKEND = ThreadedBackend()
