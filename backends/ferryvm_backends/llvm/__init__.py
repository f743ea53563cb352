# SPDX-License-Identifier: Apache-2.0
"""The llvm backend: regions as native code, through the region IR and LLVM's optimiser."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import ferryvm
from ferryvm.backend import Capabilities, Forcing, Options
from ferryvm.compiler import RegionCompiler, Target
from ferryvm.cost import Cost
from ferryvm_backends._llvm.native import processor_problem

if TYPE_CHECKING:
    from ferryvm.machine.chunk import ChunkLoop

LIMITS = Cost(instructions=10_000, words=200_000, frame=30_000)
"""Limits of a region; compiling a larger one takes minutes."""


class LlvmBackend(RegionCompiler):
    """Native code."""

    name = "llvm"
    version = ferryvm.__version__
    capabilities = Capabilities(
        native=True,
        limits=LIMITS,
        forcing=frozenset(Forcing),
        references=True,
        lanes=True,
        launches=True,
        known=True,
    )
    stages = ("ir", "llvm", "optimized", "asm")

    def probe(self) -> str | None:
        return processor_problem()

    def versions(self, device: str) -> Mapping[str, str]:
        from llvmlite import binding

        return {"LLVM": ".".join(map(str, binding.llvm_version_info))}

    def targets(self, options: Options) -> Sequence[Target[Any]]:
        from ferryvm_backends.llvm.target import NativeTarget

        return [NativeTarget()]

    def chunk_loop(self) -> ChunkLoop:
        from ferryvm_backends._llvm.chunk import chunk_loop

        return chunk_loop()


BACKEND = LlvmBackend()
