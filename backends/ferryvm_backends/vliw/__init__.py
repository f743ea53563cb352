# SPDX-License-Identifier: Apache-2.0
"""The vliw backend: regions as programs of a statically scheduled processor, which is simulated.

region ─ lift, passes ─> IR ─ lower, schedule, allocate ─> bundles ─ simulate ─> status, cycles
"""

from __future__ import annotations

import time

import ferryvm
from ferryvm.backend import Capabilities, Code, Compiler, Options
from ferryvm.region.region import Region
from ferryvm_backends.vliw.machine.model import Machine


class VliwBackend(Compiler):
    """A simulated processor."""

    name = "vliw"
    version = ferryvm.__version__
    capabilities = Capabilities()
    stages = ("ir", "vliw")

    def __init__(self, machine: Machine | None = None) -> None:
        """`machine`: the processor; left out, the one that comes with the package."""
        self._machine = machine

    def compile(self, region: Region, options: Options) -> Code:
        from ferryvm.ir.lift import lift
        from ferryvm.ir.passes import optimise
        from ferryvm_backends.vliw.code.encode import compile_module
        from ferryvm_backends.vliw.enter import VliwCode

        began = time.perf_counter()
        module = lift(region, options.counting, options.unseen)
        optimise(module, options.optimize, region.verified)
        program = compile_module(module, self._machine or find(default_name()))
        notes = {"total": time.perf_counter() - began}
        return VliwCode(program, region.entry, region.verified, options, notes)


BACKEND = VliwBackend()
