# SPDX-License-Identifier: Apache-2.0
"""The target of `opencl` for the base of compilers: building, caching and loading kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferryvm import cache
from ferryvm.backend import Code, Options
from ferryvm.compiler import Compilation, Target
from ferryvm.ir.c import ENTRY
from ferryvm.ir.graph import Module
from ferryvm.region.region import Region
from ferryvm_backends.opencl import build
from ferryvm_backends.opencl.device import Device
from ferryvm_backends.opencl.kernel import Kernel
from ferryvm_backends.opencl.text import WRAPPED, KernelText, improved, kernel_text

if TYPE_CHECKING:
    from ferryvm_backends.opencl.code import KernelCode


class KernelTarget(Target[KernelText]):
    """A device, and how a machine's memory is given to it."""

    kind = "kernel"
    lowering = "print"

    def __init__(self, device: Device, access: str) -> None:
        """`access`: `text.WRAPPED` or `text.COPIED`."""
        self._device, self._access = device, access

    def __str__(self) -> str:
        return str(self._device)

    def lift(self, region: Region, options: Options) -> Module:
        return improved(region, options)

    def lower(self, work: Compilation[KernelText]) -> KernelText:
        return kernel_text(work.region, work.module, work.options, self._device, self._access)

    def key(self, work: Compilation[KernelText]) -> str:
        return build.key(self._device, work.lowered.source, work.options.quick)

    def fault(self, payload: bytes) -> str | None:
        return build.fault(payload)

    def build(self, work: Compilation[KernelText]) -> bytes:
        return build.build(self._device, work.lowered.source, is_quick=work.options.quick)

    def load(
        self, work: Compilation[KernelText], payload: bytes, found: cache.Entry | None
    ) -> Code | None:
        text, options = work.lowered, work.options
        program = build.loaded(self._device, text.source, payload, options.quick)
        session = build.session(self._device)
        kernel = Kernel(session.context, program, ENTRY)
        sees_changes = kernel.run_dry(session.queue)
        if self._access == WRAPPED:
            from ferryvm_backends.opencl.wrapped import WrappedCode

            if not sees_changes:
                return None
            wrapped = WrappedCode(session, kernel, text.guards, options)
            return self._with_items(wrapped, work)
        from ferryvm_backends.opencl.copied import CopiedCode
        from ferryvm_backends.opencl.resident import needs

        needed = needs(work.region, text.resumes, text.objects)
        code = CopiedCode(session, kernel, text.guards, options, work.region, needed)
        return self._with_items(code, work)

    def _with_items(self, code: KernelCode, work: Compilation[KernelText]) -> Code:
        """The code; for a launch, with a kernel whose work-items are the items."""
        from ferryvm_backends.opencl.item import item_region

        items = item_region(work.region, work.options)
        if items is None:
            return code
        from ferryvm_backends.opencl.item.code import item_code

        return item_code(code, work.region, items, work.options, self._device, self._access)

    def show(self, work: Compilation[KernelText], stage: str) -> str:
        return work.lowered.source
