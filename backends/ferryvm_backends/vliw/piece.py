# SPDX-License-Identifier: Apache-2.0
"""Copies of memory that differs, piece by piece."""

from __future__ import annotations

import ctypes

import numpy as np

from ferryvm_backends.vliw.simulate.memory import Bytes

PIECE = 4096
"""Bytes that are compared and sent together."""


def view(address: int, size: int) -> Bytes:
    """Bytes of this process."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def copy(source: Bytes, to: Bytes) -> int:
    """Copy bytes that differ; the number of bytes sent."""
    if np.array_equal(source, to):
        return 0
    sent = 0
    starts = np.arange(0, len(source), PIECE)
    for start in starts[np.logical_or.reduceat(source != to, starts)].tolist():
        end = min(start + PIECE, len(source))
        to[start:end] = source[start:end]
        sent += end - start
    return sent
