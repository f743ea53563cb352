# SPDX-License-Identifier: Apache-2.0
"""The size of groups of work-items: measured once for a kernel on a device, and cached.

Slices of the first long range have groups of different sizes, in turn; the size with the least time
for all its slices, by the device's clock, is that of all later ones. Slices are so long that they
fill the device: a size with many groups may be the best one for few items, and take three times as
long for many. Ranges before that have groups of the default size. Which size is best depends on
registers and memory accesses of the kernel, in ways that differ by device.
"""

from __future__ import annotations

from collections.abc import Iterator

from ferryvm import cache

DEFAULT = 128
"""Work-items of a group, as long as nothing is known."""

_SIZES = (64, 128, 256, 512)
_GAIN = 0.95
"""Part of the time with the default size below which another one is chosen."""

_TIMES = 4
"""Slices with each size."""

SLICE = 1 << 18
"""Items of a slice that is measured, at least."""

_SLICES = _TIMES * len(_SIZES)

LEAST = SLICE * _SLICES
"""Items of a range of which slices are measured."""


def slice_items(items: int) -> int:
    """Items of each slice of a range of so many that is measured: all of it is, since a size may be
    the best one for fewer items only."""
    return -(-items // _SLICES)


class LocalSize:
    """The size of the groups of one kernel."""

    def __init__(self, most: int, entry: cache.Entry | None = None) -> None:
        """`most`: the largest size that the kernel can have on the device; `entry`: where the
        measured size is cached."""
        self._entry = entry
        self._sizes = [size for size in _SIZES if size <= most] or [most]
        self._pending: Iterator[int] = iter(self._sizes * _TIMES)
        self._seconds = dict.fromkeys(self._sizes, 0.0)
        self.size = self._default = min(DEFAULT, most)
        """Of the next slice."""
        self.is_measured = len(self._sizes) == 1
        found = entry.find(self._fault) if entry is not None else None
        if found is not None:
            self.size, self.is_measured = int(found), True

    def begin(self) -> None:
        """Choose the size of the next slice that is measured."""
        self.size = next(self._pending)

    def end(self, seconds: float) -> None:
        """Note the time of that slice; after the last one the best size is chosen and cached."""
        self._seconds[self.size] += seconds
        rest = list(self._pending)
        self._pending = iter(rest)
        if rest:
            return
        best = min(self._seconds, key=self._seconds.__getitem__)
        is_better = self._seconds[best] < _GAIN * self._seconds.get(self._default, float("inf"))
        self.size, self.is_measured = best if is_better else self._default, True
        if self._entry is not None:
            self._entry.try_store(str(self.size).encode())

    def _fault(self, payload: bytes) -> str | None:
        is_size = payload.isdigit() and int(payload) in self._sizes
        return None if is_size else "it is no size of groups"
