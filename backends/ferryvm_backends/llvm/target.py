# SPDX-License-Identifier: Apache-2.0
"""The target of `llvm` for the base of compilers: building, caching and loading code.

The code generator is imported only if no code is cached: importing it takes longer than loading
cached code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferryvm import cache
from ferryvm.backend import Code, Options
from ferryvm.compiler import Compilation, Target
from ferryvm.region.region import Region
from ferryvm_backends.llvm import region_code
from ferryvm_backends.llvm.key import region_key

if TYPE_CHECKING:
    import llvmlite.binding as llvm

    from ferryvm.ir.graph import Module


class NativeTarget(Target["llvm.ModuleRef"]):
    """This processor."""

    kind = "region"
    lowering, building = "optimise", "emit"

    def key(self, work: Compilation[llvm.ModuleRef]) -> str:
        return region_key(work.region, work.options)

    def fault(self, payload: bytes) -> str | None:
        return region_code.fault(payload)

    def prepare(self) -> None:
        super().prepare()
        import ferryvm_backends.llvm.build  # noqa: F401 - all of LLVM IR

    def lift(self, region: Region, options: Options) -> Module:
        from ferryvm_backends.llvm.build import improved

        module, self.level = improved(region, options)
        return module

    def lower(self, work: Compilation[llvm.ModuleRef]) -> llvm.ModuleRef:
        from ferryvm_backends.llvm.build import optimised, refused

        with refused(work.region):
            return optimised(work.module, work.options, self.level, work.step)

    def build(self, work: Compilation[llvm.ModuleRef]) -> bytes:
        from ferryvm_backends._llvm.codegen import object_code
        from ferryvm_backends.llvm.build import reduces_strength, refused
        from ferryvm_backends.llvm.native import stack_bytes

        module, level = work.lowered, 0 if work.options.quick else 2
        with refused(work.region):
            reduces = reduces_strength(work.module)
            code = object_code(module, level, reduces_strength=reduces)
            stack = stack_bytes(module, code)
            return region_code.packed(work.module, stack, code, self._lanes(work))

    @staticmethod
    def _lanes(work: Compilation[llvm.ModuleRef]) -> tuple[int, int]:
        """The number of lanes of the code, and the rows of a buffer of theirs; zeros: none."""
        from ferryvm_backends.llvm.lane import rows_of
        from ferryvm_backends.llvm.lane_count import lane_count

        body = work.module.lanes
        return (0, 0) if body is None else (lane_count(body, work.options), rows_of(body))

    def load(
        self, work: Compilation[llvm.ModuleRef], payload: bytes, found: cache.Entry | None
    ) -> Code:
        return region_code.RegionCode(payload)

    def show(self, work: Compilation[llvm.ModuleRef], stage: str) -> str:
        from ferryvm_backends._llvm.codegen import assembly
        from ferryvm_backends.llvm import native
        from ferryvm_backends.llvm.build import reduces_strength
        from ferryvm_backends.llvm.lower import lower

        if stage == "llvm":
            return str(native.parsed(lower(work.module, work.options)))
        if stage == "optimized":
            return str(work.lowered)
        return assembly(work.lowered, reduces_strength=reduces_strength(work.module))
