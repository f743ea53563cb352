# SPDX-License-Identifier: Apache-2.0
"""Backends with something to report: one for each verdict."""

from __future__ import annotations

from ferryvm.backend import Artifact, Capabilities, Interpreter
from ferryvm.isa import F64, INSTRUCTIONS
from ferryvm.registry import Registry
from ferryvm.verify import Verified
from ferryvm_backends.reference import ReferenceArtifact

from .meaning import with_meanings
from .registry import registry

WRONG = {"f64.add": lambda m, a, b: m.fsub(F64, a, b)}
"""Meanings that are not the table's."""


class Wrong(Interpreter):
    """The reference backend, which subtracts where it should add."""

    name, version = "wrong", "0.1"

    def prepare(self, program: Verified) -> Artifact:
        return with_meanings(program, WRONG)


class Picky(Wrong):
    """It takes programs without floats only."""

    name = "picky"

    def accepts(self, program: Verified) -> str | None:
        opcodes = program.program.code.opcodes.tolist()
        has_floats = any(INSTRUCTIONS[opcode].mnemonic.startswith("f64") for opcode in opcodes)
        return "it has no <floats> & never will" if has_floats else None


class Small(Interpreter):
    """It declares that it can address a few bytes of heap only."""

    name, version = "small", "0.1"
    capabilities = Capabilities(heap=64)

    def prepare(self, program: Verified) -> Artifact:
        return ReferenceArtifact(program)


class Broken(Interpreter):
    """It fails in the middle of a multiplication."""

    name, version = "broken", "0.1"

    def prepare(self, program: Verified) -> Artifact:
        def multiply(m: object, a: int, b: int) -> int:
            raise RuntimeError("<b>smoke</b>")

        return with_meanings(program, {"i64.mul": multiply})


def with_suspects() -> Registry:
    """The registered backends and these."""
    return registry(Wrong, Picky, Small, Broken)
