# SPDX-License-Identifier: Apache-2.0
"""The backend: what it takes, and the way from a region to code."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from ferryvm import cache
from ferryvm.backend import BackendError, Capabilities, Code, Compiler, Forcing, Options
from ferryvm.cost import Cost
from ferryvm.ir.c import C11, Choices, module_text
from ferryvm.ir.c.comment import describer
from ferryvm.ir.graph import Module
from ferryvm.ir.lift import lift
from ferryvm.ir.operation import PURE
from ferryvm.ir.passes import optimise
from ferryvm.ir.text import module_text as ir_text
from ferryvm.isa.type import F32, F64
from ferryvm.machine.declaration import declarations
from ferryvm.region.region import Region

import ferryvm_cc
from ferryvm_cc.compiler import ANOTHER, FLAGS, CCompiler, find, has_loop
from ferryvm_cc.library import Library, RegionCode, fault, unique_name, workplace

LIMITS = Cost(instructions=10_000, words=20_000, frame=2_000)
"""What is refused beyond them takes minutes."""


class CcBackend(Compiler):
    """Native code by way of C."""

    name = "cc"
    version = ferryvm_cc.__version__
    protocol = 1
    capabilities = Capabilities(limits=LIMITS, forcing=frozenset({Forcing.DEOPT}))
    stages = ("ir", "c", "asm")

    def probe(self) -> str | None:
        try:
            find()
        except BackendError as error:
            return str(error).removeprefix("cc: ")
        return None

    def compile(self, region: Region, options: Options) -> Code:
        notes: dict[str, float] = {}
        began = last = time.perf_counter()

        def step(name: str) -> None:
            nonlocal last
            now = time.perf_counter()
            notes[name] = now - last
            last = now

        module = _lifted(region, options)
        step("lift")
        text = _text(module, options)
        step("print")
        compiler = find()
        level = f"-O{options.optimize}"
        made_from = [self.version, text, compiler.identity, *compiler.command, *FLAGS, level]
        entry = cache.Entry(self.name, cache.key(made_from))
        content = entry.find(fault) if options.cache else None
        with workplace() as folder:
            file = folder / unique_name()
            if content is None:
                if not (_may_fold(module) and _fold(compiler, module, options, file)):
                    _build(compiler, text, file, options.optimize)
                step("compile")
                library = Library(file, f"what {compiler.command[0]!r} wrote", ANOTHER)
                if options.cache:  # not before it has shown that it can be loaded
                    entry.keep(file.read_bytes())
            else:
                file.write_bytes(content)
                library = Library(file, f"cache entry {entry.path}", "remove it")
        step("load")
        notes["total"] = time.perf_counter() - began
        return RegionCode(
            library, tuple(module.guards), len(module.functions), content is not None, notes
        )

    def show(self, region: Region, options: Options, stage: str) -> str:
        if stage not in self.stages:
            return super().show(region, options, stage)
        module = _lifted(region, options)
        if stage == "ir":
            return ir_text(module)
        if stage == "c":
            return module_text(
                module, C11, declarations(C11), _choices(options), describer(region.verified)
            )
        with workplace() as folder:
            source = folder / "region.c"
            source.write_text(_text(module, options), encoding="utf-8")
            return find().assemble(source, options.optimize)


def _lifted(region: Region, options: Options) -> Module:
    module = lift(region, options.counting, options.unseen)
    optimise(module, options.optimize, region.verified, check=options.check)
    return module


def _choices(options: Options) -> Choices:
    return Choices(
        guard_limit=options.guard_limit,
        forced=Forcing.DEOPT in options.forcing,
        observed=options.observe,
    )


def _text(module: Module, options: Options) -> str:
    return module_text(module, C11, declarations(C11), _choices(options))


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
    text = module_text(module, C11, declarations(C11), choices)
    source.write_text(text, encoding="utf-8")
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
