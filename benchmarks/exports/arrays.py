# SPDX-License-Identifier: Apache-2.0
"""The arrays that exported functions and kernels are measured with."""

from __future__ import annotations

import numpy as np


class Arrays:
    """Arrays of numbers by chance, the same in each run: of so many elements, and square matrices
    of so many rows."""

    def __init__(self, length: int, rows: int) -> None:
        chance = np.random.default_rng(7)
        self.x, self.y = chance.uniform(-1, 1, (2, length))
        self.single = chance.uniform(0, 8, (2, length)).astype(np.float32)
        self.matrices = chance.uniform(-1, 1, (3, rows * rows))
        self.bytes = chance.integers(0, 256, length, dtype=np.uint8)
