# SPDX-License-Identifier: Apache-2.0
"""Metrics of compiled code, which `ferryvm.backend.Code` has and reports show."""

from __future__ import annotations

from ferryvm import record


@record.dataclass(frozen=True)
class NestActivity:
    """Executions of a versioned loop nest, without checks and with them."""

    pc: int
    """pc of the condition of its outermost loop."""
    has_versions: bool
    """True if there is a fast version without checks, which runtime checks select."""
    fast: int
    """Executions of the fast version."""
    slow: int
    """Executions of the other version."""
    reason: str
    """The reason that there is no fast version, or that the slow one ran last; empty if neither."""
    pcs: tuple[int, ...]
    """The instructions that the reason refers to."""


@record.dataclass
class Transfers:
    """Amounts of memory copied between the host and a device."""

    to_device: int = 0
    """Bytes copied to the memory of a device."""
    to_host: int = 0
    """Bytes copied back."""
    seconds_to_device: float = 0.0
    """Spent on copying them, and on deciding what to copy."""
    seconds_to_host: float = 0.0

    @property
    def seconds(self) -> float:
        """Both ways."""
        return self.seconds_to_device + self.seconds_to_host


@record.dataclass
class ArrayActivity(Transfers):
    """Copying of one array between host and device, or of other parts of the program's objects."""

    name: str = ""
    """Such as `f64[1000]`, with a number if there are several of that name."""
    entries: int = 0
    """Entries of code for which it had to be on the device."""
    unchanged: int = 0
    """The number of these entries at which nothing was copied to the device."""


@record.dataclass(frozen=True)
class Activity:
    """Metrics of code since it was compiled."""

    entries: int = 0
    """Number of entries."""
    seconds: float = 0.0
    """Seconds spent in it; only with `Options.observe`."""
    instructions: int = 0
    """Instructions that it completed and paid fuel for; only with `Options.observe`."""
    failures: dict[int, int] = record.field(default_factory=dict)
    """Number of failures of each guard, by pc."""
    to_device: int = 0
    """Bytes copied to the memory of a device."""
    to_host: int = 0
    """Bytes copied back."""
    transfer_seconds: float = 0.0
    """Seconds spent on copying, and on deciding what to copy; not included in `seconds`."""
    arrays: tuple[ArrayActivity, ...] = ()
    """The part of arrays and other objects in that; backends may omit it."""
    nests: tuple[NestActivity, ...] = ()
    """Executions of loop nests that store; only with `Options.observe`."""
    crowded: int = 0
    """Entries that returned at once, because the thread's stack had too little headroom for its
    frames."""
    stack: int = 0
    """Bytes of its frames on that stack; 0: unknown."""
    unfinished: int = 0
    """Groups that it left in the middle, which an interpreter ends; backends may omit it."""
