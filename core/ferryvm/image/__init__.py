# SPDX-License-Identifier: Apache-2.0
"""Programs as files: versioned, checksummed images."""

from ferryvm.image.container import ImageError
from ferryvm.image.program import from_bytes, load, save, to_bytes

__all__ = ["ImageError", "from_bytes", "load", "save", "to_bytes"]
