# SPDX-License-Identifier: Apache-2.0
"""The opencl backend: regions as kernels of one work-item, on any device with an OpenCL driver.

region ─ lift, passes ─> IR ─ print ─> OpenCL C ─ driver, in a process of its own ─> kernel
                                                             │
interpreter ─> door ─> memory wrapped or copied, kernel, memory back ─> status
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import ferryvm
from ferryvm.backend import (
    BackendError,
    Capabilities,
    Code,
    Compiler,
    Finding,
    Forcing,
    Options,
)
from ferryvm.cost import Cost
from ferryvm.region.region import Region

if TYPE_CHECKING:
    from ferryvm_backends.opencl.device import Device

LIMITS = Cost(instructions=5_000, words=20_000, frame=2_000)
"""What is refused beyond them takes minutes."""


class OpenClBackend(Compiler):
    """Kernels of one work-item."""

    def __init__(self, wraps: bool = True, device: str = "") -> None:
        """`wraps`: have devices that share the host's memory use it; else copy, for tests.
        `device`: what to compile for where the options name none."""
        self._wraps, self._device = wraps, device

    name = "opencl"
    version = ferryvm.__version__
    capabilities = Capabilities(limits=LIMITS, forcing=frozenset({Forcing.DEOPT}), devices=True)
    stages = ("ir", "opencl")

    def probe(self) -> str | None:
        from ferryvm_backends.opencl.device import find

        try:
            find(self._device)
        except BackendError as error:
            return str(error).removeprefix("opencl: ")
        return None

    def examine(self) -> Sequence[Finding]:
        from ferryvm_backends.opencl.diagnosis import examine

        return examine()

    def check_device(self, device: str) -> None:
        from ferryvm_backends.opencl.device import find

        find(device)

    def compile(self, region: Region, options: Options) -> Code:
        from ferryvm.ir.c import ENTRY
        from ferryvm_backends.opencl.build import build, session
        from ferryvm_backends.opencl.device import find
        from ferryvm_backends.opencl.kernel import Kernel
        from ferryvm_backends.opencl.text import COPIED, WRAPPED, kernel_text

        notes: dict[str, float] = {}
        began = last = time.perf_counter()

        def step(name: str) -> None:
            nonlocal last
            now = time.perf_counter()
            notes[name] = notes.get(name, 0.0) + now - last
            last = now

        device = find(options.device or self._device)
        for way in self._ways(device):
            text = kernel_text(region, options, device, way)
            step("print")
            program, is_from_cache = build(device, text.source, options.cache)
            step("build")
            opened = session(device)
            kernel = Kernel(opened.context, program, ENTRY)
            if kernel.run_dry(opened.queue) or way == COPIED:
                break
        common = opened, kernel, text.guards
        code: Code
        if way == WRAPPED:
            from ferryvm_backends.opencl.wrapped import WrappedCode

            code = WrappedCode(*common, options, is_from_cache, notes)
        else:
            from ferryvm_backends.opencl.copied import CopiedCode
            from ferryvm_backends.opencl.resident import needs

            needed = needs(region, text.resumes)
            code = CopiedCode(*common, options, is_from_cache, notes, region.entry, needed)
        step("load")
        notes["total"] = time.perf_counter() - began
        return code

    def _ways(self, device: Device) -> list[str]:
        """How to give a machine's memory to a device: what is tried first, then the other."""
        from ferryvm_backends.opencl.text import COPIED, WRAPPED

        return [WRAPPED, COPIED] if self._wraps and device.is_wrapped else [COPIED]

    def show(self, region: Region, options: Options, stage: str) -> str:
        from ferryvm.ir.text import module_text
        from ferryvm_backends.opencl.device import find
        from ferryvm_backends.opencl.text import improved, kernel_text

        if stage not in self.stages:
            return super().show(region, options, stage)
        if stage == "ir":
            return module_text(improved(region, options))
        device = find(options.device or self._device)
        return kernel_text(region, options, device, self._ways(device)[0]).source


BACKEND = OpenClBackend()
