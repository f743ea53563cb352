# SPDX-License-Identifier: Apache-2.0
"""The backend: its limits, and the steps from a region to code."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ferryvm import cache
from ferryvm.backend import BackendError, Capabilities, Code, Forcing, Options
from ferryvm.compiler import Compilation, RegionCompiler, Target, lifted
from ferryvm.cost import Cost
from ferryvm.ir.c import C11, Choices, module_text
from ferryvm.ir.c.comment import describer
from ferryvm.ir.graph import Module
from ferryvm.ir.operation import PURE
from ferryvm.isa.type import F32, F64
from ferryvm.machine.chunk import ChunkLoop
from ferryvm.machine.declaration import declarations
from ferryvm.region.region import Region

import ferryvm_cc
from ferryvm_cc.chunk import chunk_loop
from ferryvm_cc.compiler import ANOTHER, FLAGS, CCompiler, find, has_loop
from ferryvm_cc.library import Library, RegionCode, fault, unique_name, workplace

LIMITS = Cost(instructions=10_000, words=20_000, frame=2_000)
"""Limits of a region; compiling a larger one takes minutes."""


class CcBackend(RegionCompiler):
    """Native code by way of C."""

    name = "cc"
    version = ferryvm_cc.__version__
    protocol = 1
    capabilities = Capabilities(
        limits=LIMITS,
        forcing=frozenset({Forcing.DEOPT}),
        native=True,
        references=True,
        launches=True,
        known=True,
    )
    stages = ("ir", "c", "asm")

    def probe(self) -> str | None:
        try:
            find()
        except BackendError as error:
            return str(error).removeprefix("cc: ")
        return None

    def targets(self, options: Options) -> Sequence[Target[Any]]:
        return [SharedObject()]

    def chunk_loop(self) -> ChunkLoop:
        return chunk_loop()


class SharedObject(Target[str]):
    """A shared object of this machine, from C text."""

    lowering, building = "print", "compile"

    def lift(self, region: Region, options: Options) -> Module:
        return lifted(region, options, exceptions=True, launches=True, groups=True)

    def lower(self, work: Compilation[str]) -> str:
        return _text(work.module, _choices(work.options))

    def key(self, work: Compilation[str]) -> str:
        compiler = find()
        level = f"-O{work.options.optimize}"
        facts = [compiler.identity, *compiler.command, *FLAGS, level]
        return cache.key([CcBackend.version, work.lowered, *facts])

    def fault(self, payload: bytes) -> str | None:
        return fault(payload)

    def build(self, work: Compilation[str]) -> bytes:
        text, compiler = work.lowered, find()
        with workplace() as folder:
            file = folder / unique_name()
            if not (_may_fold(work.module) and _fold(compiler, work.module, work.options, file)):
                _build(compiler, text, file, work.options.optimize)
            return file.read_bytes()

    def load(self, work: Compilation[str], payload: bytes, found: cache.Entry | None) -> Code:
        culprit, remedy = f"what {find().command[0]!r} wrote", ANOTHER
        if found is not None:
            culprit, remedy = f"cache entry {found.path}", "remove it"
        with workplace() as folder:
            file = folder / unique_name()
            file.write_bytes(payload)
            library = Library(file, culprit, remedy)
        module = work.module
        functions = len(module.functions) + len(module.groups)
        return RegionCode(library, tuple(module.guards), functions, module.ungrouped)

    def show(self, work: Compilation[str], stage: str) -> str:
        if stage == "c":
            describe = describer(work.region.verified)
            choices = _choices(work.options)
            return module_text(work.module, C11, declarations(C11), choices, describe)
        with workplace() as folder:
            source = folder / "region.c"
            source.write_text(work.lowered, encoding="utf-8")
            return find().assemble(source, work.options.optimize)


def _choices(options: Options) -> Choices:
    return Choices(
        guard_limit=options.guard_limit,
        forced=Forcing.DEOPT in options.forcing,
        observed=options.observe,
    )


def _text(module: Module, choices: Choices) -> str:
    return module_text(module, C11, declarations(C11), choices)


_COUNTING = frozenset({"poll", "static", "set_static", "word"})


def _may_fold(module: Module) -> bool:
    """True if a compiler may replace all loops by formulas: they do nothing but count."""
    operations = [o for block in module.root.blocks for o in block.operations]
    return (
        not module.functions
        and not module.counting
        and any(o.name == "poll" for o in operations)
        and all(o.name in _COUNTING or o.name in PURE for o in operations)
        and not any(o.type in (F32, F64) for o in operations)
    )


def _fold(compiler: CCompiler, module: Module, options: Options, file: Path) -> bool:
    """Make the code without polls, if then no loop is left in it: it needs none."""
    choices = dataclasses.replace(_choices(options), polls=False)
    source, assembly = file.with_suffix(".c"), file.with_suffix(".s")
    source.write_text(_text(module, choices), encoding="utf-8")
    assembled = compiler.assemble(source, options.optimize)
    if has_loop(assembled):
        return False
    assembly.write_text(assembled, encoding="utf-8")
    compiler.compile(assembly, file, options.optimize)
    return True


def _build(compiler: CCompiler, text: str, file: Path, level: int) -> None:
    source = file.with_suffix(".c")
    source.write_text(text, encoding="utf-8")
    compiler.compile(source, file, level)
