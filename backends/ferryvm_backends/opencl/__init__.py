# SPDX-License-Identifier: Apache-2.0
"""The opencl backend: regions as kernels, on any device with an OpenCL driver. The items of a
launch are work-items; any other region is one.

region ─ lift, passes ─> IR ─ print ─> OpenCL C ─ driver, in a process of its own ─> kernel
                                                             │
interpreter ─> entry stub ─> memory wrapped or copied, kernel, memory back ─> status
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ferryvm
from ferryvm.backend import BackendError, Capabilities, Finding, Forcing, Options
from ferryvm.compiler import RegionCompiler, Target
from ferryvm.cost import Cost

LIMITS = Cost(instructions=5_000, words=20_000, frame=2_000)
"""Limits of a region; compiling a larger one takes minutes."""


class OpenClBackend(RegionCompiler):
    """Kernels of regions, and of the items of launches."""

    def __init__(self, wraps: bool = True, device: str = "") -> None:
        """`wraps`: devices that share the host's memory use it; otherwise memory is copied, for
        tests. `device`: the target if the options name none."""
        self._wraps, self._device = wraps, device

    name = "opencl"
    version = ferryvm.__version__
    capabilities = Capabilities(
        limits=LIMITS,
        forcing=frozenset({Forcing.DEOPT}),
        devices=True,
        references=True,
        launches=True,
        ranges=True,
        known=True,
    )
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

    def device_names(self) -> Sequence[str]:
        from ferryvm_backends.opencl.device import devices

        return list(dict.fromkeys(str(one) for one in devices() if one.problem is None))

    def versions(self, device: str) -> Mapping[str, str]:
        from ferryvm_backends.opencl.device import find

        found = find(device or self._device)
        return {"device": str(found), "OpenCL": found.version, "driver": found.driver}

    def report(self, all_metrics: Sequence[object]) -> Mapping[str, object]:
        from ferryvm_backends.opencl.report import KernelMetrics, report

        return report([each for each in all_metrics if isinstance(each, KernelMetrics)])

    def targets(self, options: Options) -> Sequence[Target[Any]]:
        from ferryvm_backends.opencl.device import find
        from ferryvm_backends.opencl.target import KernelTarget
        from ferryvm_backends.opencl.text import COPIED, WRAPPED

        device = find(options.device or self._device)
        accesses = [WRAPPED, COPIED] if self._wraps and device.is_wrapped else [COPIED]
        return [KernelTarget(device, each) for each in accesses]


BACKEND = OpenClBackend()
