# SPDX-License-Identifier: Apache-2.0
"""The energy of five bodies after a number of steps of 0.01."""

from math import sqrt

import numpy as np
import numpy.typing as npt
from numba import njit

BODIES = 5
Array = npt.NDArray[np.float64]


@njit
def advance(
    x: Array, y: Array, z: Array, vx: Array, vy: Array, vz: Array, mass: Array, dt: float
) -> None:
    for i in range(BODIES):
        for j in range(i + 1, BODIES):
            dx, dy, dz = x[i] - x[j], y[i] - y[j], z[i] - z[j]
            square = dx * dx + dy * dy + dz * dz
            pull = dt / (square * sqrt(square))
            mi, mj = mass[i] * pull, mass[j] * pull
            vx[i] = vx[i] - dx * mj
            vy[i] = vy[i] - dy * mj
            vz[i] = vz[i] - dz * mj
            vx[j] = vx[j] + dx * mi
            vy[j] = vy[j] + dy * mi
            vz[j] = vz[j] + dz * mi
    for i in range(BODIES):
        x[i] = x[i] + dt * vx[i]
        y[i] = y[i] + dt * vy[i]
        z[i] = z[i] + dt * vz[i]


@njit
def energy(x: Array, y: Array, z: Array, vx: Array, vy: Array, vz: Array, mass: Array) -> float:
    total = 0.0
    for i in range(BODIES):
        speed = vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i]
        total = total + 0.5 * mass[i] * speed
        for j in range(i + 1, BODIES):
            dx, dy, dz = x[i] - x[j], y[i] - y[j], z[i] - z[j]
            total = total - mass[i] * mass[j] / sqrt(dx * dx + dy * dy + dz * dz)
    return total


@njit
def work(steps: int) -> float:
    d = np.arange(BODIES) * 1.0
    x, y, z = d * 3.25, 1.5 - d * 0.75, d * d * 0.125
    vx, vy, vz = 0.1 * d - 0.05 * d * d, 0.5 - 0.15 * d, 0.02 * d
    mass = 8.0 / (1.0 + 4.0 * d)
    for _ in range(steps):
        advance(x, y, z, vx, vy, vz, mass, 0.01)
    return energy(x, y, z, vx, vy, vz, mass)
