# SPDX-License-Identifier: Apache-2.0
"""The content of a cache entry of native code: length of the notes │ notes │ object code."""

from __future__ import annotations

from ferryvm import binary

_LENGTH_BYTES = 8


def packed(notes: bytes, code: bytes) -> bytes:
    """Both as one payload."""
    return len(notes).to_bytes(_LENGTH_BYTES, "little") + notes + code


def unpacked(payload: bytes) -> tuple[bytes, bytes]:
    """Notes and object code from the result of `packed`."""
    end = _LENGTH_BYTES + int.from_bytes(payload[:_LENGTH_BYTES], "little")
    return payload[_LENGTH_BYTES:end], payload[end:]


def fault(payload: bytes) -> str | None:
    """The reason that it has no object code that LLVM may load; None if it has.

    It must be called for all content of files: LLVM ends the process if it is not an object file.
    """
    return binary.fault(unpacked(payload)[1], binary.ObjectType.RELOCATABLE)
