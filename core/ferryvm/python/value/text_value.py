# SPDX-License-Identifier: Apache-2.0
"""Texts and bytes of Python as arrays, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ferryvm.python.value.kind import Text


def codes(value: str | bytes) -> Any:
    """The array of code points of a text, or of bytes."""
    if isinstance(value, bytes):
        return np.array(bytearray(value), np.uint8)
    encoded = bytearray(value.encode("utf-32-le", "surrogatepass"))
    return np.array(np.frombuffer(encoded, np.int32)) if encoded else np.empty(0, np.int32)


def value_of(kind: Text, array: Any, first: int, length: int, stride: int) -> str | bytes:
    """The text of a view of an array."""
    last = first + stride * length
    part = array[first : last if last >= 0 else None : stride] if length else array[:0]
    found: bytes = np.ascontiguousarray(part).tobytes()
    return found if kind.type is bytes else found.decode("utf-32-le", "surrogatepass")
