# SPDX-License-Identifier: Apache-2.0
"""Iterations until points of the plane leave the circle of radius 2, a point an item."""

import numpy as np


def item(i, size, most):
    """The iterations of a point."""
    step = 3.0 / size
    cx, cy = -2.0 + step * (i % size), -1.5 + step * (i // size)
    x = y = xx = yy = 0.0
    count = 0
    while count < most and xx + yy <= 4.0:
        y = (2.0 * x) * y + cy
        x = (xx - yy) + cx
        xx = x * x
        yy = y * y
        count += 1
    return np.int32(count)
