# SPDX-License-Identifier: Apache-2.0
"""The cost of a compilation, in numbers that are known before it begins; `ferryvm.region.cost`
counts them."""

from __future__ import annotations

from ferryvm import record

__all__ = ["Cost"]


@record.dataclass(frozen=True)
class Cost:
    """Of a region, with what is compiled with it; or the most that a compiler takes."""

    instructions: int = 0
    words: int = 0
    """Of the frame, and statics that may be written, at each instruction that may leave and at the
    begin of each block."""

    frame: int = 0
    """The most words at one of these."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.instructions + other.instructions,
            self.words + other.words,
            max(self.frame, other.frame),
        )

    def beyond(self, limits: Cost) -> str | None:
        """The limit that it is beyond, if any."""
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
