# SPDX-License-Identifier: Apache-2.0
"""The content of a cache entry of native code: length of the notes │ notes │ object code."""

from __future__ import annotations

from ferryvm import binary

_LENGTH_BYTES = 8


def packed(notes: bytes, code: bytes) -> bytes:
    """Both as one payload."""
    return len(notes).to_bytes(_LENGTH_BYTES, "little") + notes + code


def unpacked(payload: bytes) -> tuple[bytes, bytes]:
    """Notes and object code of what `packed` made."""
    end = _LENGTH_BYTES + int.from_bytes(payload[:_LENGTH_BYTES], "little")
    return payload[_LENGTH_BYTES:end], payload[end:]


def fault(payload: bytes) -> str | None:
    """The reason that it has no object code that LLVM may load; None if it has.

    To be asked of all that comes from a file: LLVM ends the process at what is no object.
    """
    return binary.fault(unpacked(payload)[1], binary.ObjectType.RELOCATABLE)
