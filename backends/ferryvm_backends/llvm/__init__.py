# SPDX-License-Identifier: Apache-2.0
"""The llvm backend: regions as native code, through the region IR and LLVM's optimiser."""

from __future__ import annotations

import functools
import hashlib
import json
import time

import numpy as np

import ferryvm
from ferryvm.backend import BackendError, Capabilities, Code, Compiler, Forcing, Options
from ferryvm.ir.graph import Module
from ferryvm.region.graph import Block, graph
from ferryvm.region.region import Region
from ferryvm_backends._llvm import cache
from ferryvm_backends._llvm.native import key, probe

LARGEST = 20_000
"""Instructions of a region with all that it calls, past which it is refused: LLVM would take
minutes."""


class LlvmBackend(Compiler):
    """Native code."""

    name = "llvm"
    version = ferryvm.__version__
    capabilities = Capabilities(forcing=frozenset(Forcing))
    stages = ("ir", "llvm", "optimized", "asm")

    def probe(self) -> str | None:
        return probe(__package__)

    def accepts(self, region: Region) -> str | None:
        called = {*region.callees, *region.functions} - {region.function}
        size = len([pc for pc in region.pcs if region.verified.owner(pc) == region.function])
        size += sum(_size(region, number) for number in called)
        if size > LARGEST:
            return f"{size} instructions with what it calls, more than {LARGEST}"
        return None

    def compile(self, region: Region, options: Options) -> Code:
        from ferryvm_backends._llvm.native import NativeCode
        from ferryvm_backends.llvm.native import RegionCode

        notes: dict[str, float] = {}

        def build() -> bytes:
            return _build(region, options, notes)

        began = time.perf_counter()
        content = cache.get("region", _key(region, options), build) if options.cache else build()
        end = 8 + int.from_bytes(content[:8], "little")
        guards: list[int] = json.loads(content[8:end])
        native = NativeCode(content[end:])
        is_from_cache = not notes
        notes["total"] = time.perf_counter() - began
        return RegionCode(native, tuple(guards), is_from_cache, notes)

    def show(self, region: Region, options: Options, stage: str) -> str:
        from ferryvm.ir.text import module_text
        from ferryvm_backends._llvm.native import target_machine
        from ferryvm_backends.llvm.lower import lower
        from ferryvm_backends.llvm.native import optimise, parsed

        if stage not in self.stages:
            return super().show(region, options, stage)
        module = _prepared(region, options)
        if stage == "ir":
            return module_text(module)
        native = parsed(lower(module, options))
        if stage == "llvm":
            return str(native)
        optimise(native, options.optimize)
        return str(native) if stage == "optimized" else target_machine().emit_assembly(native)


def _size(region: Region, function: int) -> int:
    blocks = graph(region.verified, function).blocks.values()
    return sum(block.last + 1 - block.first for block in blocks)


def _prepared(region: Region, options: Options) -> Module:
    from ferryvm.ir.lift import lift
    from ferryvm.ir.passes.pipeline import optimise

    module = lift(region, options.counting, options.unseen)
    optimise(module, max(options.optimize, 1), region.verified)
    return module


def _build(region: Region, options: Options, notes: dict[str, float]) -> bytes:
    """What the cache keeps: length of the notes on guards, these notes, object code."""
    from ferryvm_backends.llvm.lower import guards_of, lower
    from ferryvm_backends.llvm.native import emitted, has_loop, optimise, parsed

    began = time.perf_counter()

    def step(name: str) -> None:
        nonlocal began
        now = time.perf_counter()
        notes[name] = notes.get(name, 0.0) + now - began
        began = now

    module = _prepared(region, options)
    guards = json.dumps(guards_of(module)).encode()
    step("lift")
    try:
        native = None
        if _may_fold(module):
            native = parsed(lower(module, options, polls=False))
            step("lower")
            optimise(native, options.optimize)
            step("optimise")
        if native is None or has_loop(native):
            native = parsed(lower(module, options))
            step("lower")
            optimise(native, options.optimize)
            step("optimise")
        code = emitted(native)
        step("emit")
    except RuntimeError as error:
        line = str(error).strip().splitlines()[0]
        raise BackendError(f"llvm: region {region.name}: LLVM refuses the code: {line}") from error
    return len(guards).to_bytes(8, "little") + guards + code


_FOLDING = frozenset(
    [
        "add",
        "sub",
        "mul",
        "shl",
        "bit_and",
        "compare",
        "poll",
        "static",
        "set_static",
        "all",
        "any",
        "none",
        "select",
        "word",
    ]
)
"""Operations of loops that LLVM can replace by a formula."""


def _may_fold(module: Module) -> bool:
    """Whether all loops may fold away: they do nothing but count."""
    return (
        not module.functions
        and not module.counting
        and all(
            operation.name in _FOLDING
            for block in module.root.blocks
            for operation in block.operations
        )
    )


@functools.cache
def _versions() -> str:
    return key(__package__, "ferryvm.ir", "ferryvm.region")


def _key(region: Region, options: Options) -> str:
    """The key of a region's code: everything that it is made from."""
    program = region.verified.program
    digest = hashlib.sha256(_versions().encode())
    facts = (
        region.name.partition("/")[2],
        region.kind.value,
        region.function,
        region.entry,
        sorted(region.pcs),
        region.callees,
        options.optimize,
        options.counting,
        sorted(options.unseen),
        options.guard_limit,
        options.observe,
        sorted(kind.value for kind in options.forcing),
        [static.type.value for static in program.statics],
        program.table,
        [(str(s.parameters), str(s.results)) for s in program.signatures],
        region.verified.frame_words,
    )
    digest.update(repr(facts).encode())
    for number in sorted({region.function, *region.callees}):
        function = program.functions[number]
        digest.update(repr((number, function.entry, function.signature, function.locals)).encode())
        for block in _blocks(region, number):
            code = program.code[block.first : block.last + 1]
            digest.update(np.ascontiguousarray(code).tobytes())
    return digest.hexdigest()


def _blocks(region: Region, function: int) -> list[Block]:
    found = graph(region.verified, function).blocks
    return [found[first] for first in sorted(found)]


BACKEND = LlvmBackend()
