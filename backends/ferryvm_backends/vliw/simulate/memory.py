# SPDX-License-Identifier: Apache-2.0
"""The machine's own memory: segments, which hold copies of the host's."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from ferryvm_backends.vliw.code.operation import Segment

Bytes = npt.NDArray[np.uint8]


@dataclasses.dataclass
class Memory:
    """Bytes by segment."""

    segments: dict[Segment, Bytes]

    def load(self, segment: Segment, address: int, size: int) -> int:
        """Bytes as a number; a load outside the segment yields 0, since it was issued above its
        check."""
        found = self.segments[segment]
        if not 0 <= address <= len(found) - size:
            return 0
        return int.from_bytes(found[address : address + size].tobytes(), "little")

    def store(self, segment: Segment, address: int, size: int, value: int) -> None:
        """Change bytes. Raises IndexError where there are none."""
        found = self.segments[segment]
        if not 0 <= address <= len(found) - size:
            raise IndexError(f"{segment.value}: {size} bytes at {address} of {len(found)}")
        low = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        found[address : address + size] = np.frombuffer(low, np.uint8)
