# SPDX-License-Identifier: Apache-2.0
"""The cost of a compilation, in numbers that are known in advance; `ferryvm.region.cost` counts
them."""

from __future__ import annotations

from ferryvm import record

__all__ = ["Cost"]


@record.dataclass(frozen=True)
class Cost:
    """The cost of a region with its callees; or a compiler's limits."""

    instructions: int = 0
    words: int = 0
    """Words of the frame, and statics that may be written, summed over instructions that may leave
    and starts of blocks."""

    frame: int = 0
    """The largest number of words at one of these points."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.instructions + other.instructions,
            self.words + other.words,
            max(self.frame, other.frame),
        )

    def beyond(self, limits: Cost) -> str | None:
        """The exceeded limit, if any."""
        found = []
        if self.instructions > limits.instructions:
            found.append(
                f"{self.instructions} instructions with what it calls, more than "
                f"{limits.instructions}"
            )
        if self.words > limits.words:
            found.append(f"{self.words} words in the frames of its exits, more than {limits.words}")
        if self.frame > limits.frame:
            found.append(f"{self.frame} words in the frame of an exit, more than {limits.frame}")
        return "; ".join(found) or None
