# SPDX-License-Identifier: Apache-2.0
"""The nearest of some centres of clusters, a point of the plane an item."""

from math import inf

import numpy as np


def item(px, py, cx, cy):
    """The number of the nearest centre."""
    least, label = inf, 0
    for c in range(len(cx)):
        dx, dy = px - cx[c], py - cy[c]
        squared = dx * dx + dy * dy
        if squared < least:
            least = squared
            label = c
    return np.int32(label)
