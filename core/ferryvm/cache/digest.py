# SPDX-License-Identifier: Apache-2.0
"""Digests without OpenSSL, and the comparison of two of them.

`hashlib` is the public interface of the same functions. It loads OpenSSL, which takes longer (3 ms)
than all digests of a run (0.3 ms), so it is imported only if Python was built without its own.
"""

from __future__ import annotations

import sys
from _operator import _compare_digest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b as _blake2b
    from hashlib import sha256 as _sha256
else:
    try:
        from _blake2 import blake2b as _blake2b

        if sys.version_info >= (3, 12):
            from _sha2 import sha256 as _sha256
        else:
            from _sha256 import sha256 as _sha256
    except ImportError:  # `configure --with-builtin-hashlib-hashes` leaves some out
        from hashlib import blake2b as _blake2b
        from hashlib import sha256 as _sha256

blake2b, sha256 = _blake2b, _sha256


def is_equal(one: bytes, other: bytes) -> bool:
    """True if both are the same, in a time that does not depend on where they differ."""
    return _compare_digest(one, other)
