# SPDX-License-Identifier: Apache-2.0
"""Accelerations of the first bodies by all bodies, a body an item."""

from math import sqrt


def item(i, x, y, z, mass):
    """The acceleration of a body."""
    xi, yi, zi = x[i], y[i], z[i]
    sx = sy = sz = 0.0
    for j in range(len(x)):
        dx, dy, dz = x[j] - xi, y[j] - yi, z[j] - zi
        squared = ((dx * dx + dy * dy) + dz * dz) + 0.01
        force = mass[j] / (squared * sqrt(squared))
        sx += force * dx
        sy += force * dy
        sz += force * dz
    return sx, sy, sz
