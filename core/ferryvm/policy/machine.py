# SPDX-License-Identifier: Apache-2.0
"""Facts about the computer that policies may use."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from ferryvm import record


@record.dataclass(frozen=True)
class MachineFacts:
    """The computer as rules can test it; the prefix of these names is `machine.`."""

    cpus: int
    """Processors that this process may use."""
    architecture: str
    """The processor's architecture: `x86_64`, `aarch64`, ..."""
    system: str
    """The operating system: `Linux`, `Darwin`, ..."""
    memory: int
    """Bytes of memory of the computer; 0 if unknown."""
    cpu: str
    """Name of the processor's model; empty if unknown."""


@functools.cache
def here() -> MachineFacts:
    """The facts of this computer, cached in the process."""
    name = os.uname()
    return MachineFacts(cpus(), name.machine, name.sysname, _memory(), _cpu())


def cpus() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):  # a system without that name
        return 0


def _cpu(source: Path = Path("/proc/cpuinfo")) -> str:
    try:
        with source.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:  # the file has a part for each processor; the first is enough
                key, _, value = line.partition(":")
                if key.strip() in ("model name", "cpu model", "Model"):
                    return value.strip()
                if not line.strip():
                    break
    except OSError:  # not Linux
        pass
    return ""
