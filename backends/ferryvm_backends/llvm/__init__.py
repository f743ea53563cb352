# SPDX-License-Identifier: Apache-2.0
"""The llvm backend: regions as native code, through the region IR and LLVM's optimiser."""

from __future__ import annotations

import time

import ferryvm
from ferryvm import cache
from ferryvm.backend import Capabilities, Code, Compiler, Forcing, Options
from ferryvm.cost import Cost
from ferryvm.region.region import Region
from ferryvm_backends._llvm.native import processor_problem

LIMITS = Cost(instructions=10_000, words=200_000, frame=30_000)
"""What is refused beyond them takes minutes."""


class LlvmBackend(Compiler):
    """Native code."""

    name = "llvm"
    version = ferryvm.__version__
    capabilities = Capabilities(limits=LIMITS, forcing=frozenset(Forcing))
    stages = ("ir", "llvm", "optimized", "asm")

    def probe(self) -> str | None:
        return processor_problem()

    def compile(self, region: Region, options: Options) -> Code:
        from ferryvm_backends.llvm.key import region_key
        from ferryvm_backends.llvm.native import RegionCode, fault

        notes: dict[str, float] = {}

        def built() -> bytes:
            from ferryvm_backends.llvm.build import build  # all of LLVM IR: not if it is kept

            return build(region, options, notes)

        began = time.perf_counter()
        content = None
        if options.cache:
            entry = cache.Entry("region", region_key(region, options), "llvm")
            content = entry.find(fault)
        if content is None:
            content = built()
            if options.cache:
                entry.keep(content)
        code = RegionCode(content, not notes, notes)
        notes["total"] = time.perf_counter() - began
        return code

    def show(self, region: Region, options: Options, stage: str) -> str:
        from ferryvm.ir.text import module_text
        from ferryvm_backends._llvm.native import target_machine
        from ferryvm_backends.llvm.build import improved, optimised
        from ferryvm_backends.llvm.lower import lower
        from ferryvm_backends.llvm.native import parsed

        if stage not in self.stages:
            return super().show(region, options, stage)
        module, level = improved(region, options)
        if stage == "ir":
            return module_text(module)
        if stage == "llvm":
            return str(parsed(lower(module, options)))
        native = optimised(module, options, level)
        return str(native) if stage == "optimized" else target_machine().emit_assembly(native)


BACKEND = LlvmBackend()
