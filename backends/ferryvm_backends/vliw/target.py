# SPDX-License-Identifier: Apache-2.0
"""The target of `vliw` for the base of compilers: from a region to a program of a machine.

Nothing is cached on disk.
"""

from __future__ import annotations

import dataclasses

from ferryvm import cache
from ferryvm.backend import Code, Options
from ferryvm.compiler import Compilation, Target
from ferryvm.ir.graph import Module
from ferryvm.region.region import Region
from ferryvm_backends.vliw.code.program import Program
from ferryvm_backends.vliw.machine.model import Machine
from ferryvm_backends.vliw.passes import optimised

FULL_EFFORT = 2
"""The level of optimisation from which on loops are pipelined."""


class MachineTarget(Target[Program]):
    """A statically scheduled processor."""

    lowering, loading = "schedule", "build"

    def __init__(self, machine: Machine, named: str) -> None:
        """`named`: the text that selected the machine; empty if it was given as a value."""
        self._machine, self._named = machine, named

    def prepare(self) -> None:
        super().prepare()
        import ferryvm_backends.vliw.code.encode  # noqa: F401 - the schedulers

    def lift(self, region: Region, options: Options) -> Module:
        return optimised(region, options, self._machine)

    def lower(self, work: Compilation[Program]) -> Program:
        from ferryvm_backends.vliw.code.encode import compile_module

        return compile_module(work.module, self._machine, work.options.optimize < FULL_EFFORT)

    def load(self, work: Compilation[Program], payload: bytes, found: cache.Entry | None) -> Code:
        from ferryvm.region.object_access import object_access
        from ferryvm_backends.vliw.entry import VliwCode

        region, options = work.region, work.options
        access = object_access(region)
        if work.module.groups:  # an exit may make pieces of a record
            access = dataclasses.replace(access, makes=True)
        code = VliwCode(
            work.lowered,
            region.entry,
            region.verified,
            options.guard_limit,
            self._named,
            options.recompile_after,
            access,
            options.quick,
        )
        code.ungrouped = work.module.ungrouped
        return code

    def show(self, work: Compilation[Program], stage: str) -> str:
        from ferryvm_backends.vliw.code.text import program_text

        return program_text(work.lowered)

    def picture(self, work: Compilation[Program], stage: str) -> str:
        from ferryvm_backends.vliw.show.render import page

        return page(work.lowered, work.region.verified.program.source_map)
