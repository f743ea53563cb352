# SPDX-License-Identifier: Apache-2.0
"""Metrics of copies between the host and devices with memory of their own, as plain data.

docs/opencl.md explains each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ferryvm.backend import Activity
from ferryvm.traffic import array_metrics

Metrics = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class MemoryMetrics:
    """The memory of a device that this process has now."""

    bytes_used: int
    """Of areas that programs have."""
    bytes_held: int
    """Of the chunks with these areas."""
    fragmentation: float
    """The share of the rest that is not in its largest piece."""


@dataclasses.dataclass(frozen=True)
class KernelMetrics:
    """The copies for one kernel."""

    region: str
    device: str
    activity: Activity
    seconds_to_device: float
    seconds_to_host: float
    memory: MemoryMetrics


def report(all_metrics: Sequence[KernelMetrics]) -> Metrics:
    """The metrics of a run: each device with its total and its kernels."""
    devices = dict.fromkeys(one.device for one in all_metrics)
    return {
        "devices": [
            _device(device, [one for one in all_metrics if one.device == device])
            for device in devices
        ]
    }


def _device(device: str, kernels: Sequence[KernelMetrics]) -> Metrics:
    return {
        "device": device,
        "bytes_to_device": sum(one.activity.to_device for one in kernels),
        "bytes_to_host": sum(one.activity.to_host for one in kernels),
        "seconds_to_device": sum(one.seconds_to_device for one in kernels),
        "seconds_to_host": sum(one.seconds_to_host for one in kernels),
        "memory": dataclasses.asdict(kernels[-1].memory),
        "kernels": [
            {
                "region": one.region,
                "entries": one.activity.entries,
                "bytes_to_device": one.activity.to_device,
                "bytes_to_host": one.activity.to_host,
                "seconds_to_device": one.seconds_to_device,
                "seconds_to_host": one.seconds_to_host,
                "arrays": [array_metrics(array) for array in one.activity.arrays],
            }
            for one in kernels
        ],
    }
