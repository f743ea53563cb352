# SPDX-License-Identifier: Apache-2.0
"""Two C++ interpreters of ferryvm's own bytecode, for the loop programs.

They read the very code records that the Skiff twin is compiled to, so what differs is dispatch
alone. They know the instructions that those programs need and refuse code with others.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.benchmark import ROOT, Benchmark, Scale
from benchmarks.build import BUILD, build, written
from benchmarks.peers.ferry import compiled
from benchmarks.peers.peer import MissingError, Peer, Task, first_line, measured, tool
from ferryvm.isa import INSTRUCTIONS
from ferryvm.program import Program

PROGRAMS = ("loop", "loopmix")

# Without these gcc merges the handlers' indirect jumps into one, which is what a switch has.
CPP_FLAGS = ("-O3", "-std=c++17", "-fno-gcse", "-fno-crossjumping")


class BytecodePeer(Peer):
    """A C++ interpreter with one way of dispatch, written in benchmarks/peers."""

    def __init__(self, source: str, dispatch: str) -> None:
        self.source = ROOT / "peers" / f"{source}.cpp"
        self.name = f"cpp-{source}"
        self.label = f"C++ {dispatch}"

    def version(self) -> str:
        return f"benchmarks/peers/{self.source.name} by {first_line([tool('g++'), '--version'])}"

    def prepare(self, benchmark: Benchmark, scale: Scale) -> Task:
        if benchmark.name not in PROGRAMS:
            raise MissingError(f"written for {' and '.join(PROGRAMS)} only")
        opcodes = written("opcodes.h", opcode_header().encode())
        shared = ROOT / "peers" / "bytecode.hpp"
        flags = [tool("g++"), *CPP_FLAGS, f"-I{BUILD}", f"-I{shared.parent}"]
        interpreter = build(self.name, flags, [self.source], [shared, opcodes])
        code = code_file(benchmark, scale)
        return lambda: measured(benchmark, [str(interpreter), str(code)])


def opcode_header() -> str:
    """C text with the number of every instruction of the table."""
    names = [f"    OP_{row.mnemonic.replace('.', '_')} = {row.opcode}," for row in INSTRUCTIONS]
    return "\n".join(
        ["#pragma once", "enum Opcode {", *names, f"    OPCODES = {len(INSTRUCTIONS)}", "};", ""]
    )


def code_file(benchmark: Benchmark, scale: Scale) -> Path:
    """The Skiff twin's bytecode in the form that bytecode.hpp reads."""
    name = f"{benchmark.name}-{scale.value}"
    return written(f"{name}.code", code_bytes(compiled(benchmark, scale)))


def code_bytes(program: Program) -> bytes:
    """Statics, entry and locals of main as words, then the records as they are."""
    main = program.functions[0]
    statics = [static.bits for static in program.statics]
    words = np.array([len(statics), main.entry, len(main.locals), *statics], dtype="<u8")
    return words.tobytes() + program.code.tobytes()
